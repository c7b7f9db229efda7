"""Where the operators of a graph can be cut into runs: a run reads one tensor of those before it, and hands on one."""

from dataclasses import dataclass

from compiler import ir
from compiler.plan.order.dimensions import HEIGHT, WIDTH, Dimension
from compiler.plan.split.frames import frames_apart
from compiler.plan.split.parts import can_be_cut


@dataclass(frozen=True)
class RunSegment:
    """Operators between two neighbouring places where a graph can be cut. ``source`` and ``result``: the tensors that
    come in and go out; ``cuttable``: whether all operators can be cut into parts of an image, and nothing that they
    make in between leaves the graph; ``frames``: how many frames they keep apart then (1: none)."""

    ops: tuple[ir.Operation, ...]
    source: str
    result: str
    cuttable: bool
    frames: int


def segments(graph: ir.Graph) -> list[list[RunSegment]]:
    """Chains of segments, in order; between chains more than one tensor is handed on, or one that leaves the graph."""
    leaving = {port.tensor for port in graph.outputs}
    last = {name: number for number, op in enumerate(graph.ops) for name in op.inputs}
    alive = {port.tensor for port in graph.inputs if port.tensor in last}
    chains, begin, source = [list[RunSegment]()], 0, _only(alive)
    for number, op in enumerate(graph.ops):
        alive = {name for name in alive | {op.output} if last.get(name, -1) > number}
        ends = alive or {op.output}
        if len(ends) > 1 or op.output not in ends:
            continue
        ops = tuple(graph.ops[begin : number + 1])
        if source:
            inner = leaving.isdisjoint(one.output for one in ops[:-1])
            cuttable = inner and all(can_be_cut(graph, one) for one in ops)
            chains[-1].append(RunSegment(ops, source, op.output, cuttable, frames_apart(graph, ops) if inner else 1))
        if not source or op.output in leaving:
            chains.append([])
        begin, source = number + 1, op.output
    return [chain for chain in chains if chain]


def long_side(graph: ir.Graph, name: str) -> Dimension:
    """Return the dimension along which an image is longer, height if it is square."""
    _, height, width, _ = graph.tensors[name].nhwc
    return HEIGHT if height >= width else WIDTH


def _only(names: set[str]) -> str:
    return next(iter(names)) if len(names) == 1 else ""
