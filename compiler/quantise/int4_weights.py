"""Chooses the weights that a float model can have as int4: the constant matrices of products."""

from collections import defaultdict
from typing import Any

import onnx
import onnx.version_converter
from onnxruntime.quantization import QuantType

_FIRST, _IR = 21, 10  #: operator set whose DequantizeLinear takes int4, and version of the format that has it
_PRODUCTS = ("MatMul", "Gemm")


def with_int4(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a float model in an operator set that has int4."""
    version = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    if version >= _FIRST:
        return model
    made = onnx.version_converter.convert_version(model, _FIRST)
    made.ir_version = max(made.ir_version, _IR)
    return made


def int4_overrides(model: onnx.ModelProto, *, per_channel: bool) -> dict[str, list[dict[str, Any]]]:
    """Return what tells onnxruntime's quantiser to store constants as symmetric int4: those that are the second operand
    of products of matrices, and nothing else."""
    axes = defaultdict[str, set[int | None]](set)
    for node in model.graph.node:
        for index, name in enumerate(node.input):
            axes[name].add(_output_axis(node) if index == 1 else None)
    found = {}
    for tensor in model.graph.initializer:
        if len(tensor.dims) == 2 and len(axes[tensor.name]) == 1 and (axis := axes[tensor.name].pop()) is not None:
            options: dict[str, Any] = {"quant_type": QuantType.QInt4, "symmetric": True}
            found[tensor.name] = [options | ({"axis": axis} if per_channel else {})]
    return found


def _output_axis(node: onnx.NodeProto) -> int | None:
    """Return the axis of output channels of the weights of a product; None for another node."""
    if node.op_type not in _PRODUCTS:
        return None
    return 0 if any(one.name == "transB" and one.i for one in node.attribute) else 1
