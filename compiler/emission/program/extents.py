"""Which bytes an instruction touches: hulls (first byte to one past the last) and exact strided boxes.

Addresses of the weight window and of streamed weights, which the linker decides, count from their anchors.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from compiler.emission.program.task import Task
from hw.contract.isa import Lv0Space, Lv0View, Op
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from sim.functional import Box

_LOOPS = ("2", "1", "0")
_LV0: dict[int, Space] = {
    Lv0Space.ACT: Space.LV0_ACT, Lv0Space.WGT: Space.LV0_WGT, Lv0Space.ACC: Space.LV0_ACC,
    Lv0Space.INT4: Space.LV0_WGT,
}  # fmt: skip


class Extent(NamedTuple):
    """Bytes ``low`` to ``high`` of a memory: of ``segment`` in DRAM and LV2, of each PE's memory in ``lv0_act`` and
    ``lv0_wgt``, counted as :class:`hw.image.image.LiveRange` does in ``lv0_acc``."""

    space: Space
    segment: int
    low: int
    high: int

    def meets(self, other: "Extent") -> bool:
        """Return whether both share bytes."""
        meet = self.low < other.high and other.low < self.high
        return meet and self.space == other.space and self.segment == other.segment

    def joined(self, other: "Extent") -> "Extent":
        """Return the smallest extent over both."""
        return Extent(self.space, self.segment, min(self.low, other.low), max(self.high, other.high))


class Extents:
    """What tasks read and write, each worked out once; the tasks must not move any more."""

    def __init__(self, params: SocParams) -> None:
        self.params = params
        self.written: Callable[[Task], Extent] = functools.cache(lambda task: written(task, params))
        self.source: Callable[[Task], Extent | None] = functools.cache(source)


def written(task: Task, params: SocParams) -> Extent:
    """Return the bytes ``task`` writes."""
    f = task.numbers
    if task.op is Op.MAC:
        rows, row = (f.get("p1", 1) - 1) * f.get("acc_s", 0) + f.get("p0", 1), 4 * params.out_channels
        return Extent(Space.LV0_ACC, 0, f.get("acc", 0) * row, (f.get("acc", 0) + rows) * row)
    if task.op is Op.VEC:
        return Extent(Space.LV1, 0, *_bounds(f, "d", params.vec_lanes))
    low, high = _bounds(f, "dst", f.get("len", 1))
    if task.op is Op.LD0:
        return _lv0(f, low, high, params)
    if task.op is Op.LD1:
        return Extent(Space.LV1, 0, low, high)
    return Extent(*_target(task), low, high)


def _lv0(fields: Mapping[str, int], low: int, high: int, params: SocParams) -> Extent:
    named = fields.get("space", 0)
    space, line = _LV0[named], params.lv1_word
    if named == Lv0Space.INT4:
        low, high = low // line * 2 * line, -(-high // line) * 2 * line
    interleaved = named == Lv0Space.INT4 or fields.get("view", 0) == Lv0View.INTERLEAVED
    if space != Space.LV0_ACC and interleaved:
        low, high = low // line * params.rows, -(-high // line) * params.rows
    return Extent(space, 0, low, high)


def source(task: Task) -> Extent | None:
    """The bytes a copy reads; None if it only fills."""
    box = read_box(task)
    if box.empty:
        return None
    low, high = box.bounds()
    if task.op in (Op.LD0, Op.ST1):
        return Extent(Space.LV1, 0, low, high)
    return Extent(*_origin(task), low, high)


def _target(task: Task) -> tuple[Space, int]:
    """Return the memory and segment outside of an engine that a copy writes to."""
    return Space.DRAM if task.op is Op.ST2 else Space.LV2, task.numbers.get("dst_seg", 0)


def _origin(task: Task) -> tuple[Space, int]:
    """Return the memory and segment outside of an engine that a copy reads."""
    return Space.DRAM if task.op is Op.LD2 else Space.LV2, task.numbers.get("src_seg", 0)


def boxes_outside(task: Task) -> Iterator[tuple[tuple[Space, int], Box, bool]]:
    """Yield what a copy touches outside of its engine to the byte: memory and segment, the bytes, and whether it writes
    them."""
    if task.op in (Op.LD2, Op.ST1, Op.ST2):
        yield _target(task), written_box(task), True
    if task.op in (Op.LD1, Op.LD2, Op.ST2) and not (box := read_box(task)).empty:
        yield _origin(task), box, False


def copied_runs(task: Task, most: int) -> list[tuple[int, int, int]] | None:
    """Return a copy as contiguous runs (source, destination, bytes); None if it has more than ``most`` or pads, or if
    parameters of its job say what it reads."""
    f = task.numbers
    if task.more:
        return None
    counts = [f.get(f"n{i}", 1) for i in _LOOPS]
    box = read_box(task)
    if math.prod(counts) > most or box.shape != (*counts, f.get("len", 1)):
        return None
    steps = [(f.get(f"src_s{i}", 0), f.get(f"dst_s{i}", 0)) for i in _LOOPS]
    runs = []
    for index in itertools.product(*map(range, counts)):
        ahead = [sum(i * step[side] for i, step in zip(index, steps, strict=True)) for side in (0, 1)]
        runs.append((box.offset + ahead[0], f.get("dst", 0) + ahead[1], f.get("len", 1)))
    return runs


def overwrites(store: Task, load: Task, params: SocParams) -> bool:
    """``store`` writes a byte that ``load`` reads, to the last byte."""
    target, origin = written(store, params), source(load)
    if origin is None or not target.meets(origin):
        return False
    first = min(target.low, origin.low)
    touched = np.zeros(max(target.high, origin.high) - first, np.bool_)
    write, read = written_box(store), read_box(load)
    Box(write.offset - first, write.shape, write.strides).view(touched)[...] = True
    return bool(Box(read.offset - first, read.shape, read.strides).view(touched).any())


def written_box(task: Task) -> Box:
    """Return the bytes that a copy writes, one by one."""
    return _written(task.numbers, "dst", task.numbers.get("len", 1))


def _written(fields: Mapping[str, int], name: str, run: int) -> Box:
    """Return what loops write that begin at field ``name``, in runs of so many bytes."""
    get = fields.get  # spelt out: regions ask this of every task
    shape = (get("n2", 1), get("n1", 1), get("n0", 1), run)
    return Box(get(name, 0), shape, (get(name + "_s2", 0), get(name + "_s1", 0), get(name + "_s0", 0), 1))


def _bounds(fields: Mapping[str, int], name: str, run: int) -> tuple[int, int]:
    """Return the bounds of what loops write, see :func:`_written`: asked of every task, most of which loop little."""
    get = fields.get
    low = high = get(name, 0)
    for loop in _LOOPS:
        count = get("n" + loop, 1)
        if count != 1:
            last = (count - 1) * get(name + "_s" + loop, 0)
            low, high = low + min(last, 0), high + max(last, 0)
    return (low, high + run) if run and get("n2", 1) and get("n1", 1) and get("n0", 1) else (0, 0)


def read_box(task: Task) -> Box:
    """Return the bytes that a copy reads, one by one; empty if it only fills."""
    get = task.numbers.get
    start = get("src", 0)
    start -= (start >> 31) << 32  # under padding a copy starts before its tensor
    s2, s1, s0 = get("src_s2", 0), get("src_s1", 0), get("src_s0", 0)
    lo1, lo0, lo = get("lo1", 0), get("lo0", 0), get("lo", 0)
    runs = max(0, get("hi1", 1) - lo1), max(0, get("hi0", 1) - lo0), max(0, get("hi", get("len", 1)) - lo)
    return Box(start + lo1 * s1 + lo0 * s0 + lo, (get("n2", 1), *runs), (s2, s1, s0, 1))
