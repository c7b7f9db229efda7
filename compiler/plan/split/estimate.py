"""What a run of operators takes in so many parts, before anything of it is cut: cycles, and what of it is spilled."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from compiler import ir
from compiler.plan.layers.lower import lower
from compiler.plan.layers.origin import even_pieces
from compiler.plan.order.dimensions import CHANNELS, Box4, Dimension
from compiler.plan.regions.units import layer_times
from compiler.plan.split.channels import UNIT, can_be_cut_by_channels
from compiler.plan.split.parts import can_be_cut, frames_of, needed_boxes, whole_box
from compiler.plan.split.runs import long_side
from hw.contract.params import SocParams
from sim.cost import LAYER_TO_FULL_WORK, moved

_PIECES = (2, 3, 4, 6, 8, 12, 16, 24, 32)  #: numbers of parts that are tried

_IN_PLACE = ir.Eltwise | ir.Table | ir.Softmax  #: operators whose result takes the place of an operand that dies

Sizes = dict[str, int]  #: by tensor bytes of its share in the middle part
Inside = tuple[bool, bool]  #: whether the tensor that comes in, and the one that goes out, are on chip


class Pieces(NamedTuple):
    """Into how many parts a run is cut: by frames, each of these along its long side, and by channels."""

    frames: int = 1
    side: int = 1
    channels: int = 1


class OperatorWork(NamedTuple):
    """Cycles of the busiest unit of an engine, and bytes of weights."""

    cycles: float
    weights: int


def parts_of(frames: int, *, single: bool) -> Iterator[int]:
    """Yield numbers of parts of so many ``frames``, fewest first, each of which makes the largest part smaller;
    ``single``: in the end one for each frame, however many these are."""
    least = frames
    for number in sorted({*_PIECES, frames} if single else _PIECES):
        if number <= frames and -(-frames // number) < least:
            least = -(-frames // number)
            yield number


def alone_cycles(busy: float, size: float, params: SocParams) -> float:
    """Return the cycles of a layer by itself that keeps a unit ``busy`` while DRAM moves ``size`` bytes."""
    return max(busy, moved(size, params)) + LAYER_TO_FULL_WORK


def operator_work(graph: ir.Graph, params: SocParams, engines: int) -> dict[str, OperatorWork]:
    """By name the work of each operator, if its tensors are on chip."""
    scratch = ir.Graph(graph.name, dict(graph.tensors), graph.ops, graph.inputs, graph.outputs)
    found = {op.name: OperatorWork(0.0, 0) for op in graph.ops}
    for layer in lower(scratch, params):
        times, before = layer_times(scratch, layer, params, engines), found[layer.op.name]
        cycles = before.cycles + float(np.max(times.busy))
        found[layer.op.name] = OperatorWork(cycles, before.weights + times.all_weights)
    return found


class RunEstimate:
    """The price of a run of operators of ``graph``, which reads ``source``, with ``memory`` bytes on chip for
    tensors."""

    def __init__(
        self, graph: ir.Graph, run: Sequence[ir.Operation], source: str, work: Mapping[str, OperatorWork], memory: int,
        params: SocParams, known: dict[tuple[str, str, Pieces], Sizes | None] | None = None,
    ) -> None:  # fmt: skip
        """``known``: sizes of runs of this graph that were measured, by the tensors at their ends and pieces; those of
        this one are noted."""
        self._graph, self._run, self._source, self._work, self._memory = graph, run, source, work, memory
        self._params, self._result = params, run[-1].output
        self._side = long_side(graph, self._result)
        self._leaving = {port.tensor for port in graph.outputs} & {op.output for op in run[:-1]}
        self._known = {} if known is None else known

    def fits(self) -> bool:
        """Return whether the run as it is spills nothing, if what it reads and makes is on chip."""
        room = self._room((True, True))
        return room >= 0 and not self._spilled(self._sizes(Pieces()) or {}, room)

    def whole(self, inside: Inside) -> float:
        """Return the cycles of the run as it is."""
        return self._cycles(self._sizes(Pieces()), inside, Pieces())

    def cut(self, inside: Inside) -> tuple[float, Pieces]:
        """Return the cycles of the run in the fewest parts that spill nothing, and how many parts; infinite if there
        are none."""
        return min(self._fewest(self._tried(), inside), self._fewest(self._groups(), inside), key=lambda way: way[0])

    def _fewest(self, tried: Iterator[Pieces], inside: Inside) -> tuple[float, Pieces]:
        room = self._room(inside)
        for pieces in tried if room >= 0 else ():
            sizes = self._sizes(pieces)
            if sizes and not self._spilled(sizes, room):
                return self._cycles(sizes, inside, pieces), pieces
        return math.inf, Pieces()

    def _groups(self) -> Iterator[Pieces]:
        """Yield numbers of groups of channels, fewest first, if the run can be cut into some."""
        if can_be_cut_by_channels(self._graph, self._run):
            units = -(-whole_box(self._graph, self._result)[CHANNELS][1] // UNIT)
            yield from (Pieces(channels=number) for number in _PIECES if number <= units)

    def _tried(self) -> Iterator[Pieces]:
        """Yield numbers of parts, fewest first: frames are cut first, and single ones along their long side."""
        frames = self._frames
        most = whole_box(self._graph, self._result)[self._side][1] if self._by_image else 1
        yield from (Pieces(number) for number in parts_of(frames, single=self._by_image))
        yield from (Pieces(frames, number) for number in _PIECES if number <= most)

    @cached_property
    def _by_image(self) -> bool:
        """Whether the run can be cut into parts of an image."""
        return all(can_be_cut(self._graph, op) for op in self._run)

    @cached_property
    def _frames(self) -> int:
        return frames_of(self._graph, self._run)

    def _room(self, inside: Inside) -> int:
        """Return the bytes for inner tensors."""
        ends = dict(zip((self._source, self._result), inside, strict=True))
        return self._memory - sum(self._graph.tensors[name].size for name, on in ends.items() if on)

    def _sizes(self, pieces: Pieces) -> Sizes | None:
        """By tensor bytes of its share in the middle one of so many parts, which stands for all; None if there is
        none."""
        which = self._source, self._result, pieces
        if which not in self._known:
            self._known[which] = self._measured(pieces)
        return self._known[which]

    def _measured(self, pieces: Pieces) -> Sizes | None:
        names = {name for op in self._run for name in (*op.inputs, op.output)}
        sizes = {name: self._graph.tensors[name].size for name in names}
        if pieces.channels > 1:
            return {name: size if name == self._source else -(-size // pieces.channels) for name, size in sizes.items()}
        if pieces.frames > 1:
            sizes = {name: size * self._most_frames(pieces) // self._frames for name, size in sizes.items()}
        if pieces.side > 1:
            boxes = self._boxes(pieces.side)
            if boxes is None:
                return None
            for name, box in boxes.items():
                first, end = box[self._side]
                sizes[name] = sizes[name] * (end - first) // whole_box(self._graph, name)[self._side][1]
        return sizes

    def _most_frames(self, pieces: Pieces) -> int:
        """Return the frames of the first part, which has most."""
        return -(-self._frames // pieces.frames)

    def _boxes(self, count: int) -> dict[str, Box4] | None:
        """By tensor what the middle one of ``count`` parts of an image needs of it."""
        whole = whole_box(self._graph, self._result)
        part = even_pieces(whole[self._side][1], count)[count // 2]
        box = tuple(part if one is self._side else whole[one] for one in Dimension)
        return needed_boxes(self._graph, self._run, box, self._side)

    def _cycles(self, sizes: Sizes | None, inside: Inside, pieces: Pieces) -> float:
        room = self._room(inside)
        if sizes is None or room < 0:
            return math.inf
        ends = dict(zip((self._source, self._result), inside, strict=True))
        outside = {name for name, on in ends.items() if not on} | self._leaving
        away, total = self._spilled(sizes, room) | outside, 0.0
        for op in self._run:
            cycles, weights = self._work[op.name]
            if cycles:
                held = {self._homes.get(name, name) for name in (*op.inputs, op.output)}
                passed = weights / pieces.channels + sum(sizes[name] for name in held & away)
                share = sizes[op.output] / self._graph.tensors[op.output].size
                total += alone_cycles(cycles * share, passed, self._params)
        parts = self._frames / self._most_frames(pieces) if pieces.frames > 1 else 1  # with as many as the first
        return total * pieces.channels * pieces.side * parts

    def _spilled(self, sizes: Mapping[str, int], room: int) -> set[str]:
        """Return the inner tensors that do not fit in ``room`` bytes: of those alive at a time the largest first."""
        spilled: set[str] = set()
        for alive in self._alive:
            total = sum(sizes[name] for name in alive - spilled)
            if total > room:
                left = sorted(alive - spilled, key=lambda name: (sizes[name], name))
                while left and total > room:
                    total -= sizes[left[-1]]
                    spilled.add(left.pop())
        return spilled

    @cached_property
    def _homes(self) -> dict[str, str]:
        """By tensor that has no bytes of its own the one that has them: what it is a reshape of, or the first operand
        that dies where it is made element by element or by rows. None in runs that can be cut into parts of an image,
        or not at all: these are estimated as if each had bytes of its own."""
        if self._by_image or self._frames == 1:
            return {}
        last = {name: number for number, op in enumerate(self._run) for name in op.inputs}
        homes, fixed = dict[str, str](), {self._source, self._result, *self._leaving}
        fixed |= {name for name in last if self._graph.tensors[name].data is not None}
        for number, op in enumerate(self._run):
            name = homes.get(op.inputs[0], op.inputs[0]) if op.inputs else ""
            if isinstance(op, ir.Reshape):
                homes[op.output] = name
                last[name] = max(last[name], last.get(op.output, number))
            elif isinstance(op, _IN_PLACE) and last.get(name) == number and fixed.isdisjoint((name, op.output)):
                homes[op.output] = name
                last[name] = last[op.output]
        return homes

    @cached_property
    def _alive(self) -> list[set[str]]:
        """By operator the inner tensors that are alive at it. What leaves the graph is none: it lies in DRAM."""
        homes, last = self._homes, dict[str, int]()
        for number, op in enumerate(self._run):
            last |= {homes.get(name, name): number for name in op.inputs}
        inner = (op.output for op in self._run[:-1] if op.output not in self._leaving and op.output not in homes)
        begins = {op.output: number for number, op in enumerate(self._run)}
        made = {name: begins[name] for name in inner}
        for op in reversed(self._run):
            if isinstance(op, ir.Concat):  # its operands are made where they belong
                ahead = [made.pop(name) for name in {homes.get(name, name) for name in op.inputs} if name in made]
                if op.output in made:
                    made[op.output] = min([made[op.output], *ahead])
        return [
            {name for name, first in made.items() if first <= number <= last[name]} for number in range(len(self._run))
        ]
