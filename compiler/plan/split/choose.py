"""Which runs of operators are split, and into how many parts: those where a price says that it pays.

Without a tensor that is spilled nothing is split. Otherwise the cuts of each chain are chosen together, by what every
run takes whole or in the fewest parts that keep its inner tensors on chip (a shortest path over the places where the
chain can be cut, and whether the tensor there is on chip). Then tensors are placed, with and without the cuts: they
stay only if that saves cycles, and each is left out in turn. At last batches are cut into more parts while regions of
several frames take fewer cycles.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from compiler import ir
from compiler.plan.options import Options
from compiler.plan.order.dimensions import CHANNELS, FRAMES
from compiler.plan.plan import ImageCut
from compiler.plan.split.engine_cuts import cuts_for_engines
from compiler.plan.split.estimate import OperatorWork, Pieces, RunEstimate, Sizes, operator_work, parts_of
from compiler.plan.split.parts import can_be_cut, can_end_cut, cut, frames_of, with_cuts
from compiler.plan.split.price import joined_cycles, placed_cycles
from compiler.plan.split.runs import RunSegment, long_side, segments
from hw.contract.params import SocParams

_WORTH = 0.99  #: of the cycles of the whole graph, what it may take with its cuts: prices are not exact
_LONGEST = 12  #: segments that are cut together
_MOST = 32  #: parts
_TIGHT = (1.0, 0.8)  #: of the memory for tensors, what is taken to be there: not all buffers can be packed


def cuts_that_pay(graph: ir.Graph, params: SocParams, options: Options) -> list[ImageCut]:
    """Return which operators of ``graph`` to split: where that keeps tensors on chip and takes fewer cycles by the
    price; of placed models where engines then compute parts side by side. Observed models keep their operators. Raises
    :class:`compiler.ir.CompileError`."""
    if not options.split or options.observe:
        return []
    if options.placed:
        return cuts_for_engines(graph, params, options)
    whole, moved, memory = placed_cycles(graph, params, options)
    if not moved:
        return []
    work, best, kept = operator_work(graph, params, options.engines), _WORTH * whole, list[ImageCut]()
    known: dict[tuple[str, str, Pieces], Sizes | None] = {}
    for tight in _TIGHT:
        room = int(tight * memory)
        cuts = [one for chain in segments(graph) for one in _Chain(graph, chain, work, room, params, known).best()]
        if cuts == kept:
            continue
        cycles = _price(graph, cuts, params, options)
        if cycles < best:
            best, kept = cycles, cuts
    for one in list(kept):
        fewer = [other for other in kept if other is not one]
        cycles = _price(graph, fewer, params, options) if fewer else math.inf
        if cycles < best:
            best, kept = cycles, fewer
    kept = _finer(graph, kept, params, options)
    return [one for number, one in enumerate(kept) if cut(with_cuts(graph, kept[:number]), one)]


def _finer(graph: ir.Graph, kept: list[ImageCut], params: SocParams, options: Options) -> list[ImageCut]:
    """Return ``kept`` with frames in more parts, in all cuts together, where these spill no more: parts of different
    frames run side by side, which the price of layers one after the other does not know. It tells among products of
    computed matrices and softmax; images, whose convolutions keep the arrays busy, stay as they are."""
    finer = {number: counts for number, one in enumerate(kept) if (counts := _more_parts(graph, one))}
    if not finer:
        return kept
    least, spilled = _joined(graph, kept, params, options)
    for step in range(max(map(len, finer.values()))):
        tried = list(kept)
        for number, counts in finer.items():
            tried[number] = replace(kept[number], pieces=counts[min(step, len(counts) - 1)])
        cycles, moved = _joined(graph, tried, params, options)
        if cycles >= least or moved > spilled:
            break
        kept, least = tried, cycles
    return kept


def _more_parts(graph: ir.Graph, one: ImageCut) -> list[int]:
    """Return into how many more parts a cut by frames may go, fewest first; none of images."""
    run = [op for op in graph.ops if op.name in one.operators]
    if one.dimension is not FRAMES or all(can_be_cut(graph, op) for op in run):
        return []
    return [count for count in parts_of(frames_of(graph, run), single=False) if count > one.pieces]


def _joined(graph: ir.Graph, cuts: Sequence[ImageCut], params: SocParams, options: Options) -> tuple[float, int]:
    """Return the cycles of ``graph`` with ``cuts`` and regions, and the bytes that it spills."""
    split = with_cuts(graph, cuts)
    try:
        return joined_cycles(split, params, options), placed_cycles(split, params, options)[1]
    except ir.CompileError:  # what is split has other tiles
        return math.inf, 0


def _price(graph: ir.Graph, cuts: Sequence[ImageCut], params: SocParams, options: Options) -> float:
    try:
        return placed_cycles(with_cuts(graph, cuts), params, options)[0] if cuts else math.inf
    except ir.CompileError:  # what is split has other tiles
        return math.inf


@dataclass(frozen=True)
class _Way:
    """To the end of a segment: cycles, and the cuts so far."""

    cycles: float
    cuts: tuple[ImageCut, ...] = ()


class _Chain:
    """The cuts of a chain of segments."""

    def __init__(
        self, graph: ir.Graph, chain: Sequence[RunSegment], work: Mapping[str, OperatorWork], memory: int,
        params: SocParams, known: dict[tuple[str, str, Pieces], Sizes | None],
    ) -> None:  # fmt: skip
        self._graph, self._chain, self._work, self._memory, self._params = graph, chain, work, memory, params
        self._known = known
        self._outside = {port.tensor for port in (*graph.inputs, *graph.outputs)}
        self._tight = [not self._estimate(place, place + 1).fits() for place in range(len(chain))]

    def best(self) -> tuple[ImageCut, ...]:
        """Those with the fewest cycles."""
        ways: list[dict[bool, _Way]] = [{on: _Way(0.0) for on in self._places(self._chain[0].source)}]
        for end in range(1, len(self._chain) + 1):
            found = {on: _Way(math.inf) for on in self._places(self._chain[end - 1].result)}
            for begin in range(end - 1, max(-1, end - 1 - _LONGEST), -1):
                for before, on, total, cuts in self._steps(begin, end, found):
                    way = ways[begin].get(before)
                    if way and way.cycles + total < found[on].cycles:
                        found[on] = _Way(way.cycles + total, (*way.cuts, *cuts))
                if not self._can_be_cut(begin, begin + 1):
                    break
            ways.append(found)
        return min(ways[-1].values(), key=lambda way: way.cycles).cuts

    def _steps(
        self, begin: int, end: int, places: Iterable[bool]
    ) -> Iterator[tuple[bool, bool, float, tuple[ImageCut, ...]]]:  # fmt: skip
        """Yield the ways over segments ``begin`` to ``end`` as one run, whole or in parts: whether the tensors that
        come in and go out are on chip, cycles, and the cut."""
        segments = self._chain[begin:end]
        cut_them = any(self._tight[begin:end]) and self._can_be_cut(begin, end)
        cut_them = cut_them and can_end_cut(segments[-1].ops[-1])
        if end - begin > 1 and not cut_them:
            return
        estimate = self._estimate(begin, end)
        for before, on in itertools.product(self._places(segments[0].source), places):
            if end - begin == 1:
                yield before, on, estimate.whole((before, on)), ()
            if cut_them:
                cycles, pieces = estimate.cut((before, on))
                yield before, on, cycles, (self._cut(segments, pieces),)

    def _can_be_cut(self, begin: int, end: int) -> bool:
        """Return whether segments can be cut as one run: into parts of an image, or into frames that all keep apart."""
        segments = self._chain[begin:end]
        return all(one.cuttable for one in segments) or math.gcd(*(one.frames for one in segments)) > 1

    def _cut(self, segments: Sequence[RunSegment], pieces: Pieces) -> ImageCut:
        names = frozenset(op.name for one in segments for op in one.ops)
        side = long_side(self._graph, segments[-1].result)
        if pieces.channels > 1:
            return ImageCut(names, CHANNELS, pieces.channels)
        if pieces.frames > 1:
            return ImageCut(names, FRAMES, pieces.frames, (side, pieces.side) if pieces.side > 1 else None)
        return ImageCut(names, side, pieces.side)

    def _estimate(self, begin: int, end: int) -> RunEstimate:
        run = [op for segment in self._chain[begin:end] for op in segment.ops]
        return RunEstimate(
            self._graph, run, self._chain[begin].source, self._work, self._memory, self._params, self._known
        )

    def _places(self, name: str) -> tuple[bool, ...]:
        """Return whether a tensor may be on chip, or not."""
        return (False,) if name in self._outside else (True, False)
