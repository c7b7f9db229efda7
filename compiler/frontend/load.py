"""Reading a model: file and checker errors, operator-set version, fixed dimensions, unique node names."""

from collections.abc import Mapping
from pathlib import Path

import numpy.typing as npt
import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from compiler.frontend.int4_constants import widen_int4
from compiler.frontend.narrow_lookups import narrow_lookups
from compiler.frontend.problems import OpenDimension, first_line
from compiler.frontend.source import OnnxSource, Signature, free_name
from compiler.ir import CompileError
from compiler.states import states_of

OLDEST_OPSET = 10  #: the first with QuantizeLinear

Sizes = Mapping[str, int]


def load(
    model: str | Path | onnx.ModelProto, name: str | None = None, batch: int = 1, sizes: Sizes | None = None
) -> OnnxSource:
    """Read and check a model. ``sizes`` fixes dynamic input dimensions by name; a dynamic first dimension is ``batch``
    otherwise. Raises :class:`CompileError` naming the file and what is wrong with it, :class:`OpenDimension` for a
    dimension without a size."""
    if isinstance(model, onnx.ModelProto):
        where, proto = name or model.graph.name or "model", onnx.ModelProto()
        proto.CopyFrom(model)
    else:
        where, proto = str(model), read_model(Path(model))
        name = name or Path(model).stem
    _check(proto, where)
    _name_nodes(proto)
    _merge_quantisers(proto)
    int4 = widen_int4(proto)
    narrow_lookups(proto)
    states = states_of(proto).found
    signatures = _fix_inputs(proto, where, batch, sizes or {})
    return OnnxSource(name or where, proto, _constants(proto, where), signatures, int4, states)


def read_model(path: Path) -> onnx.ModelProto:
    """The file as it is. Raises :class:`CompileError` if there is none, or no model in it."""
    try:
        return onnx.load(str(path))
    except OSError as error:
        raise CompileError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (DecodeError, ValueError) as error:
        raise CompileError(f"{path}: not an ONNX model, or damaged: {error}") from None
    except onnx.checker.ValidationError as error:  # of data in other files
        raise CompileError(f"{path}: the model is invalid: {first_line(error)}") from None


def _check(proto: onnx.ModelProto, where: str) -> None:
    if not proto.graph.node and not proto.graph.output:
        raise CompileError(f"{where}: not an ONNX model, or damaged: it has no graph")
    versions = {entry.domain: entry.version for entry in proto.opset_import}
    version = versions.get("", versions.get("ai.onnx"))
    if version is None:
        raise CompileError(f"{where}: no version of the ONNX operator set is imported; export the model again")
    if version < OLDEST_OPSET:
        raise CompileError(
            f"{where}: operator set {version} is too old, {OLDEST_OPSET} is the first with quantised operators; "
            "convert it with onnx.version_converter"
        )
    try:
        onnx.checker.check_model(proto)
    except onnx.checker.ValidationError as error:
        reason = first_line(error)
        raise CompileError(f"{where}: the model is invalid: {reason}") from None
    except ValueError as error:  # larger than protobuf can hold
        raise CompileError(f"{where}: the model cannot be checked: {error}") from None


def _constants(proto: onnx.ModelProto, where: str) -> dict[str, npt.NDArray]:
    constants = {}
    for tensor in proto.graph.initializer:
        try:
            constants[tensor.name] = numpy_helper.to_array(tensor)
        except (LookupError, TypeError, ValueError) as error:
            raise CompileError(f"{where}: initialiser {tensor.name!r} is damaged: {error}") from None
    return constants


def _name_nodes(proto: onnx.ModelProto) -> None:
    """Give nodes without a name, and those with another node's, names that no node of the model has."""
    taken, seen = {node.name for node in proto.graph.node}, set[str]()
    for index, node in enumerate(proto.graph.node):
        if not node.name or node.name in seen:
            node.name = free_name(f"{node.name or node.op_type}_{index}", taken)
            taken.add(node.name)
        seen.add(node.name)


def _merge_quantisers(proto: onnx.ModelProto) -> None:
    """One QuantizeLinear for equal ones on the same tensor, so that it becomes one 8-bit tensor."""
    outputs = {value.name for value in proto.graph.output}
    first: dict[tuple, str] = {}
    replaced: dict[str, str] = {}
    kept = []
    for node in proto.graph.node:
        node.input[:] = [replaced.get(name, name) for name in node.input]
        if node.op_type == "QuantizeLinear" and node.output[0] not in outputs:
            key = (node.domain, *node.input, *(a.SerializeToString() for a in node.attribute))
            same = first.setdefault(key, node.output[0])
            if same != node.output[0]:
                replaced[node.output[0]] = same
                continue
        kept.append(node)
    del proto.graph.node[:]
    proto.graph.node.extend(kept)


def _fix_inputs(proto: onnx.ModelProto, where: str, batch: int, sizes: Sizes) -> dict[str, Signature]:
    inputs = inputs_of(proto)
    del proto.graph.input[:]
    proto.graph.input.extend(inputs)
    labels = {label_of(value, axis): None for value in inputs for axis in open_axes(value)}
    for label, size in sizes.items():
        if label not in labels:
            there = ", ".join(map(repr, labels)) or "none"
            raise CompileError(f"{where}: no input has a dynamic dimension {label!r} to give a size to; it has {there}")
        if size < 1:
            raise CompileError(f"{where}: dimension {label!r} must be 1 or more, not {size}")
    return {value.name: _signature(value, where, batch, sizes) for value in inputs}


def inputs_of(proto: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Return the inputs of a model; old ones list initialisers there, too."""
    constants = {tensor.name for tensor in proto.graph.initializer}
    return [value for value in proto.graph.input if value.name not in constants]


def label_of(value: onnx.ValueInfoProto, axis: int) -> str:
    """Return what a dynamic dimension of an input is called: its name, or its place if it has none."""
    return value.type.tensor_type.shape.dim[axis].dim_param or f"{value.name}[{axis}]"


def open_axes(value: onnx.ValueInfoProto) -> list[int]:
    """Return the dimensions of an input that have no size."""
    return [axis for axis, dim in enumerate(value.type.tensor_type.shape.dim) if dim.dim_value <= 0]


def _signature(value: onnx.ValueInfoProto, where: str, batch: int, sizes: Sizes) -> Signature:
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not tensor.HasField("shape"):
        raise CompileError(f"{where}: input {value.name!r} has no shape; export the model with one")
    for axis in open_axes(value):
        size = sizes.get(label_of(value, axis), batch if axis == 0 else None)
        if size is None:
            raise OpenDimension(where, value.name, axis, label_of(value, axis))
        tensor.shape.dim[axis].dim_value = size
    try:
        return Signature(tensor.elem_type, tuple(dim.dim_value for dim in tensor.shape.dim))
    except ValueError as error:
        raise CompileError(f"{where}: input {value.name!r}: {error}") from None
