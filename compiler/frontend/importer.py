"""The walk over the ONNX graph: one pass in topological order that gives every tensor a :class:`Value`.

Operators of the IR appear where 8-bit tensors do: at QuantizeLinear, at QOperator nodes, and at host operators.
"""

import numpy as np
import numpy.typing as npt
import onnx

from compiler.frontend import inputs, ops
from compiler.frontend.layout import NHWC, Layout, Shape
from compiler.frontend.problems import NodeProblem, Unsupported, UnsupportedModel
from compiler.frontend.registry import HANDLERS
from compiler.frontend.source import Signature, Source
from compiler.frontend.values import Const, Float, Pending, Quant, QuantConst, Quantisation, Real, Value
from compiler.ir import Graph, Op, Pad, Permute, Port, Reshape, Tensor


class Importer:
    """State of one import. ``values`` maps ONNX tensor names to what is known about them."""

    def __init__(self, source: Source, fallback: bool = False):
        self.source = source
        self.fallback = fallback
        self.graph = Graph(source.name, source=source)
        self.values: dict[str, Value] = {name: Const(data) for name, data in source.constants.items()}
        self.problems: list[NodeProblem] = []
        self._broken: set[str] = set()  # outputs of unsupported nodes: what depends on them is not reported
        self._op_names: set[str] = set()

    def run(self) -> Graph:
        """Import everything. Raises :class:`UnsupportedModel` with all nodes that cannot run."""
        inputs.declare(self)
        for node in self.source.model.graph.node:
            self._import(node)
        if self.problems:
            raise UnsupportedModel(self.source.name, self.problems)
        for value in self.source.model.graph.output:
            try:
                self._output(value.name)
            except Unsupported as error:
                node = self.source.producers.get(value.name)
                name, kind = (node.name, node.op_type) if node else (value.name, "output")
                self.problems.append(NodeProblem(name, kind, str(error)))
        if self.problems:
            raise UnsupportedModel(self.source.name, self.problems)
        self._prune()
        return self.graph

    def _import(self, node: onnx.NodeProto) -> None:
        if self._broken.intersection(node.input):
            self._broken.update(node.output)
            self._report_unknown(node)
            return
        try:
            for name, value in zip(node.output, self._values_of(node), strict=False):
                self.values[name] = value
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            # The checker accepts models whose shapes and attributes contradict each other.
            reason = f"its inputs and attributes do not fit together ({type(error).__name__}: {error})"
            self.problems.append(NodeProblem(node.name, node.op_type, reason))
            self._broken.update(node.output)
        except Unsupported as error:
            self.problems.append(NodeProblem(node.name, node.op_type, str(error)))
            self._broken.update(node.output)

    def _report_unknown(self, node: onnx.NodeProto) -> None:
        if (node.domain.replace("ai.onnx", ""), node.op_type) not in HANDLERS and not self.fallback:
            self.problems.append(NodeProblem(node.name, node.op_type, "no such operator on the accelerator"))

    def _values_of(self, node: onnx.NodeProto) -> list[Value]:
        known = [self.values[name] for name in node.input if name]
        if all(isinstance(value, Const | QuantConst) for value in known) and not _stays_quantised(node, known):
            return self._fold(node)
        if node.op_type == "Shape":
            return [self._constant(node.output[0], _shape_of(node, self.value(node.input[0]).shape))]
        handler = HANDLERS.get((node.domain.replace("ai.onnx", ""), node.op_type))
        try:
            if handler is None:
                raise Unsupported("no such operator on the accelerator")
            return handler(self, node)
        except Unsupported as error:
            if not self.fallback:
                raise
            return ops.host.fall_back(self, node, str(error))

    def _fold(self, node: onnx.NodeProto) -> list[Value]:
        for name in node.input:
            value = self.values.get(name)
            if isinstance(value, QuantConst):
                self.source.constants.setdefault(name, value.array)
        try:
            results = self.source.evaluate(node)
        except Exception as error:  # onnxruntime's exceptions have no common base class
            raise Unsupported(f"onnxruntime cannot evaluate it: {str(error).splitlines()[0]}") from None
        names = [name for name in node.output if name]
        folded = {name: self._constant(name, result) for name, result in zip(names, results, strict=True)}
        return [folded.get(name, Const(np.zeros(0))) for name in node.output]

    def _constant(self, name: str, data: npt.NDArray) -> Const:
        self.source.constants[name] = data
        return Const(data)

    # What handlers read.

    def value(self, name: str) -> Value:
        """What is known about an ONNX tensor."""
        return self.values[name]

    def constant(self, node: onnx.NodeProto, index: int, what: str) -> npt.NDArray | None:
        """The constant input ``index`` of a node, None if it is absent; Unsupported if it is computed."""
        if index >= len(node.input) or not node.input[index]:
            return None
        value = self.value(node.input[index])
        if not isinstance(value, Const | QuantConst):
            raise Unsupported(f"its {what} {node.input[index]!r} is computed at run time; it must be a constant")
        return value.array

    def real(self, name: str) -> Real:
        """The dequantised 8-bit tensor ``name``; Unsupported if it is anything else."""
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

    def new_tensor(self, onnx_name: str, shape: Shape, layout: Layout, quant: Quantisation) -> Quant:
        """An 8-bit tensor in memory for ONNX tensor ``onnx_name`` of ``shape``."""
        name = self.unique(onnx_name)
        self.graph.tensors[name] = Tensor(
            name, layout.physical, quant.dtype, float(quant.scale), quant.zero_point,
            onnx_name=onnx_name, perm=layout.perm, view=layout.view,
        )  # fmt: skip
        elem_type = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(quant.dtype))
        self.source.signatures.setdefault(onnx_name, Signature(elem_type, shape))
        return Quant(name, shape, layout, quant.dtype)

    def new_constant(self, name: str, data: npt.NDArray, quant: Quantisation) -> str:
        """A constant 8-bit tensor, already in memory order."""
        name = self.unique(name)
        self.graph.tensors[name] = Tensor(
            name, data.shape, quant.dtype, float(quant.scale), quant.zero_point, data=np.ascontiguousarray(data)
        )
        return name

    def unique(self, wanted: str) -> str:
        """``wanted``, with a number behind if a tensor of that name exists."""
        name, count = wanted, 1
        while name in self.graph.tensors:
            count += 1
            name = f"{wanted}#{count}"
        return name

    def add(self, op: Op) -> Op:
        """Append an operator; makes its name unique and finds the ONNX nodes it stands for."""
        base, count = op.name, 1
        while op.name in self._op_names:
            count += 1
            op.name = f"{base}#{count}"
        self._op_names.add(op.name)
        if not op.nodes:
            op.nodes = self._nodes(op)
        self.graph.ops.append(op)
        return op

    def _nodes(self, op: Op) -> list[str]:
        begin = [self.origin(name) for name in op.inputs if self.graph.tensors[name].data is None]
        end = self.graph.tensors[op.output].onnx_name
        if not end or not all(begin):
            return []
        return [node.name for node in self.source.between([end], begin)]

    def origin(self, tensor: str) -> str:
        """The ONNX tensor that ``tensor`` holds, maybe moved and padded since; empty if its values are not in ONNX."""
        while not self.graph.tensors[tensor].onnx_name:
            op = self.graph.producer(tensor)
            if not isinstance(op, Permute | Reshape | Pad):
                return ""
            tensor = op.inputs[0]
        return self.graph.tensors[tensor].onnx_name

    def quantisation(self, tensor: str) -> Quantisation:
        """Parameters of an IR tensor."""
        info = self.graph.tensors[tensor]
        return Quantisation(np.float32(info.scale), info.zero_point, info.dtype)

    # Layouts.

    def dense(self, quant: Quant) -> Quant:
        """The tensor with its padding in memory."""
        if quant.padding is None:
            return quant
        top, left, bottom, right = quant.padding.pads
        n, c, h, w = quant.shape
        inner = Quant(quant.tensor, (n, c, h - top - bottom, w - left - right), quant.layout, quant.dtype)
        source = self.image(inner)
        params = self.quantisation(source)
        name = self.unique(f"{quant.tensor}:padded")
        self.graph.tensors[name] = Tensor(name, (n, h, w, c), quant.dtype, float(params.scale), params.zero_point)
        self.add(Pad(f"{quant.tensor}:pad", [source], name, pads=quant.padding.pads, value=quant.padding.value))
        return Quant(name, quant.shape, Layout(quant.shape, NHWC), quant.dtype)

    def relayout(self, quant: Quant, layout: Layout) -> str:
        """The IR tensor that holds ``quant`` as ``layout`` says; moves data only if it must."""
        quant = self.dense(quant)
        if not quant.layout.same_order(layout):
            if quant.layout.view == layout.view:
                quant = self._permuted(quant, layout)
            else:
                plain = Layout.plain(quant.layout.view)
                if not quant.layout.same_order(plain):
                    quant = self._permuted(quant, plain)
                quant = Quant(
                    self._reshaped(quant.tensor, layout.view),
                    quant.shape, Layout.plain(layout.view), quant.dtype,
                )  # fmt: skip
                if not quant.layout.same_order(layout):
                    quant = self._permuted(quant, layout)
        return self._reshaped(quant.tensor, layout.physical)

    def image(self, quant: Quant) -> str:
        """The IR tensor (N, H, W, C) of an NCHW ONNX tensor, or (N, L, C) of NCL: one row for operators on images."""
        if len(quant.shape) == 3:
            return self.relayout(quant, Layout(quant.shape, (0, 2, 1)))
        return self.relayout(quant, Layout(quant.shape, NHWC))

    def _permuted(self, quant: Quant, layout: Layout) -> Quant:
        """``quant`` in another order of its physical axes."""
        source = self._reshaped(quant.tensor, quant.layout.physical)
        before = self.graph.tensors[source]
        params = self.quantisation(source)
        perm = tuple(quant.layout.perm.index(axis) for axis in layout.perm)
        name = self.unique(f"{quant.tensor}:permuted")
        tensor = Tensor(name, layout.physical, quant.dtype, float(params.scale), params.zero_point)
        if before.onnx_name and tuple(before.view[axis] for axis in before.perm) == quant.layout.physical:
            tensor.onnx_name, tensor.view = before.onnx_name, before.view
            tensor.perm = tuple(before.perm[axis] for axis in perm)
        self.graph.tensors[name] = tensor
        self.add(Permute(name, [source], name, perm=perm))
        return Quant(name, quant.shape, layout, quant.dtype)

    def _reshaped(self, tensor: str, shape: Shape) -> str:
        before = self.graph.tensors[tensor]
        if before.shape == shape:
            return tensor
        name = self.unique(f"{tensor}:" + "x".join(map(str, shape)))
        self.graph.tensors[name] = Tensor(
            name, shape, before.dtype, before.scale, before.zero_point,
            onnx_name=before.onnx_name, perm=before.perm, view=before.view,
        )  # fmt: skip
        self.add(Reshape(name, [tensor], name))
        return name

    def alias(self, quant: Quant, params: Quantisation) -> Quant:
        """The same bytes under other quantisation parameters."""
        before = self.graph.tensors[quant.tensor]
        name = self.unique(f"{quant.tensor}:reinterpreted")
        self.graph.tensors[name] = Tensor(
            name, before.shape, before.dtype, float(params.scale), params.zero_point,
            onnx_name=before.onnx_name, perm=before.perm, view=before.view,
        )  # fmt: skip
        self.add(Reshape(name, [quant.tensor], name))
        return Quant(name, quant.shape, quant.layout, quant.dtype, quant.padding)

    # Ends.

    def _output(self, name: str) -> None:
        value = self.value(name)
        if isinstance(value, Pending):
            reason = f"the model output {name!r} is a float result; quantise it (QuantizeLinear, DequantizeLinear)"
            if not self.fallback and not isinstance(value, ops.host.OnHost):
                raise Unsupported(reason)
            value = ops.host.as_float(self, name, reason)
        if isinstance(value, Const | QuantConst):
            raise Unsupported(f"the model output {name!r} is a constant")
        if isinstance(value, Float):
            rank = tuple(range(len(value.shape)))
            self.graph.outputs.append(Port(name, value.dtype, value.shape, value.tensor, rank, False))
            return
        quant = self.dense(value.quant if isinstance(value, Real) else value)
        tensor = self._reshaped(quant.tensor, quant.layout.physical)
        back = tuple(int(axis) for axis in np.argsort(quant.layout.perm))
        dtype = "float32" if isinstance(value, Real) else quant.dtype
        self.graph.outputs.append(Port(name, dtype, value.shape, tensor, back, isinstance(value, Real)))

    def _prune(self) -> None:
        """Drop operators and tensors that no output needs."""
        needed = {port.tensor for port in self.graph.outputs}
        kept = []
        for op in reversed(self.graph.ops):
            made = getattr(op, "outputs", [op.output])
            if needed.intersection(made):
                kept.append(op)
                needed.update(op.inputs, made)
        self.graph.ops = kept[::-1]
        needed.update(port.tensor for port in self.graph.inputs)
        self.graph.tensors = {name: t for name, t in self.graph.tensors.items() if name in needed}


def _stays_quantised(node: onnx.NodeProto, known: list[Value]) -> bool:
    """True for nodes that are not folded, so that weights stay integers."""
    if node.op_type == "DequantizeLinear":
        return True
    return node.op_type in ops.move.MOVES and isinstance(known[0], QuantConst)


def _shape_of(node: onnx.NodeProto, shape: Shape) -> npt.NDArray:
    bounds = {attribute.name: attribute.i for attribute in node.attribute}
    return np.array(shape[bounds.get("start", 0) : bounds.get("end", len(shape))], np.int64)
