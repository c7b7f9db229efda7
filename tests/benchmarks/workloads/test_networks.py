"""Topologies against published figures, and small versions of them through export, quantisation and onnxruntime."""

import numpy as np
import onnx
import onnxruntime
import pytest

from benchmarks.workloads import networks
from benchmarks.workloads.export import RELU6_LIMIT, float_model
from benchmarks.workloads.images import image
from benchmarks.workloads.layers import Activation, Kind
from benchmarks.workloads.registry import write_network

TOPOLOGIES = [networks.resnet50, networks.squeezenet, networks.squeezenet1_0, networks.mobilenetv2]
ids = [topology.__name__ for topology in TOPOLOGIES]


def small(topology):
    return topology(width=1 / 8, size=32, classes=10)


def parameter_count(network):
    return sum(int(np.prod(layer.weight_shape)) + layer.out_shape[0] for layer in network.layers if layer.weight_shape)


@pytest.mark.parametrize(
    ("topology", "gmacs", "parameters"),
    [
        (networks.resnet50, 4.09, 25.53e6),
        (networks.squeezenet, 0.349, 1.235e6),
        (networks.squeezenet1_0, 0.819, 1.248e6),
        (networks.mobilenetv2, 0.3008, 3.487e6),
    ],
    ids=ids,
)
def test_sizes_are_the_published_ones(topology, gmacs, parameters):
    """Parameters without batch normalisation's, which is folded into weights and biases."""
    network = topology()
    assert network.macs / 1e9 == pytest.approx(gmacs, rel=0.01)
    assert parameter_count(network) == pytest.approx(parameters, rel=0.002)
    assert network.in_shape == (3, 224, 224)
    assert network.layers[-1].out_shape == (1000,)


def test_resnet50_is_version_1_5():
    strided = [layer for layer in networks.resnet50().layers if layer.stride == 2 and "layer" in layer.name]
    assert [layer.name.split(".")[-1] for layer in strided] == ["conv2", "shortcut"] * 3
    kinds = [layer.kind for layer in networks.resnet50().layers]
    assert (kinds.count(Kind.CONV), kinds.count(Kind.ADD), kinds.count(Kind.GEMM)) == (53, 16, 1)


def test_mobilenetv2_blocks():
    layers = networks.mobilenetv2().layers
    assert sum(layer.is_depthwise for layer in layers) == 17
    assert sum(layer.kind is Kind.ADD for layer in layers) == 10
    assert sum(layer.activation is Activation.RELU6 for layer in layers) == 35


@pytest.mark.parametrize("size", [15, 16, 17, 18])
@pytest.mark.parametrize("ceil", [False, True])
def test_pooling_shape_is_what_onnx_infers(size, ceil):
    network = networks.Network("pool", (2, size, size + 1))
    network.max_pool("result", network.input, 3, stride=2, ceil=ceil)
    inferred = float_model(network, 0).graph.output[0].type.tensor_type.shape.dim
    expected = [-(-(extent - 3) // 2) + 1 if ceil else (extent - 3) // 2 + 1 for extent in (size, size + 1)]
    assert [dim.dim_value for dim in inferred] == [1, 2, *expected]


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=ids)
def test_full_shapes_are_what_onnx_infers(topology):
    """A small width keeps the weights few; shapes of maps are the full ones."""
    network = topology(width=1 / 16)
    values = {value.name: value for value in float_model(network, 0).graph.value_info}
    for layer in network.layers[:-1]:
        dims = [dim.dim_value for dim in values[layer.name].type.tensor_type.shape.dim]
        assert dims == [1, *layer.out_shape], layer.name


def test_weights_follow_the_seed():
    network = networks.squeezenet(width=1 / 8, size=32)
    first, again, other = (float_model(network, seed).SerializeToString() for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=ids)
def test_small_network_quantises_and_runs(topology, tmp_path):
    network = small(topology)
    path = tmp_path / "int8.onnx"
    write_network(network, path)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    operators = [node.op_type for node in model.graph.node]
    assert not {"Relu", "Clip"} & set(operators)  # in the limits of int8
    assert operators.count("Conv") == sum(layer.kind is Kind.CONV for layer in network.layers)
    scales = list(scales_per_weight(model))
    assert len(scales) == operators.count("Conv")
    assert all(channels == count for channels, count in scales)

    logits = [run(model, {"image": image(network.in_shape, seed)})[0] for seed in (5, 6)]
    assert logits[0].shape == (1, 10)
    assert np.isfinite(logits[0]).all()
    assert np.any(logits[0] != logits[1])


def scales_per_weight(model):
    """(output channels, scales) of each convolution's weights."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        weight = constants.get(node.input[0]) if node.op_type == "DequantizeLinear" else None
        if weight is not None and len(weight.dims) == 4:
            assert weight.data_type == onnx.TensorProto.INT8
            yield weight.dims[0], int(np.prod(constants[node.input[1]].dims))


def test_concat_only_copies(tmp_path):
    """Inputs and result of every Concat have one scale, and the rectifier before it stays."""
    network = small(networks.squeezenet)
    path = tmp_path / "int8.onnx"
    write_network(network, path)
    graph = onnx.load(path).graph
    producers = {output: node for node in graph.node for output in node.output}
    concats = [node for node in graph.node if node.op_type == "Concat"]
    assert len(concats) == 8
    constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for concat in concats:
        (quantise,) = (node for node in graph.node if concat.output[0] in node.input)
        assert constants[quantise.input[2]] == -128
        for source in concat.input:
            dequantise = producers[source]
            assert dequantise.input[1:] == producers[dequantise.input[0]].input[1:] == quantise.input[1:]


def test_network_is_generated_the_same_twice(tmp_path):
    network = small(networks.squeezenet)
    paths = [tmp_path / name for name in ("first.onnx", "again.onnx")]
    for path in paths:
        write_network(network, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=ids)
def test_activations_stay_alive_through_the_depth(topology):
    """In the float network: neither vanishing nor exploding, and maps that vary over the image."""
    network = topology(width=1 / 4, size=64, classes=10)
    model = float_model(network, 3)
    shaped = [layer for layer in network.layers if layer.kind is Kind.CONV and layer.out_shape[1] >= 4]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(layer.name) for layer in shaped)
    _, *maps = run(model, {"image": image(network.in_shape, 1)})
    for layer, values in zip(shaped, maps, strict=True):
        spatial = values.std(axis=(2, 3)).mean()
        assert 0.05 < spatial < 20, layer.name
        if layer.activation is Activation.RELU6:
            assert values.max() <= RELU6_LIMIT


def run(model, feeds):
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)
