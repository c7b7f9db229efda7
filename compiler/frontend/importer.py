"""The walk over the ONNX graph: one pass in topological order that gives every tensor a :class:`Value`.

Operators of the IR appear where 8-bit tensors do: at QuantizeLinear, at QOperator nodes, and at host operators. In the
end permutations that follow each other are merged, and operators of one tensor become tables.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import onnx

from compiler.frontend import inputs
from compiler.frontend.draft import HANDLERS, Draft, Pending, Value
from compiler.frontend.filled_rows import count_rows
from compiler.frontend.float_ends import ends_of
from compiler.frontend.joined_permutes import merge_permutes
from compiler.frontend.joined_tables import join_tables
from compiler.frontend.moved_functions import moved_function
from compiler.frontend.ops import host, move, written_norm
from compiler.frontend.problems import NodeProblem, Unsupported, UnsupportedModel, advice, first_line
from compiler.frontend.shared_heads import share_heads
from compiler.frontend.shuffles import deal_channels
from compiler.frontend.source import OnnxSource
from compiler.frontend.values import Const, Float, QuantConst, Real, Shape
from compiler.ir import Graph, Port

_FOLLOWS = "it reads a result of the CPU in float"


class Importer:
    """One import. ``ends``: why the CPU takes over nodes that the accelerator cannot run, by name, see
    :mod:`compiler.frontend.float_ends`; ``fallback``: it takes over all others, too."""

    def __init__(self, source: OnnxSource, ends: Mapping[str, str], fallback: bool, broken_norms: dict[str, str]):
        self.source, self.draft = source, Draft(source, broken_norms)
        self.ends, self.fallback = ends, fallback
        self.problems: list[NodeProblem] = []
        self.fallbacks: list[NodeProblem] = []  #: nodes that the accelerator cannot run and the CPU does
        self._cpu: set[str] = set()  # outputs of nodes in ``fallbacks``
        self._broken: set[str] = set()  # outputs of unsupported nodes: what depends on them is not reported

    def walk(self) -> None:
        """Import everything; what cannot run is in ``problems``."""
        inputs.declare(self.draft)
        for node in self.source.model.graph.node:
            self._import(node)
        for value in self.source.model.graph.output if not self.problems else ():
            try:
                self._output(value.name)
            except Unsupported as error:
                node = self.source.producers.get(value.name)
                name, kind = (node.name, node.op_type) if node else (value.name, "output")
                self.problems.append(NodeProblem(name, kind, str(error)))

    def _import(self, node: onnx.NodeProto) -> None:
        if self._broken.intersection(node.input):
            self._broken.update(node.output)
            return
        try:
            for name, value in zip(node.output, self._values_of(node), strict=False):
                self.draft.values[name] = value
                follows = isinstance(value, host.OnHost) and value.node != node.name
                if follows and self.fallbacks and self.fallbacks[-1].name != node.name:
                    self._refused(node, _FOLLOWS, follows=True)
        except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
            # The checker accepts models whose shapes and attributes contradict each other.
            reason = f"its inputs and attributes do not fit together ({type(error).__name__}: {error})"
            self.problems.append(NodeProblem(node.name, node.op_type, reason))
            self._broken.update(node.output)
        except Unsupported as error:
            self.problems.append(NodeProblem(node.name, node.op_type, str(error)))
            self._broken.update(node.output)

    def _values_of(self, node: onnx.NodeProto) -> list[Value]:
        known = [self.draft.values[name] for name in node.input if name]
        if all(isinstance(value, Const | QuantConst) for value in known) and not _stays_quantised(node, known):
            return self._fold(node)
        if node.op_type == "Shape":
            return [self._constant(node.output[0], _shape_of(node, self.draft.value(node.input[0]).shape))]
        inner = next((value for value in known if isinstance(value, written_norm.Inner)), None)
        handler = HANDLERS.get((node.domain.replace("ai.onnx", ""), node.op_type))
        try:
            if inner is not None:
                return written_norm.continued(self.draft, node, inner)
            if handler is None:
                raise Unsupported("no such operator on the accelerator")
            return moved_function(self.draft, node, handler) or handler(self.draft, node)
        except Unsupported as error:
            if node.name in self.ends:
                return host.fall_back(self.draft, node, self.ends[node.name])
            if not self.fallback:
                raise
            self._refused(node, str(error), follows=handler is not None and self._reads_cpu(node))
            return host.fall_back(self.draft, node, str(error))

    def _fold(self, node: onnx.NodeProto) -> list[Value]:
        for name in node.input:
            value = self.draft.values.get(name)
            if isinstance(value, QuantConst):
                self.source.constants.setdefault(name, value.array)
        try:
            results = self.source.evaluate(node)
        except Exception as error:  # onnxruntime's exceptions have no common base class
            raise Unsupported(f"onnxruntime cannot evaluate it: {first_line(error)}") from None
        names = [name for name in node.output if name]
        folded = {name: self._constant(name, result) for name, result in zip(names, results, strict=True)}
        return [folded.get(name, Const(np.zeros(0))) for name in node.output]

    def _constant(self, name: str, data: npt.NDArray) -> Const:
        self.source.constants[name] = data
        return Const(data)

    # Ends.

    def _output(self, name: str) -> None:
        value = self.draft.value(name)
        if isinstance(value, written_norm.Inner):
            raise written_norm.broken(self.draft, value, f"its {value.called} is an output of the model")
        if isinstance(value, Pending):
            known = self.source.inferred.get(name)
            kind = "an int32" if known and known.elem_type == onnx.TensorProto.INT32 else "a float"
            reason = f"the model output {name!r} is {kind} result; quantise it (QuantizeLinear, DequantizeLinear)"
            if not isinstance(value, host.OnHost):
                maker = self.source.producers[name]
                if maker.name in self.ends:
                    reason = str(NodeProblem(maker.name, maker.op_type, self.ends[maker.name]))
                elif not self.fallback:
                    raise Unsupported(reason)
                else:
                    self._refused(maker, reason)
            value = host.as_float(self.draft, name, reason)
        if isinstance(value, Const | QuantConst):
            raise Unsupported(f"the model output {name!r} is a constant")
        if isinstance(value, Float):
            rank = tuple(range(len(value.shape)))
            self.draft.graph.outputs.append(Port(name, value.dtype, value.shape, value.tensor, rank, False))
            return
        quant = self.draft.dense(value.quant if isinstance(value, Real) else value)
        quant = self.draft.held.get(name, quant)
        tensor = self.draft.reshaped(quant.tensor, quant.layout.physical)
        back = tuple(int(axis) for axis in np.argsort(quant.layout.perm))
        dtype = "float32" if isinstance(value, Real) else quant.dtype
        self.draft.graph.outputs.append(Port(name, dtype, value.shape, tensor, back, isinstance(value, Real)))

    def _reads_cpu(self, node: onnx.NodeProto) -> bool:
        """Return whether ``node`` reads a result of a node that was refused."""
        return not self._cpu.isdisjoint(node.input)

    def _refused(self, node: onnx.NodeProto, reason: str, *, follows: bool = False) -> None:
        """Note a node that the CPU takes over because that is allowed."""
        if node.name in self.ends:
            return
        self.fallbacks.append(NodeProblem(node.name, node.op_type, reason, follows))
        self._cpu.update(node.output)


def imported(source: OnnxSource, fallback: bool) -> Graph:
    """Return the graph of a model. Raises :class:`UnsupportedModel` with all nodes that cannot run."""
    ends = ends_of(source)
    found = _walked(source, ends, fallback)
    if found.problems:
        nodes = found.problems if fallback else _all_refused(source, ends, found.problems)
        tried = fallback or all(node.name in ends for node in nodes)
        raise UnsupportedModel(source.name, nodes, advice(source.model, tried))
    graph = found.draft.graph
    merge_permutes(graph)
    deal_channels(graph)
    join_tables(graph)
    share_heads(graph)
    _prune(graph)
    count_rows(graph)
    return graph


def _walked(source: OnnxSource, ends: Mapping[str, str], fallback: bool) -> Importer:
    """Return the import of ``source``, which stays as it is. It begins again where a layer normalisation that is
    written out turned out not to be whole."""
    broken: dict[str, str] = {}
    while True:
        known, own = len(broken), source.copied()
        walk = Importer(own, ends, fallback, broken)
        walk.walk()
        if len(broken) == known:
            return walk


def _all_refused(source: OnnxSource, ends: Mapping[str, str], found: list[NodeProblem]) -> list[NodeProblem]:
    """Return all nodes of a model that the accelerator cannot run, in its order: ``found``, and what the walk finds
    behind them if the CPU takes them over."""
    survey = _walked(source, ends, fallback=True)
    problems = {node.name: node for node in (*survey.problems, *survey.fallbacks, *found)}
    return sorted(problems.values(), key=lambda node: source.order.get(node.name, len(source.order)))


def _prune(graph: Graph) -> None:
    """Drop operators and tensors that no output needs."""
    needed, kept = {port.tensor for port in graph.outputs}, []
    for op in reversed(graph.ops):
        if needed.intersection(op.results):
            kept.append(op)
            needed.update(op.inputs, op.results)
    graph.ops = kept[::-1]
    graph.numbers = {name: number for name, number in graph.numbers.items() if name in needed}
    needed.update(port.tensor for port in graph.inputs)
    graph.tensors = {name: tensor for name, tensor in graph.tensors.items() if name in needed}


def _stays_quantised(node: onnx.NodeProto, known: list[Value]) -> bool:
    """True for nodes that are not folded, so that weights stay integers."""
    if node.op_type == "DequantizeLinear":
        return True
    return node.op_type in move.MOVES and isinstance(known[0], QuantConst)


def _shape_of(node: onnx.NodeProto, shape: Shape) -> npt.NDArray:
    bounds = {attribute.name: attribute.i for attribute in node.attribute}
    return np.array(shape[bounds.get("start", 0) : bounds.get("end", len(shape))], np.int64)
