"""Which operators of a placed model are split: each engine then computes a part of an image beside the others.

The steps of a placed model run on one engine each, so what stands alone in a chain keeps the others idle. Cuts of a
chain of segments are chosen together (a shortest path over the places where the chain can be cut): each segment is left
whole, so that its branches run side by side, or its operators are cut one by one, or it is cut as one with those around
it, so that the units of an engine work on several of its operators at a time. The cuts stay if the queues of all
engines end sooner with them once tensors have their places.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from compiler import ir
from compiler.plan.layers.fuse import fold_tables, fuse
from compiler.plan.layers.lower import lower
from compiler.plan.layers.origin import even_pieces
from compiler.plan.options import Options
from compiler.plan.order.dimensions import FRAMES, Dimension
from compiler.plan.plan import ImageCut
from compiler.plan.regions.queue_schedule import QueuedStep, by_critical_path, makespan
from compiler.plan.regions.units import layer_times
from compiler.plan.split.parts import can_be_cut, can_end_cut, cut, needed_boxes, whole_box, with_cuts
from compiler.plan.split.price import queued_cycles
from compiler.plan.split.runs import RunSegment, long_side, segments
from hw.contract.params import SocParams
from sim.cost import LAYER_TO_FULL_WORK, RegionMember, side_by_side_cycles

_LONGEST = 4  #: segments that are cut together: a region holds few layers
_ALL_TILES = 1 << 20  #: more than a layer has: readers of maxima over windows wait for all of them
_WORTH = 0.98  #: of the cycles without cuts, what the model may take with them: prices are not exact


def cuts_for_engines(graph: ir.Graph, params: SocParams, options: Options) -> list[ImageCut]:
    """Return the cuts of ``graph``, whose steps run on one engine each, that let it end sooner by the price. Raises
    :class:`compiler.ir.CompileError`."""
    work = _unit_work(graph, params)
    window = options.lv2_bytes(params) // 8 // options.engines
    wanted = [one for chain in segments(graph) for one in _Chain(graph, chain, work, options.engines, window).best()]
    cuts = [one for number, one in enumerate(wanted) if cut(with_cuts(graph, wanted[:number]), one)]
    whole = queued_cycles(graph, params, options)
    try:
        pays = bool(cuts) and queued_cycles(with_cuts(graph, cuts), params, options) < _WORTH * whole
    except ir.CompileError:  # what is split has other tiles
        pays = False
    return cuts if pays else []


class _UnitWork(NamedTuple):
    """Cycles of each unit of an engine that computes all of an operator, and bytes of its weights."""

    busy: npt.NDArray[np.float64]
    weights: int


def _unit_work(graph: ir.Graph, params: SocParams) -> dict[str, _UnitWork]:
    """By name the work of each operator, if its tensors are on chip."""
    scratch = ir.Graph(graph.name, dict(graph.tensors), graph.ops, graph.inputs, graph.outputs)
    found = {op.name: _UnitWork(np.zeros(4), 0) for op in graph.ops}
    for layer in fold_tables(scratch, fuse(scratch, lower(scratch, params), placed=True)):
        times, before = layer_times(scratch, layer, params, 1), found[layer.op.name]
        found[layer.op.name] = _UnitWork(before.busy + times.busy, before.weights + times.all_weights)
    return found


@dataclass(frozen=True)
class _Way:
    """To the end of a segment: cycles, and the cuts so far."""

    cycles: float
    cuts: tuple[ImageCut, ...] = ()


class _Chain:
    """The cuts of a chain of segments into as many parts as there are ``engines``. ``window``: bytes of weights that a
    region may have."""

    def __init__(
        self, graph: ir.Graph, chain: Sequence[RunSegment], work: Mapping[str, _UnitWork], engines: int, window: int
    ) -> None:  # fmt: skip
        self._graph, self._chain, self._work = graph, chain, work
        self._engines, self._window = engines, window

    def best(self) -> tuple[ImageCut, ...]:
        """Those with the fewest cycles."""
        ways = [_Way(0.0)]
        for end in range(1, len(self._chain) + 1):
            before, segment = ways[end - 1], self._chain[end - 1]
            found = [self._behind(before, self._whole(segment)), self._behind(before, self._one_by_one(segment))]
            for begin in range(end - 1, max(-1, end - 1 - _LONGEST), -1):
                if not self._chain[begin].cuttable:
                    break
                ops = [op for one in self._chain[begin:end] for op in one.ops]
                found.append(self._behind(ways[begin], self._as_one(ops)))
            ways.append(min(found, key=lambda way: way.cycles))
        return ways[-1].cuts

    def _behind(self, before: _Way, way: _Way) -> _Way:
        return _Way(before.cycles + way.cycles, (*before.cuts, *way.cuts))

    def _whole(self, segment: RunSegment) -> _Way:
        """Return the segment as it is, with branches on several engines."""
        number = {op.output: i for i, op in enumerate(segment.ops)}
        steps = {
            i: QueuedStep(self._alone(op), tuple(sorted({number[name] for name in op.inputs if name in number})))
            for i, op in enumerate(segment.ops)
        }
        return _Way(makespan(steps, by_critical_path(steps, self._engines), self._engines))

    def _one_by_one(self, segment: RunSegment) -> _Way:
        """Return the segment with each operator cut that can be."""
        chosen = []
        for group in self._groups(segment):
            whole = _Way(self._alone(group[0]))
            possible = all(can_be_cut(self._graph, op) for op in group)
            chosen.append(min(whole, self._as_one(group), key=lambda way: way.cycles) if possible else whole)
        return _Way(sum(way.cycles for way in chosen), tuple(one for way in chosen for one in way.cuts))

    def _groups(self, segment: RunSegment) -> list[list[ir.Operation]]:
        """Return the operators of the segment that have work, each with those that are done on its results' way."""
        groups: dict[str, list[ir.Operation]] = {}  # by result
        read = Counter(name for op in self._graph.ops for name in op.inputs)
        for op in segment.ops:
            if self._work[op.name].busy.any():
                groups[op.output] = [op]
            elif len(op.inputs) == 1 and read[op.inputs[0]] == 1 and op.inputs[0] in groups:
                groups[op.output] = [*groups.pop(op.inputs[0]), op]
        return [*groups.values()]

    def _alone(self, op: ir.Operation) -> float:
        busy = float(np.max(self._work[op.name].busy))
        return busy + LAYER_TO_FULL_WORK if busy else 0.0

    def _as_one(self, run: Sequence[ir.Operation]) -> _Way:
        """Return ``run`` in a part for each engine, with the cycles of the longest; infinite if it cannot be."""
        result = run[-1].output
        side = long_side(self._graph, result)
        whole = whole_box(self._graph, result)
        busy = any(self._work[op.name].busy.any() for op in run)
        if whole[FRAMES][1] > 1 or whole[side][1] < self._engines or not busy or not can_end_cut(run[-1]):
            return _Way(math.inf)
        cycles = [self._part(run, side, bounds) for bounds in even_pieces(whole[side][1], self._engines)]
        return _Way(max(cycles), (ImageCut(frozenset(op.name for op in run), side, self._engines),))

    def _part(self, run: Sequence[ir.Operation], side: Dimension, bounds: tuple[int, int]) -> float:
        """Return the cycles of an engine for a part of ``run``, of which it makes ``bounds`` of the result."""
        whole = whole_box(self._graph, run[-1].output)
        box = tuple(bounds if one is side else whole[one] for one in Dimension)
        boxes = needed_boxes(self._graph, run, box, side)
        if boxes is None:
            return math.inf
        shares = {
            op.output: math.prod(e - f for f, e in boxes[op.output]) / self._graph.tensors[op.output].size for op in run
        }
        found = [self._work[op.name].busy * shares[op.output] for op in run]
        alone = sum(float(busy.max()) + LAYER_TO_FULL_WORK for busy in found if busy.any())
        if sum(self._work[op.name].weights for op in run) > self._window:
            return alone
        return min(alone, side_by_side_cycles(self._members(run, found)) + LAYER_TO_FULL_WORK)

    def _members(
        self, run: Sequence[ir.Operation], busy: Sequence[npt.NDArray[np.float64]]
    ) -> list[RegionMember]:  # fmt: skip
        """Return the operators of ``run`` that have work as members of a region, with so many cycles of their units."""
        makers, found = dict[str, frozenset[int]](), list[RegionMember]()  # of a tensor: members
        pools = set[int]()
        for op, one in zip(run, busy, strict=True):
            reads = frozenset[int]().union(*(makers.get(name, ()) for name in op.inputs))
            if not one.any():  # it is part of what it reads, or nothing is done for it
                makers[op.output] = reads
                continue
            makers[op.output] = frozenset({len(found)})
            pools |= makers[op.output] if isinstance(op, ir.Pool) else frozenset()
            mac, vec, ld1, st1 = map(float, one)
            around = _ALL_TILES if pools & reads else int(isinstance(op, ir.Conv | ir.Pool) and max(_kernel(op)) > 1)
            found.append(RegionMember((ld1, mac, vec, st1), tuple(sorted(reads)), around))
        return found


def _kernel(op: ir.Conv | ir.Pool) -> tuple[int, ...]:
    return tuple(op.weights.shape[1:3]) if isinstance(op, ir.Conv) else op.kernel
