"""Single products and convolutions: valid ONNX, exact integer arithmetic, results that use int8."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

from benchmarks.workloads import conv, gemm, qdq
from benchmarks.workloads.conv import ConvShape
from benchmarks.workloads.gemm import Gemm

GEMMS = [Gemm(33, 70, 29), Gemm(16, 512, 64)]
CONVS = [
    ConvShape(16, 14, 14, 24, kernel=3, stride=1, pad=1),
    ConvShape(64, 7, 9, 32, kernel=1, stride=2, pad=0),
    ConvShape(3, 32, 32, 16, kernel=7, stride=2, pad=3),
    ConvShape(24, 14, 14, 24, kernel=3, stride=2, pad=1, groups=24),
]


def run(model, feeds):
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0]


def constants(model):
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def requantised(accumulator, scale, values):
    """As ONNX defines it, with one rounding of a float32 product."""
    real = accumulator.astype(np.float32) * scale
    return np.clip(np.rint(real) + values["output.zero_point"], -128, 127).astype(np.int8)


@pytest.mark.parametrize("shape", GEMMS, ids=lambda case: case.name)
def test_gemm_equals_integer_arithmetic(shape):
    model = gemm.model(shape, seed=1)
    onnx.checker.check_model(model, full_check=True)
    values = constants(model)
    activations = qdq.activations(shape.in_shape, seed=2)
    output = run(model, {qdq.INPUT: activations})
    assert (output.shape, output.dtype) == ((shape.m, shape.n), np.int8)

    centred = activations.astype(np.int64) - values["input.zero_point"]
    scale = values["input.scale"] * values["weight.scale"] / values["output.scale"]
    expected = requantised(centred @ values["weight"].astype(np.int64), scale, values)
    assert np.array_equal(output, expected)


@pytest.mark.parametrize("shape", CONVS, ids=lambda case: case.name)
def test_convolution_equals_integer_arithmetic(shape):
    model = conv.model(shape, seed=1)
    onnx.checker.check_model(model, full_check=True)
    values = constants(model)
    activations = qdq.activations(shape.in_shape, seed=2)
    output = run(model, {qdq.INPUT: activations})
    assert output.shape == shape.out_shape

    expected = requantised(
        accumulators(shape, activations.astype(np.int64) - values["input.zero_point"], values),
        (values["input.scale"] * values["weight.scale"] / values["output.scale"])[:, None, None],
        values,
    )
    assert np.array_equal(output, expected)


def accumulators(shape, centred, values):
    """Direct convolution of [1, cin, h, w], zero point subtracted, bias included."""
    _, cout, height, width = shape.out_shape
    padded = np.pad(centred[0], [(0, 0), *[(shape.pad, shape.pad)] * 2])
    weight = values["weight"].astype(np.int64)
    total = np.zeros((cout, height, width), np.int64)
    cin, per_group = shape.cin // shape.groups, cout // shape.groups
    for channel in range(cout):
        first = channel // per_group * cin
        for y, x in np.ndindex(shape.kernel, shape.kernel):
            rows = slice(y, y + shape.stride * (height - 1) + 1, shape.stride)
            columns = slice(x, x + shape.stride * (width - 1) + 1, shape.stride)
            total[channel] += np.tensordot(weight[channel, :, y, x], padded[first : first + cin, rows, columns], 1)
    return (total + values["bias"][:, None, None])[np.newaxis]


@pytest.mark.parametrize(
    "model",
    [*(gemm.model(shape, 3) for shape in GEMMS), *(conv.model(shape, 3) for shape in CONVS)],
    ids=lambda model: model.graph.name,
)
def test_output_uses_int8(model):
    dims = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    output = run(model, {qdq.INPUT: qdq.activations(tuple(dims), seed=4)})
    assert len(np.unique(output)) > 100
    assert np.mean((output == -128) | (output == 127)) < 0.05


def test_seed_changes_weights_alone():
    shape = Gemm(4, 8, 4)
    first, again, other = (constants(gemm.model(shape, seed)) for seed in (1, 1, 2))
    assert np.array_equal(first["weight"], again["weight"])
    assert not np.array_equal(first["weight"], other["weight"])
    assert first["output.scale"] == other["output.scale"]


@pytest.mark.parametrize("shape", CONVS, ids=lambda case: case.name)
def test_convolution_names_and_macs(shape):
    assert conv.parse(shape.name) == shape
    _, _, height, width = shape.out_shape
    weights = dict(constants(conv.model(shape, 0)))["weight"]
    assert shape.macs == height * width * weights.size


def test_gemm_names():
    assert gemm.parse("gemm_33x70x29") == Gemm(33, 70, 29)
    assert Gemm(33, 70, 29).name == "gemm_33x70x29"
    assert gemm.parse("gemm_33x70") is None
    assert conv.parse("conv_3x8x8_4_k3_s1") is None
