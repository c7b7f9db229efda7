"""One operator between DequantizeLinear and QuantizeLinear: a whole ONNX model with int8 input and output."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.workloads.layers import Shape

OPSET = 17
IR_VERSION = 10
INPUT, WEIGHT, BIAS, OUTPUT = "input", "weight", "bias", "output"
INPUT_SCALE = 0.05
WEIGHT_SCALE = 0.01  #: of the channel with the largest weights
BIAS_DEVIATION = 0.2  #: of the biases, relative to that of the products' sum
INPUT_ZERO_POINT = -10  #: activations of trained networks are seldom symmetric
OUTPUT_ZERO_POINT = 5
WEIGHT_LIMIT = 127  #: symmetric: -128 is not used
HEADROOM = 3.5  #: standard deviations from the output's mean to the end of int8: less than 1 in 1000 saturates

Int8 = npt.NDArray[np.int8]


@dataclass(frozen=True)
class QdqOperator:
    """What :func:`model` wraps: an ONNX node of dequantised ``input`` and int8 ``weight`` (and bias, if it takes one).

    ``channel_axis`` is the weight's axis of output channels; shapes are ONNX's, with the batch.
    """

    name: str
    op_type: str
    in_shape: Shape
    out_shape: Shape
    weight_shape: Shape
    channel_axis: int
    has_bias: bool
    attributes: dict = field(default_factory=dict)


def activations(shape: Shape, seed: int | tuple[int, ...]) -> Int8:
    """Uniform random int8 activations over the whole range."""
    return np.random.default_rng(seed).integers(-128, 128, shape, np.int8)


def model(operator: QdqOperator, seed: int) -> onnx.ModelProto:
    """Return the checked model. Weights are uniform and their scales differ between channels. The output's scale is
    such that for inputs as :func:`activations` makes them the output fills int8 and hardly saturates."""
    rng = np.random.default_rng(seed)
    channels = operator.weight_shape[operator.channel_axis]
    weight = rng.integers(-WEIGHT_LIMIT, WEIGHT_LIMIT + 1, operator.weight_shape, np.int8)
    weight_scale = (WEIGHT_SCALE * rng.uniform(0.5, 1.0, channels)).astype(np.float32)
    deviation = INPUT_SCALE * WEIGHT_SCALE * _accumulator_deviation(weight.size // channels)
    constants = [
        *_constants(INPUT, np.float32(INPUT_SCALE), np.int8(INPUT_ZERO_POINT)),
        *_constants(WEIGHT, weight_scale, np.zeros(channels, np.int8), weight),
        *_constants(OUTPUT, np.float32(deviation * HEADROOM / 127), np.int8(OUTPUT_ZERO_POINT)),
    ]
    nodes = [_convert("DequantizeLinear", INPUT), _convert("DequantizeLinear", WEIGHT, operator.channel_axis)]
    operands = [_real(INPUT), _real(WEIGHT)]
    if operator.has_bias:
        bias_scale = weight_scale * np.float32(INPUT_SCALE)
        bias = np.rint(rng.normal(0.0, BIAS_DEVIATION * deviation, channels) / bias_scale).astype(np.int32)
        constants += _constants(BIAS, bias_scale, np.zeros(channels, np.int32), bias)
        nodes.append(_convert("DequantizeLinear", BIAS, 0))
        operands.append(_real(BIAS))
    nodes.append(helper.make_node(operator.op_type, operands, [_real(OUTPUT)], operator.name, **operator.attributes))
    nodes.append(_convert("QuantizeLinear", OUTPUT))
    return _checked(operator, nodes, constants)


def _accumulator_deviation(fan_in: int) -> float:
    """Standard deviation of an accumulator of ``fan_in`` products."""
    activation = np.mean((np.arange(-128, 128) - INPUT_ZERO_POINT) ** 2.0)
    weight = np.mean(np.arange(-WEIGHT_LIMIT, WEIGHT_LIMIT + 1) ** 2.0)
    return math.sqrt(fan_in * activation * weight)


def _real(name: str) -> str:
    return f"{name}.real"


def _constants(
    name: str, scale: npt.ArrayLike, zero_point: npt.ArrayLike, data: npt.NDArray | None = None
) -> list[onnx.TensorProto]:
    arrays = {f"{name}.scale": np.asarray(scale), f"{name}.zero_point": np.asarray(zero_point)}
    if data is not None:
        arrays[name] = data
    return [numpy_helper.from_array(array, key) for key, array in arrays.items()]


def _convert(op_type: str, name: str, axis: int | None = None) -> onnx.NodeProto:
    """Between the int8 tensor ``name`` and its real values, whichever direction ``op_type`` has."""
    ends = [name, _real(name)] if op_type == "DequantizeLinear" else [_real(name), name]
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    inputs = [ends[0], f"{name}.scale", f"{name}.zero_point"]
    return helper.make_node(op_type, inputs, [ends[1]], f"{name}.{op_type}", **attributes)


def _checked(operator: QdqOperator, nodes: list[onnx.NodeProto], constants: list[onnx.TensorProto]) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        operator.name,
        [helper.make_tensor_value_info(INPUT, TensorProto.INT8, operator.in_shape)],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.INT8, operator.out_shape)],
        constants,
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    proto.producer_name = "caesura benchmarks"
    onnx.checker.check_model(proto, full_check=True)
    return proto
