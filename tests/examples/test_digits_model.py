"""The committed digits model: its accuracy, its interface, and that the training script describes it."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, numpy_helper

from examples.digits import MODEL, SAMPLES, network
from examples.digits.data import load_split
from examples.digits.evaluate import accuracy, reference_logits
from examples.digits.export import FLOAT_OPERATORS, float_model
from examples.digits.train import MIN_INT8_ACCURACY, SAMPLE_COUNT, train


@pytest.fixture(scope="module")
def split():
    return load_split()


@pytest.fixture(scope="module")
def model():
    return onnx.load(MODEL)


def operators(model):
    return [node.op_type for node in model.graph.node]


def shape(value):
    return [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]


def test_int8_accuracy_on_held_out_images(split):
    assert accuracy(MODEL, split.held_out_images, split.held_out_labels) >= MIN_INT8_ACCURACY


def test_reference_uses_integer_kernels(tmp_path):
    """Without that option, x86-64 computes int8 QDQ in float."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    onnxruntime.InferenceSession(str(MODEL), options, providers=["CPUExecutionProvider"])
    kernels = operators(onnx.load(tmp_path / "optimised.onnx"))
    assert kernels.count("QLinearConv") == 3
    assert {"QLinearAdd", "QGemm"} <= set(kernels)
    assert "Conv" not in kernels


def test_signature(model):
    (source,), (result,) = model.graph.input, model.graph.output
    assert (source.name, shape(source)) == ("image", [1, 1, 8, 8])
    assert (result.name, shape(result)) == ("logits", [1, 10])
    for value in source, result:
        assert value.type.tensor_type.elem_type == TensorProto.FLOAT


def test_model_is_small_and_valid(model):
    assert MODEL.stat().st_size < 100_000
    onnx.checker.check_model(model, full_check=True)


def test_float_export_has_the_stated_operators():
    exported = float_model(network.initial_parameters(np.random.default_rng(0)))
    assert tuple(operators(exported)) == FLOAT_OPERATORS


def test_committed_model_has_the_structure_of_the_training_script(model):
    """The quantiser folds Relu into the QuantizeLinear behind it; every other operator stays, in order."""
    kept = [op for op in operators(model) if op not in ("QuantizeLinear", "DequantizeLinear")]
    assert kept == [op for op in FLOAT_OPERATORS if op != "Relu"]

    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for name, value in network.initial_parameters(np.random.default_rng(0)).items():
        quantised = constants[f"{name}_quantized"]
        assert quantised.shape == value.shape
        assert quantised.dtype == (np.int8 if name.endswith("weight") else np.int32)


def test_weights_are_per_channel_and_symmetric(model):
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for name in (*network.CONVOLUTIONS, "fc"):
        channels = constants[f"{name}.weight_quantized"].shape[0]
        assert constants[f"{name}.weight_scale"].shape == (channels,)
        assert not constants[f"{name}.weight_zero_point"].any()


def test_network_agrees_with_its_onnx_export(tmp_path, split):
    parameters = network.initial_parameters(np.random.default_rng(0))
    onnx.save(float_model(parameters), tmp_path / "float.onnx")
    images = split.train_images[:8]
    expected = reference_logits(tmp_path / "float.onnx", images)
    np.testing.assert_allclose(network.logits(parameters, images), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["conv1.weight", "conv2.weight", "conv3.weight", "conv2.bias", "fc.weight"])
def test_gradient_agrees_with_finite_differences(split, name):
    rng = np.random.default_rng(3)
    parameters = {key: value.astype(np.float64) for key, value in network.initial_parameters(rng).items()}
    batch = split.train_images[:4], split.train_labels[:4]
    gradient = network.loss_and_gradient(parameters, *batch)[1][name]
    place = np.unravel_index(np.abs(gradient).argmax(), gradient.shape)
    step = 1e-3
    losses = []
    for change in (step, -step):
        moved = parameters | {name: parameters[name].copy()}
        moved[name][place] += change
        losses.append(network.loss_and_gradient(moved, *batch)[0])
    assert gradient[place] == pytest.approx((losses[0] - losses[1]) / (2 * step), rel=2e-2)


def test_training_is_seeded(split):
    first, second = (train(split.train_images[:128], split.train_labels[:128], epochs=2) for _ in range(2))
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name])


def test_split_is_fixed_and_stratified(split):
    assert split.train_images.shape == (1438, 1, 8, 8)
    assert split.held_out_images.shape == (359, 1, 8, 8)
    assert split.held_out_images.dtype == np.float32
    assert np.bincount(split.held_out_labels).tolist() == [36, 36, 35, 37, 36, 36, 36, 36, 35, 36]


def test_samples_are_held_out_images(split):
    samples = np.load(SAMPLES)
    assert samples["input"].dtype == np.float32
    np.testing.assert_array_equal(samples["input"], split.held_out_images[:SAMPLE_COUNT])
    np.testing.assert_array_equal(samples["label"], split.held_out_labels[:SAMPLE_COUNT])
    assert set(samples["label"]) == set(range(10))
