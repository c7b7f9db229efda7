"""Stores the int4 constants of a model as int8, which the accelerator and the kernels of onnxruntime multiply."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, numpy_helper

_EIGHT_BITS: dict[int, type] = {TensorProto.INT4: np.int8, TensorProto.UINT4: np.uint8}


def widen_int4(proto: onnx.ModelProto) -> frozenset[str]:
    """Widen the constants of four bits that only DequantizeLinear reads, beside scales that are no blocks', and their
    zero points; their values stay. Return the names of those that are no zero points."""
    tensors = {name: tensor for name, tensor in _constants(proto) if tensor.data_type in _EIGHT_BITS}
    readers = defaultdict[str, list[tuple[onnx.NodeProto, int]]](list)
    for node in proto.graph.node:
        for index, name in enumerate(node.input):
            readers[name].append((node, index))
    given = {value.name for value in proto.graph.output}
    plain = {name for name in tensors.keys() - given if all(_dequantises(*reader) for reader in readers[name])}
    pairs = [(node.input[0], node.input[2]) for node in proto.graph.node if _has_zero_point(node)]
    while apart := {end for pair in pairs if not plain.issuperset(pair) for end in pair if end in plain}:
        plain -= apart  # a constant and its zero point have one type
    for name in plain:
        tensor = tensors[name]
        wide: npt.NDArray = numpy_helper.to_array(tensor).astype(_EIGHT_BITS[tensor.data_type])
        tensor.CopyFrom(numpy_helper.from_array(wide, tensor.name))
    kept = [value for value in proto.graph.value_info if value.name not in plain]
    del proto.graph.value_info[:]
    proto.graph.value_info.extend(kept)
    return frozenset(name for name in plain if any(index == 0 for _, index in readers[name]))


def _constants(proto: onnx.ModelProto) -> Iterator[tuple[str, TensorProto]]:
    for tensor in proto.graph.initializer:
        yield tensor.name, tensor
    for node in proto.graph.node:
        for attribute in node.attribute if node.op_type == "Constant" else ():
            if attribute.name == "value":
                yield node.output[0], attribute.t


def _dequantises(node: onnx.NodeProto, index: int) -> bool:
    """Return whether input ``index`` of ``node`` is dequantised there, or its zero point is; not by blocks."""
    blocks = any(attribute.name == "block_size" and attribute.i for attribute in node.attribute)
    return node.op_type == "DequantizeLinear" and index != 1 and not blocks


def _has_zero_point(node: onnx.NodeProto) -> bool:
    return node.op_type == "DequantizeLinear" and len(node.input) > 2 and bool(node.input[2])
