"""The golden result: onnxruntime with its integer kernels, for whole models and layer by layer.

A layer is judged on the data it really had: the ONNX nodes behind one IR operator run as a model of their own on the
operator's given 8-bit inputs. The rule, as ``OperatorCheck`` reports it:

* convolutions, fully connected layers, products of matrices and pure data movement: every element equal;
* the same where onnxruntime has no integer kernel for them (a MatMul with a float bias and Relu behind, say), and
  tables, element-wise operators, pools, softmax, layer normalisation: at most 1 LSB apart, in at most 0.1 % of the
  elements, rounded up (so that one element of a small tensor may differ). Elements whose exact result lies half way
  between two integers (within ``TIE``) are not counted in the 0.1 %: there the golden's own float32 error decides the
  rounding. Nor are those whose result is as near to that as half an integer of a sum, where a bias was added: integer
  kernels, ours and onnxruntime's, add it as an integer, its float ones do not. Softmax and layer normalisation are
  judged by the nodes as they are written, in float32: onnxruntime's fused kernel for 8-bit softmax differs from that by
  one in many elements.

A node that several operators compute together, such as a transposed convolution, has no ONNX tensor between them. Each
is judged by its own definition, and what holds their result once more by the node, under the loosest of their rules.
"""

import math
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from compiler import reference
from compiler.frontend.load import label_of, load, open_axes, read_model
from compiler.frontend.source import OnnxSource, Signature
from compiler.ir import (
    GoldenRule,
    Graph,
    Operation,
    Pad,
    Permute,
    Reshape,
    Shuffle,
    Softmax,
    Table,
    Tensor,
    TensorValue,
)
from sim.host import session

TOLERATED = 1e-3  #: share of elements of inexact operators that may differ
TIE = 1e-4  #: distance from a half, in LSB, below which float32 error decides the rounding
_INTEGER_KERNELS = {"QLinearConv", "QLinearMatMul", "QGemm"}  # requantise too; others go on in float

#: Kinds of operators that are judged by their nodes as they are written.
AS_WRITTEN = tuple(kind.__name__.lower() for kind in Operation.__subclasses__() if kind.rule is GoldenRule.WRITTEN)

Values = Mapping[str, npt.NDArray]


@dataclass(frozen=True)
class OperatorCheck:
    """How one operator's result compares with the golden one. ``ties``: differing elements at a tie (see module)."""

    name: str
    kind: str
    elements: int
    mismatches: int
    max_diff: int
    exact_required: bool
    ok: bool
    ties: int = 0


def golden_outputs(model: str | Path | onnx.ModelProto, inputs: Values) -> dict[str, npt.NDArray]:
    """Return the outputs of a whole ONNX model by name."""
    proto = model if isinstance(model, onnx.ModelProto) else read_model(Path(model))
    given = [(value, inputs[value.name].shape) for value in proto.graph.input if value.name in inputs]
    sizes = {label_of(value, axis): shape[axis] for value, shape in given for axis in open_axes(value)}
    run = session(load(proto, sizes=sizes).model)
    names = [value.name for value in run.get_outputs()]
    return dict(zip(names, run.run(names, dict(inputs)), strict=True))


def check_layer(graph: Graph, op: Operation, input_values: Values, output_value: npt.NDArray) -> OperatorCheck:
    """Judge ``output_value`` of ``op`` (tensor ``op.output`` as it lies in memory), computed from ``input_values``
    (tensors by name, as they lie in memory)."""
    tensor = graph.tensors[op.output]
    given = np.asarray(output_value).reshape(tensor.shape)
    parts = _parts(graph, op)
    wanted, integer = parts.golden(graph, tensor, input_values) if parts else _golden(graph, op, input_values)
    rules = {one.rule for one in (parts.ops if parts else [op])}
    exact = rules <= {GoldenRule.EXACT, GoldenRule.INTEGER} and (integer or GoldenRule.INTEGER not in rules)
    if given.dtype.kind == "f":
        return _float_check(op, given, wanted)
    difference = np.abs(given.astype(np.int64) - wanted.astype(np.int64))
    largest = int(difference.max(initial=0))
    differs = difference > 0
    ties = 0
    if not exact and differs.any():
        tied = parts.tied(graph, tensor, input_values) if parts else _tied(graph, op, input_values)
        ties = int((differs & tied).sum())
    mismatches = int(differs.sum())
    allowed = 0 if exact else math.ceil(TOLERATED * given.size)
    ok = mismatches - ties <= allowed and largest <= (0 if exact else 1)
    return OperatorCheck(op.name, op.kind, given.size, mismatches, largest, exact, ok, ties)


def judged(graph: Graph, op: Operation) -> bool:
    """Return whether ``op`` computes something: not if it is another name for what another operator has computed."""
    return not isinstance(op, Reshape) or _parts(graph, op) is not None


def _float_check(op: Operation, given: npt.NDArray, wanted: npt.NDArray) -> OperatorCheck:
    mismatches = int((~np.isclose(given, wanted, rtol=1e-4, atol=1e-6, equal_nan=True)).sum())
    return OperatorCheck(op.name, op.kind, given.size, mismatches, int(mismatches > 0), False, not mismatches)


def _tied(graph: Graph, op: Operation, values: Values) -> npt.NDArray[np.bool_]:
    """Return the elements whose exact result is half way between two integers, as far as the operator knows it."""
    output, tensors = graph.tensors[op.output], [graph.tensors[name] for name in op.inputs]
    inputs = [TensorValue(tensor, reference.value_of(graph, values, tensor.name)) for tensor in tensors]
    real = op.before_rounding(inputs, output)
    if real is None:
        return np.zeros(output.shape, bool)
    step = np.float64(np.float32(output.scale))
    steps, doubt = real / step, TIE + op.constants_error(output) / step
    return (np.abs(steps - np.floor(steps) - 0.5) < doubt).reshape(output.shape)


@dataclass(frozen=True)
class _Parts:
    """Operators that compute an ONNX tensor from others together, with nothing between them that ONNX has."""

    sources: list[Tensor]
    ops: list[Operation]

    def golden(self, graph: Graph, tensor: Tensor, values: Values) -> tuple[npt.NDArray, bool]:
        """Return the golden value of ``tensor`` as it lies in memory, and whether integer kernels made it."""
        layer = _layer(graph.source, self.sources, tensor, as_written=False)
        (result,) = layer.run.run([layer.result], self._feed(graph, values))
        return to_physical(tensor, result), layer.integer

    def tied(self, graph: Graph, tensor: Tensor, values: Values) -> npt.NDArray[np.bool_]:
        """Return the elements of ``tensor`` whose real result is half way between two integers."""
        source, step = graph.source, np.float64(np.float32(tensor.scale))
        quantised = source.producers[tensor.onnx_name]
        if quantised.op_type != "QuantizeLinear":
            return np.zeros(tensor.shape, bool)
        real, names = quantised.input[0], [one.onnx_name for one in self.sources]
        nodes = source.between([real], names)
        model = source.submodel(nodes, [(name, source.signatures[name]) for name in names], [real])
        (result,) = session(model, as_written=True).run([real], self._feed(graph, values))
        steps = to_physical(tensor, result).astype(np.float64) / step
        off = max(float(one.constants_error(graph.tensors[one.output]).max()) for one in self.ops)
        return np.abs(steps - np.floor(steps) - 0.5) < TIE + off / step

    def _feed(self, graph: Graph, values: Values) -> dict[str, npt.NDArray]:
        signatures = graph.source.signatures
        return {one.onnx_name: to_onnx(one, values[one.name], signatures[one.onnx_name]) for one in self.sources}


def _parts(graph: Graph, op: Operation) -> _Parts | None:
    """Return what computes the result of ``op`` together with it; None if ONNX has all that ``op`` reads."""
    computed = [name for name in op.inputs if graph.tensors[name].data is None]
    if op.kind in AS_WRITTEN or not graph.tensors[op.output].onnx_name or all(_named(graph, name) for name in computed):
        return None
    sources, ops, todo = dict[str, Tensor](), {op.name: op}, computed
    while todo:
        tensor = graph.tensors[todo.pop()]
        if tensor.onnx_name:
            sources[tensor.onnx_name] = tensor
        elif tensor.data is None:
            maker = graph.producer(tensor.name)
            if maker is None:
                return None
            ops[maker.name] = maker
            todo = [*todo, *maker.inputs]
    return _Parts(list(sources.values()), list(ops.values()))


def _named(graph: Graph, name: str) -> bool:
    """Return whether ONNX has tensor ``name``, but for movement that the front end added."""
    while not graph.tensors[name].onnx_name:
        op = graph.producer(name)
        if not isinstance(op, Permute | Shuffle | Pad | Reshape):
            return False
        name = op.inputs[0]
    return True


@dataclass
class _NodeSession:
    """An operator's ONNX nodes as a session."""

    run: onnxruntime.InferenceSession
    result: str
    integer: bool  #: onnxruntime chose integer kernels for it


_SESSIONS: "weakref.WeakKeyDictionary[OnnxSource, dict[tuple[str, ...], _NodeSession]]" = weakref.WeakKeyDictionary()


def _golden(graph: Graph, op: Operation, values: Values) -> tuple[npt.NDArray, bool]:
    """Return the golden value of ``op.output`` as it lies in memory, and whether integer kernels made it."""
    tensor = graph.tensors[op.output]
    computed = [name for name in op.inputs if graph.tensors[name].data is None]
    sources, held = zip(*(_in_onnx(graph, name, values[name]) for name in computed), strict=True)
    if isinstance(op, Table) and not tensor.onnx_name:
        return _between(graph.tensors[op.inputs[0]], tensor, values[op.inputs[0]]), True
    if isinstance(op, Softmax):
        return _between(
            graph.tensors[op.inputs[0]], tensor, values[op.inputs[0]].reshape(tensor.shape), "Softmax"
        ), False
    if not tensor.onnx_name or not all(source.onnx_name for source in sources) or isinstance(op, Permute | Reshape):
        # Inserted by the front end between tensors of ONNX: the operator's own definition is the golden one.
        return reference.run_op(op, graph, values)[op.output], True
    layer = _layer(graph.source, list(sources), tensor, as_written=op.kind in AS_WRITTEN)
    feed = {
        source.onnx_name: to_onnx(source, value, graph.source.signatures[source.onnx_name])
        for source, value in zip(sources, held, strict=True)
    }
    result = layer.run.run([layer.result], feed)[0]
    return to_physical(tensor, result), layer.integer


def _in_onnx(graph: Graph, name: str, value: npt.NDArray) -> tuple[Tensor, npt.NDArray]:
    """Return the tensor of ONNX whose values ``name`` holds, and its value: movement that the front end added is
    undone."""
    tensor = graph.tensors[name]
    while not tensor.onnx_name:
        op = graph.producer(tensor.name)
        if isinstance(op, Permute):
            value = value.reshape(tensor.shape).transpose(np.argsort(op.perm))
        elif isinstance(op, Shuffle):
            value = value.reshape(*tensor.shape[:3], -1, op.groups).swapaxes(3, 4)
        elif isinstance(op, Pad):
            top, left, bottom, right = op.pads
            _, height, width, _ = tensor.nhwc
            value = value.reshape(tensor.nhwc)[:, top : height - bottom, left : width - right]
        elif not isinstance(op, Reshape):
            break
        tensor = graph.tensors[op.inputs[0]]
    return tensor, value


def _between(source: Tensor, target: Tensor, value: npt.NDArray, function: str = "Identity") -> npt.NDArray:
    """DequantizeLinear, a function, then QuantizeLinear, in float32: a softmax, or a table that the front end inserted
    in front of Concat."""
    feeds, nodes, constants = {"x": value}, [helper.make_node(function, ["r"], ["f"])], []
    for op_type, ends, tensor in (("DequantizeLinear", "xr", source), ("QuantizeLinear", "fy", target)):
        scale, zero = f"{op_type}/scale", f"{op_type}/zero_point"
        constants.append(numpy_helper.from_array(np.array(tensor.scale, np.float32), scale))
        constants.append(numpy_helper.from_array(np.array(tensor.zero_point, tensor.dtype), zero))
        at = 0 if op_type == "DequantizeLinear" else len(nodes)
        nodes.insert(at, helper.make_node(op_type, [ends[0], scale, zero], [ends[1]]))
    elem_type = helper.np_dtype_to_tensor_dtype(value.dtype)
    x = helper.make_tensor_value_info("x", elem_type, value.shape)
    graph = helper.make_graph(nodes, "requantise", [x], [onnx.ValueInfoProto(name="y")], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return session(model, as_written=True).run(["y"], feeds)[0]


def _layer(source: OnnxSource, inputs: list[Tensor], output: Tensor, *, as_written: bool) -> _NodeSession:
    cached = _SESSIONS.setdefault(source, {})
    key = (output.onnx_name, *(tensor.onnx_name for tensor in inputs))
    if key not in cached:
        begin = list(dict.fromkeys(tensor.onnx_name for tensor in inputs))
        nodes = source.between([output.onnx_name], begin)
        signatures = [(name, source.signatures[name]) for name in begin]
        model = source.submodel(nodes, signatures, [output.onnx_name])
        run, kernels = (session(model, as_written=True), set[str]()) if as_written else _session_and_kernels(model)
        cached[key] = _NodeSession(run, output.onnx_name, bool(kernels & _INTEGER_KERNELS))
    return cached[key]


def _session_and_kernels(model: onnx.ModelProto) -> tuple[onnxruntime.InferenceSession, set[str]]:
    """Return a session, and the operator types that onnxruntime's optimiser made of the model."""
    with tempfile.TemporaryDirectory(prefix="caesura-") as folder:
        path = Path(folder) / "optimised.onnx"
        run = session(model, path)
        return run, {node.op_type for node in onnx.load(str(path)).graph.node}


def to_onnx(tensor: Tensor, value: npt.NDArray, signature: Signature) -> npt.NDArray:
    """Return a tensor in memory as the ONNX tensor it stands for."""
    view = tensor.view or signature.shape
    perm = tensor.perm or tuple(range(len(view)))
    physical = value.reshape([view[axis] for axis in perm])
    return np.ascontiguousarray(physical.transpose(np.argsort(perm))).reshape(signature.shape)


def to_physical(tensor: Tensor, value: npt.NDArray) -> npt.NDArray:
    """Return an ONNX tensor as it lies in memory."""
    view = tensor.view or value.shape
    perm = tensor.perm or tuple(range(len(view)))
    return np.ascontiguousarray(value.reshape(view).transpose(perm)).reshape(tensor.shape)
