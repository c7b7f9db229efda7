"""Host operators: ONNX nodes that run on the CPU. A last softmax does, and what :mod:`compiler.frontend.float_ends`
says; others with ``fallback`` only.

A host model begins and ends with tensors as they lie in memory; reshapes and transposes at its ends restore the ONNX
order, so that a driver hands over bytes without knowing about layouts.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import onnx
from onnx import helper, numpy_helper

from compiler.frontend import inputs
from compiler.frontend.draft import Draft, Pending, Value, operator
from compiler.frontend.problems import NodeProblem, Unsupported, first_line
from compiler.frontend.source import Signature
from compiler.frontend.values import Const, Float, Quant, QuantConst, Quantisation, Real, TensorLayout
from compiler.ir import Concat, Host, Pad, Permute, Repeat, Reshape, Slice, Tensor
from sim.host import session

_ONNX = "onnx/"  # prefix of ONNX names in a host model, which keeps them apart from names of tensors in memory


@dataclass(frozen=True, kw_only=True)
class OnHost(Pending):
    """A float result of the CPU; nodes up to QuantizeLinear join its host operator."""

    clampable: ClassVar[bool] = False  #: Relu and Clip behind it are nodes of their own
    reason: str

    def emit(self, draft: Draft, target: Quantisation, name: str) -> Quant:
        """Return one ``ir.Host`` that ends with QuantizeLinear. ``reshapes`` are part of it."""
        _signatures(draft, self.roots, [name])  # raises what onnxruntime does not accept
        made = draft.new_tensor(name, self.shape, TensorLayout.default(self.shape), target)
        _add(draft, self.node, self.roots, [made.tensor], self.reason)
        return made


@operator("LogSoftmax")
def softmax(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return the runs on the CPU; see :mod:`compiler.frontend.ops.rows` for softmax in the midst of a network."""
    value = draft.value(node.input[0])
    if isinstance(value, Float):
        return fall_back(draft, node, _SOFTMAX)
    if isinstance(value, OnHost):
        return [pending(draft, node, _SOFTMAX)]
    return [softmax_of(draft.real(node.input[0]), node)]


_SOFTMAX = "softmax runs on the CPU at the end of a network, and where it is not over the last axis"


def softmax_of(x: Real, node: onnx.NodeProto) -> OnHost:
    """Return the pending softmax of ``x``."""
    roots = (x.quant.tensor,)
    return OnHost(shape=x.shape, node=node.name, roots=roots, reason=_SOFTMAX)


def fall_back(draft: Draft, node: onnx.NodeProto, reason: str) -> list[Value]:
    """Run ``node`` on the CPU. A result that one node reads stays pending, so that neighbours share one operator; so
    does one of a type that host operators do not exchange: each reader computes it."""
    reason = str(NodeProblem(node.name, node.op_type, reason))
    name = node.output[0]
    readers = draft.source.consumers.get(name, [])
    if len(node.output) == 1 and len(readers) == 1 and name not in draft.source.outputs:
        return [pending(draft, node, reason)]
    roots = _roots(draft, node)
    outputs = [name for name in node.output if name]
    found = _signatures(draft, roots, outputs)
    if not all(signature.dtype in _EXCHANGED for signature in found) and not draft.source.outputs.intersection(outputs):
        values: list[Value] = [
            OnHost(shape=signature.shape, node=node.name, roots=roots, reason=reason) for signature in found
        ]
    else:
        values = list(_floats(draft, node.name, roots, outputs, reason))
    return [values.pop(0) if name else Const(np.zeros(0)) for name in node.output]


def as_float(draft: Draft, name: str, reason: str) -> Float:
    """Return the pending ONNX tensor ``name`` as a tensor in memory, computed on the CPU."""
    value = draft.value(name)
    assert isinstance(value, Pending)
    if isinstance(value, OnHost):
        reason = value.reason
    return _floats(draft, value.node, value.roots, [name], reason)[0]


def pending(draft: Draft, node: onnx.NodeProto, reason: str) -> OnHost:
    """Return the only result of ``node``, which the CPU computes for a ``reason``."""
    roots = _roots(draft, node)
    shape = signature(draft, roots, node.output[0]).shape
    return OnHost(shape=shape, node=node.name, roots=roots, reason=reason)


def _roots(draft: Draft, node: onnx.NodeProto) -> tuple[str, ...]:
    roots: list[str] = []
    for name in filter(None, node.input):
        value = draft.value(name)
        if isinstance(value, Pending):
            roots.extend(value.roots)
        elif isinstance(value, Quant | Real):
            quant = value.quant if isinstance(value, Real) else value
            roots.append(quant.tensor)
        elif isinstance(value, Float):
            roots.append(value.tensor or inputs.declare_float(draft, name).tensor)
        elif isinstance(value, QuantConst):
            draft.source.constants.setdefault(name, value.array)
    return tuple(dict.fromkeys(roots))


#: Types of tensors that host operators hand to each other.
_EXCHANGED = ("float32", "int32", "int64", "int8", "uint8")


def _floats(draft: Draft, node: str, roots: tuple[str, ...], outputs: list[str], reason: str) -> list[Float]:
    values, tensors = [], []
    for name, signature in zip(outputs, _signatures(draft, roots, outputs), strict=True):
        tensor, dtype = draft.unique(name), signature.dtype
        if signature.dtype not in _EXCHANGED:
            raise Unsupported(f"its result {name!r} is {dtype}; host operators exchange {', '.join(_EXCHANGED)}")
        draft.graph.tensors[tensor] = Tensor(tensor, signature.shape or (1,), dtype, onnx_name=name)
        draft.source.signatures[name] = signature
        values.append(Float(tensor, signature.shape, dtype))
        tensors.append(tensor)
    _add(draft, node, roots, tensors, reason)
    return values


def _begin(draft: Draft, roots: tuple[str, ...]) -> tuple[tuple[str, ...], list[str]]:
    """Return the tensors that a host operator on ``roots`` reads, and what ONNX calls them. Of those without a name
    there, they are what each was moved from or is a part of: the CPU repeats the movement."""
    read = list[str]()
    for root in roots:
        while not draft.graph.tensors[root].onnx_name:
            op = draft.graph.producer(root)
            if not isinstance(op, Permute | Reshape | Pad | Slice | Concat | Repeat):
                raise Unsupported("it reads data that is in ONNX in another form; the CPU cannot take it over here")
            root = next(name for name in op.inputs if draft.graph.tensors[name].data is None)
        read.append(root)
    found = tuple(dict.fromkeys(read))
    return found, [draft.graph.tensors[name].onnx_name for name in found]


def signature(draft: Draft, roots: tuple[str, ...], name: str) -> Signature:
    """Return the type and shape of ONNX tensor ``name``, computed from IR tensors ``roots``."""
    return draft.source.inferred.get(name) or _signatures(draft, roots, [name])[0]


def _signatures(draft: Draft, roots: tuple[str, ...], outputs: list[str]) -> list[Signature]:
    """Return the types and shapes of results. Inputs of zeros tell what onnxruntime cannot derive."""
    source = draft.source
    begin = list(dict.fromkeys(_begin(draft, roots)[1]))
    signatures = [(name, source.signatures[name]) for name in begin]
    model = source.submodel(source.between(outputs, begin), signatures, outputs)
    try:
        opened = session(model)
        found = opened.get_outputs()
        shapes = [value.shape for value in found]
        if not all(isinstance(size, int) for shape in shapes for size in shape):
            feed = {n: np.zeros(s.shape, helper.tensor_dtype_to_np_dtype(s.elem_type)) for n, s in signatures}
            shapes = [result.shape for result in opened.run(None, feed)]
    except Exception as error:  # onnxruntime's exceptions have no common base class
        raise Unsupported(f"onnxruntime cannot run it either: {first_line(error)}") from None
    types = [_ELEMENT_TYPES.get(value.type.removeprefix("tensor(").removesuffix(")"), 0) for value in found]
    if 0 in types:
        raise Unsupported("its result is no tensor")
    return [Signature(kind, tuple(shape)) for kind, shape in zip(types, shapes, strict=True)]


#: Of onnxruntime's names. Its ``float`` is 32 bits wide.
_ELEMENT_TYPES = {name.lower(): number for name, number in onnx.TensorProto.DataType.items()}


def _add(draft: Draft, node: str, roots: tuple[str, ...], outputs: list[str], reason: str) -> None:
    source, tensors = draft.source, draft.graph.tensors
    roots, begin = _begin(draft, roots)
    ends = [tensors[name].onnx_name for name in outputs]
    nodes = source.between(ends, begin)
    inner = source.submodel(nodes, [(name, source.signatures[name]) for name in dict.fromkeys(begin)], ends)
    model = _with_layouts(draft, inner, roots, outputs)
    op = Host(
        node, list(roots), outputs[0], nodes=[n.name for n in nodes], model=model.SerializeToString(),
        outputs=list(outputs), reason=reason,
    )  # fmt: skip
    draft.add(op)


def _with_layouts(draft: Draft, inner: onnx.ModelProto, roots: tuple[str, ...], outputs: list[str]) -> onnx.ModelProto:
    graph = onnx.compose.add_prefix_graph(inner.graph, _ONNX)
    nodes, constants = list(graph.node), list(graph.initializer)

    def reshape(source: str, shape: tuple[int, ...], result: str) -> onnx.NodeProto:
        constants.append(numpy_helper.from_array(np.array(shape, np.int64), f"{result}/shape"))
        return helper.make_node("Reshape", [source, f"{result}/shape"], [result])

    tensors = [draft.graph.tensors[name] for name in roots]
    head, seen = [], set()
    for tensor in tensors:
        if tensor.onnx_name in seen:
            continue
        seen.add(tensor.onnx_name)
        inside, layout = _ONNX + tensor.onnx_name, _layout(tensor)
        shape = draft.source.signatures[tensor.onnx_name].shape
        back = [int(axis) for axis in np.argsort(layout.perm)]
        head.append(reshape(tensor.name, layout.physical, f"{inside}/physical"))
        head.append(helper.make_node("Transpose", [f"{inside}/physical"], [f"{inside}/view"], perm=back))
        head.append(reshape(f"{inside}/view", shape, inside))
    tail, results = [], [draft.graph.tensors[name] for name in outputs]
    for tensor in results:
        inside, layout = _ONNX + tensor.onnx_name, _layout(tensor)
        tail.append(reshape(inside, layout.view, f"{inside}/view"))
        tail.append(helper.make_node("Transpose", [f"{inside}/view"], [f"{inside}/physical"], perm=list(layout.perm)))
        tail.append(reshape(f"{inside}/physical", tensor.shape, tensor.name))
    made = helper.make_graph(
        [*head, *nodes, *tail], "host", [_info(t) for t in tensors], [_info(t) for t in results], constants
    )
    return helper.make_model(made, opset_imports=inner.opset_import, ir_version=inner.ir_version)


def _layout(tensor: Tensor) -> TensorLayout:
    view = tensor.view or tensor.shape
    return TensorLayout(view, tensor.perm or tuple(range(len(view))))


def _info(tensor: Tensor) -> onnx.ValueInfoProto:
    elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype))
    return helper.make_tensor_value_info(tensor.name, elem_type, tensor.shape)
