"""The graph under construction, *pending* results, and which function imports which ONNX operator.

A pending result is a real-valued expression that becomes one operator of the graph when its QuantizeLinear says how to
store it. To import an operator, write a function in ``compiler.frontend.ops`` and decorate it::

    @operator("Relu6", domain="com.example")
    def relu6(draft, node):
        value = draft.value(node.input[0])
        ...
        return [pending_or_other_value]         # one value per output of the node

It reads the values of its inputs, returns one value per output, and raises ``Unsupported("reason")`` when the
accelerator cannot run this node. ``ops/pool.py`` is a short example. Test it with a model of
``tests/support/onnx_models.py``.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import onnx

from compiler.frontend.problems import Unsupported
from compiler.frontend.source import OnnxSource, Signature, free_name
from compiler.frontend.states import states_by_name
from compiler.frontend.values import NHWC, Const, Float, Quant, QuantConst, Quantisation, Real, Shape, TensorLayout
from compiler.ir import Graph, Operation, Pad, Permute, Reshape, Tensor


@dataclass(frozen=True, kw_only=True)
class Pending:
    """A real-valued result of ``shape`` computed from the 8-bit tensors ``roots``, clamped to [low, high].

    ``reshapes``: (kind, argument) steps that ONNX applies before QuantizeLinear, see ``ops.move``.
    """

    clampable: ClassVar[bool] = True  #: whether [low, high] has a meaning: not for results of the CPU and of tables
    shape: Shape
    node: str  #: name of the ONNX node that gives the operator its name
    roots: tuple[str, ...]  #: IR tensors
    low: float = -np.inf
    high: float = np.inf
    reshapes: tuple[tuple[str, Any], ...] = ()
    base_shape: Shape = ()  #: shape before ``reshapes``

    def __post_init__(self) -> None:
        if not self.reshapes:
            object.__setattr__(self, "base_shape", self.shape)

    def clamped(self, low: float, high: float) -> Self:
        """Return the same, clamped further."""
        return dataclasses.replace(self, low=max(self.low, low), high=max(low, min(self.high, high)))

    def emit(self, draft: "Draft", target: Quantisation, name: str) -> Quant:
        """Add the operators that compute and store the value (before ``reshapes``) in a tensor for ONNX tensor
        ``name``."""
        raise NotImplementedError


Value = Const | QuantConst | Quant | Real | Float | Pending


class Draft:
    """``values`` maps names of ONNX tensors to what is known about them, ``graph`` is what has been imported so far."""

    def __init__(self, source: OnnxSource, broken_norms: dict[str, str]) -> None:
        self.source = source
        self.broken_norms = broken_norms  #: by their first node, see ``ops.written_norm``
        self.graph = Graph(source.name, source=source)
        self.states = states_by_name(source)
        self.held: dict[str, Quant] = {}  #: by output: the state in memory
        self.values: dict[str, Value] = {name: Const(data) for name, data in source.constants.items()}
        self._op_names: set[str] = set()
        self._moved: dict[tuple[str, str, Shape], str] = {}  # what is reshaped or permuted already, by what and how

    # What handlers read.

    def value(self, name: str) -> Value:
        """Return what is known about an ONNX tensor."""
        return self.values[name]

    def constant(self, node: onnx.NodeProto, index: int, what: str) -> npt.NDArray | None:
        """Return the constant input ``index`` of a node, None if it is absent; Unsupported if it is computed."""
        if index >= len(node.input) or not node.input[index]:
            return None
        value = self.value(node.input[index])
        if not isinstance(value, Const | QuantConst):
            raise Unsupported(f"its {what} {node.input[index]!r} is computed at run time; it must be a constant")
        return value.array

    def real(self, name: str) -> Real:
        """Return the dequantised 8-bit tensor ``name``; Unsupported if it is anything else."""
        value = self.value(name)
        if isinstance(value, Real):
            return value
        if isinstance(value, Const | QuantConst):
            raise Unsupported(f"its input {name!r} is a constant")
        if isinstance(value, Quant):
            raise Unsupported(f"its input {name!r} is 8-bit; the accelerator expects DequantizeLinear in front")
        raise Unsupported(
            f"its input {name!r} is not quantised (float result of {self._origin(name)}); "
            "quantise the model so that QuantizeLinear and DequantizeLinear stand in front"
        )

    def _origin(self, name: str) -> str:
        node = self.source.producers.get(name)
        return f"{node.op_type} {node.name!r}" if node is not None else "the model's input"

    # What handlers and pending values add.

    def new_tensor(self, onnx_name: str, shape: Shape, layout: TensorLayout, quant: Quantisation) -> Quant:
        """Return an 8-bit tensor in memory for ONNX tensor ``onnx_name`` of ``shape``."""
        name = self.unique(onnx_name)
        self.graph.tensors[name] = Tensor(
            name, layout.physical, quant.dtype, float(quant.scale), quant.zero_point,
            onnx_name=onnx_name, perm=layout.perm, view=layout.view,
        )  # fmt: skip
        elem_type = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(quant.dtype))
        self.source.signatures.setdefault(onnx_name, Signature(elem_type, shape))
        return Quant(name, shape, layout, quant.dtype)

    def new_inner(self, label: str, layout: TensorLayout, quant: Quantisation) -> Quant:
        """Return an 8-bit tensor in memory that ONNX does not have, called after ``label``."""
        name = self.unique(label)
        self.graph.tensors[name] = Tensor(name, layout.physical, quant.dtype, float(quant.scale), quant.zero_point)
        return Quant(name, layout.view, layout, quant.dtype)

    def new_constant(self, name: str, data: npt.NDArray, quant: Quantisation) -> str:
        """Return a constant 8-bit tensor, already in memory order."""
        name = self.unique(name)
        self.graph.tensors[name] = Tensor(
            name, data.shape, quant.dtype, float(quant.scale), quant.zero_point, data=np.ascontiguousarray(data)
        )
        return name

    def unique(self, wanted: str) -> str:
        """``wanted``, with a number behind if a tensor of that name exists."""
        return free_name(wanted, self.graph.tensors)

    def add(self, op: Operation) -> Operation:
        """Append an operator; makes its name unique and finds the ONNX nodes it stands for."""
        op.name = free_name(op.name, self._op_names)
        self._op_names.add(op.name)
        if not op.nodes:
            op.nodes = self._nodes(op)
        self.graph.ops.append(op)
        return op

    def _nodes(self, op: Operation) -> list[str]:
        begin = [self.origin(name) for name in op.inputs if self.graph.tensors[name].data is None]
        end = self.graph.tensors[op.output].onnx_name
        if not end or not all(begin):
            return []
        return [node.name for node in self.source.between([end], begin)]

    def origin(self, tensor: str) -> str:
        """Return the ONNX tensor that ``tensor`` holds, maybe moved and padded since; empty if its values are not in
        ONNX."""
        while not self.graph.tensors[tensor].onnx_name:
            op = self.graph.producer(tensor)
            if not isinstance(op, Permute | Reshape | Pad):
                return ""
            tensor = op.inputs[0]
        return self.graph.tensors[tensor].onnx_name

    def quantisation(self, tensor: str) -> Quantisation:
        """Return the parameters of an IR tensor."""
        info = self.graph.tensors[tensor]
        return Quantisation(np.float32(info.scale), info.zero_point, info.dtype)

    # Layouts.

    def dense(self, quant: Quant) -> Quant:
        """Return the tensor with its padding in memory."""
        if quant.padding is None:
            return quant
        source, (n, c, h, w) = self.image(quant.inner), quant.shape
        name, held = self.unique(f"{quant.tensor}:padded"), self.graph.tensors[source]
        self.graph.tensors[name] = Tensor(name, (n, h, w, c), quant.dtype, held.scale, held.zero_point)
        self.add(Pad(f"{quant.tensor}:pad", [source], name, pads=quant.padding.pads, value=quant.padding.value))
        return Quant(name, quant.shape, TensorLayout(quant.shape, NHWC), quant.dtype)

    def relayout(self, quant: Quant, layout: TensorLayout) -> str:
        """Return the IR tensor that holds ``quant`` as ``layout`` says; moves data only if it must, and a constant's
        now."""
        if self.graph.tensors[quant.tensor].data is not None:
            return self._constant_as(quant, layout)
        quant = self.dense(quant)
        if not quant.layout.same_order(layout):
            if quant.layout.view == layout.view:
                quant = self._permuted(quant, layout)
            else:
                plain = TensorLayout.plain(quant.layout.view)
                if not quant.layout.same_order(plain):
                    quant = self._permuted(quant, plain)
                quant = Quant(
                    self.reshaped(quant.tensor, layout.view),
                    quant.shape, TensorLayout.plain(layout.view), quant.dtype,
                )  # fmt: skip
                if not quant.layout.same_order(layout):
                    quant = self._permuted(quant, layout)
        return self.reshaped(quant.tensor, layout.physical)

    def _constant_as(self, quant: Quant, layout: TensorLayout) -> str:
        """Return the constant ``quant`` as a constant in the order of ``layout``."""
        held = self.graph.tensors[quant.tensor]
        assert held.data is not None
        values = held.data.reshape(quant.layout.physical).transpose(np.argsort(quant.layout.perm))
        moved = values.reshape(layout.view).transpose(layout.perm)
        if moved.shape == held.shape and quant.layout.same_order(layout):
            return quant.tensor
        return self.new_constant(f"{quant.tensor}:permuted", moved, self.quantisation(quant.tensor))

    def image(self, quant: Quant) -> str:
        """Return the IR tensor (N, H, W, C) of an NCHW ONNX tensor, or (N, L, C) of NCL: one row for operators on
        images."""
        return self.relayout(quant, TensorLayout.image(quant.shape))

    def _permuted(self, quant: Quant, layout: TensorLayout) -> Quant:
        """``quant`` in another order of its physical axes."""
        source = self.reshaped(quant.tensor, quant.layout.physical)
        before = self.graph.tensors[source]
        perm = tuple(quant.layout.perm.index(axis) for axis in layout.perm)
        known = self._moved.get(("permute", source, perm))
        if known is not None:
            return Quant(known, quant.shape, layout, quant.dtype)
        name = self._moved["permute", source, perm] = self.unique(f"{quant.tensor}:permuted")
        tensor = Tensor(name, layout.physical, quant.dtype, before.scale, before.zero_point)
        if before.onnx_name and tuple(before.view[axis] for axis in before.perm) == quant.layout.physical:
            tensor.onnx_name, tensor.view = before.onnx_name, before.view
            tensor.perm = tuple(before.perm[axis] for axis in perm)
        self.graph.tensors[name] = tensor
        self.add(Permute(name, [source], name, perm=perm))
        return Quant(name, quant.shape, layout, quant.dtype)

    def reshaped(self, tensor: str, shape: Shape) -> str:
        """``tensor`` under another shape, in the same order."""
        before = self.graph.tensors[tensor]
        if before.shape == shape:
            return tensor
        known = self._moved.get(("reshape", tensor, shape))
        if known is not None:
            return known
        name = self._moved["reshape", tensor, shape] = self.unique(f"{tensor}:" + "x".join(map(str, shape)))
        self.graph.tensors[name] = dataclasses.replace(before, name=name, shape=shape, data=None)
        self.add(Reshape(name, [tensor], name))
        return name

    def alias(self, quant: Quant, params: Quantisation) -> Quant:
        """Return the same bytes under other quantisation parameters."""
        before = self.graph.tensors[quant.tensor]
        name = self.unique(f"{quant.tensor}:reinterpreted")
        self.graph.tensors[name] = dataclasses.replace(
            before, name=name, scale=float(params.scale), zero_point=params.zero_point, data=None
        )
        self.add(Reshape(name, [quant.tensor], name))
        return Quant(name, quant.shape, quant.layout, quant.dtype, quant.padding)


Handler = Callable[[Draft, onnx.NodeProto], list[Value]]

HANDLERS: dict[tuple[str, str], Handler] = {}


def operator(*op_types: str, domain: str = "") -> Callable[[Handler], Handler]:
    """Register a function as the importer of these operators."""

    def register(handler: Handler) -> Handler:
        for op_type in op_types:
            HANDLERS[domain, op_type] = handler
        return handler

    return register


def attributes(node: onnx.NodeProto) -> dict:
    """Return a node's attributes as Python values; strings decoded."""
    values = {}
    for attribute in node.attribute:
        value = onnx.helper.get_attribute_value(attribute)
        values[attribute.name] = value.decode() if isinstance(value, bytes) else value
    return values
