"""Attention by itself: scores, softmax and sums of values of int8 queries, keys and values, as a quantised encoder has
them between its projections."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 20, 10
INPUTS = ("query", "key", "value")
OUTPUT = "mixed"
_STEP, _ZERO = 0.02, 3  #: of queries, keys and values, which fill int8
_WEIGHT_STEP = 1 / 255
_DEVIATION = 74.0  #: of numbers that fill int8 evenly


@dataclass(frozen=True)
class Attention:
    """``heads`` heads of ``width`` channels over ``length`` tokens. Its inputs are [1, length, heads * width]."""

    heads: int
    width: int
    length: int

    @property
    def macs(self) -> int:
        """Return the multiply-accumulates of one inference."""
        return 2 * self.length * self.length * self.heads * self.width

    def problem(self) -> str | None:
        """Return what is wrong with the sizes, if anything."""
        return "sizes must be at least 1" if min(self.heads, self.width, self.length) < 1 else None


def parse(name: str) -> Attention | None:
    """Return the block that ``attention_HEADSxWIDTH_LENGTH`` stands for; None for other names."""
    match = re.fullmatch(r"attention_(\d+)x(\d+)_(\d+)", name)
    return Attention(*map(int, match.groups())) if match else None


def inputs(block: Attention, seed: int | tuple[int, ...]) -> dict[str, npt.NDArray[np.int8]]:
    """Uniform int8 queries, keys and values."""
    rng = np.random.default_rng(seed)
    shape = (1, block.length, block.heads * block.width)
    return {name: rng.integers(-128, 128, shape).astype(np.int8) for name in INPUTS}


def model(block: Attention) -> onnx.ModelProto:
    """Return the checked model. Scores have a deviation of about one."""
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []

    def constant(name: str, value: npt.ArrayLike, dtype: npt.DTypeLike) -> str:
        constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def node(op_type: str, name: str, *sources: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(op_type, sources, [name], name, **attributes))
        return name

    def stored(x: str, step: float, zero: int) -> str:
        parameters = constant(f"{x}.step", step, np.float32), constant(f"{x}.zero", zero, np.int8)
        return node("DequantizeLinear", f"{x}.real", node("QuantizeLinear", f"{x}.stored", x, *parameters), *parameters)

    split = constant("split", [0, -1, block.heads, block.width], np.int64)
    step, zero = constant("step", _STEP, np.float32), constant("zero", _ZERO, np.int8)
    heads = []
    for name, perm in zip(INPUTS, ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)), strict=True):
        real = node("DequantizeLinear", f"{name}.real", name, step, zero)
        heads.append(node("Transpose", f"{name}.heads", node("Reshape", f"{name}.split", real, split), perm=perm))
    deviation = (_STEP * _DEVIATION) ** 2 * block.width**0.5
    products = stored(node("MatMul", "products", *heads[:2]), deviation / 30, 0)
    root = constant("root", deviation, np.float32)
    scores = stored(node("Div", "scores", products, root), 1 / 30, 0)
    weights = stored(node("Softmax", "weights", scores, axis=-1), _WEIGHT_STEP, -128)
    mixed = stored(node("MatMul", "sums", weights, heads[2]), _STEP / 2, _ZERO)
    joined = constant("joined", [0, -1, block.heads * block.width], np.int64)
    turned = node("Transpose", "turned", mixed, perm=[0, 2, 1, 3])
    node("QuantizeLinear", OUTPUT, node("Reshape", "whole", turned, joined), "sums.step", "sums.zero")
    shape = [1, block.length, block.heads * block.width]
    graph = helper.make_graph(
        nodes, "attention", [helper.make_tensor_value_info(name, TensorProto.INT8, shape) for name in INPUTS],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.INT8, shape)], constants,
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.checker.check_model(made)
    return made
