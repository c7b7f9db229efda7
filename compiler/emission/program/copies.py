"""Building copy instructions: strided loops with clipping, merged into the longest runs the format allows, and cut into
copies that one instruction can carry out each."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from compiler.emission.program.address import Address, Symbol
from compiler.plan.memory.tensor_view import PixelBox, TensorView, inside

MAX_RUN = (1 << 16) - 1
PIECE = 1024  #: bytes of one load, whole bursts: short, so that other loads to LV2 get in and a pause need not wait
_CONTIGUOUS = 1 << 15  #: run length that long contiguous copies are cut into
_ADDRESS_MASK = (1 << 32) - 1

Fields = dict[str, Address]  #: of an instruction, by name


@dataclass
class CopyLoop:
    """One loop of a copy: iterations, strides in bytes, and the range of iterations that is read (else filled), all if
    nothing says it. ``whole``: every iteration is read."""

    count: int
    src: int
    dst: int
    low: int = 0
    high: int = -1
    whole: bool = field(init=False)

    def __post_init__(self) -> None:
        if self.high < 0:
            self.high = self.count
        self.whole = self.low == 0 and self.high == self.count


_ONCE = CopyLoop(1, 0, 0)


def copy_fields(
    src: Address,
    dst: Address,
    loops: list[CopyLoop],
    length: int,
    read: tuple[int, int] | None = None,
    fill: int = 0,
) -> Fields:
    """Return the fields of a copy of runs of ``length`` bytes under up to three ``loops`` (outermost first).

    ``read`` is the part of a run that is read; clipping of ``loops`` is possible in the inner two after merging.
    """
    low, high = read or (0, length)
    loops = [loop for loop in loops if loop.count != 1 or not loop.whole]
    while loops and _runs_merge(loops[-1], length, low, high):
        length *= loops.pop().count
        low, high = 0, length
    loops = _merge_loops(loops)
    loops = [_ONCE] * (3 - len(loops)) + loops
    if len(loops) > 3 or not loops[0].whole:
        raise ValueError(f"a copy has three loops of which the inner two clip, not {loops}")
    src = src if isinstance(src, Symbol) else src & _ADDRESS_MASK  # under padding a copy starts before its tensor
    outer, middle, inner = loops
    lo1, hi1 = (middle.low, middle.high) if middle.low < middle.high else (0, 0)
    lo0, hi0 = (inner.low, inner.high) if inner.low < inner.high else (0, 0)
    return {
        "src": src, "dst": dst, "len": length, "lo": low, "hi": high, "fill": fill,
        "n2": outer.count, "src_s2": outer.src, "dst_s2": outer.dst, "n1": middle.count, "src_s1": middle.src,
        "dst_s1": middle.dst, "n0": inner.count, "src_s0": inner.src, "dst_s0": inner.dst,
        "lo1": lo1, "hi1": hi1, "lo0": lo0, "hi0": hi0,
    }  # fmt: skip


def _runs_merge(loop: CopyLoop, length: int, low: int, high: int) -> bool:
    whole = loop.whole and low == 0 and high == length
    return whole and loop.src == loop.dst == length and length * loop.count <= MAX_RUN


def _merge_loops(loops: list[CopyLoop]) -> list[CopyLoop]:
    merged: list[CopyLoop] = []
    for loop in loops:
        outer = merged[-1] if merged else None
        if (
            outer
            and outer.whole
            and loop.whole
            and (outer.src, outer.dst) == (loop.src * loop.count, loop.dst * loop.count)
            and outer.count * loop.count <= MAX_RUN
        ):
            merged[-1] = replace(loop, count=outer.count * loop.count, high=-1)
        else:
            merged.append(loop)
    return merged


def contiguous(src: Address, dst: Address, size: int) -> list[Fields]:
    """Return the copies that together move ``size`` contiguous bytes."""
    copies = []
    whole, rest = divmod(size, _CONTIGUOUS)
    if whole:
        copies.append(copy_fields(src, dst, [CopyLoop(whole, _CONTIGUOUS, _CONTIGUOUS)], _CONTIGUOUS))
    if rest:
        copies.append(copy_fields(src + (size - rest), dst + (size - rest), [], rest))
    return copies


def pieces(src: int, dst: int, size: int) -> Iterator[Fields]:
    """Yield the copies that together move ``size`` contiguous bytes from DRAM, each up to the next multiple of
    :data:`PIECE`."""
    first, end = src, src + size
    while first < end:
        last = min(end, (first // PIECE + 1) * PIECE)
        yield from contiguous(first, dst + first - src, last - first)
        first = last


def box_loops(view: TensorView, box: PixelBox, row: int, pixel: int) -> list[CopyLoop]:
    """Row and column loops that read ``box`` of a tensor; ``row`` and ``pixel`` are strides at the other end."""
    _, height, width, _ = view.shape
    _, sh, sw = view.strides
    return [
        CopyLoop(box.rows, box.y_step * sh, row, *inside(box.y, box.y_step, box.rows, height)),
        CopyLoop(box.cols, box.x_step * sw, pixel, *inside(box.x, box.x_step, box.cols, width)),
    ]


def load_fields(
    view: TensorView, box: PixelBox, target: int, row: int, run: int, fill: int, pitch: int = 0
) -> Fields:  # fmt: skip
    """Return a copy of ``box`` to ``target``: rows ``row`` bytes apart there, pixels of ``run`` bytes, padded by
    ``fill``, and ``pitch`` bytes apart (0: without gaps). Adjacent pixels become one long run even under column
    padding."""
    source = view.address(box.n, box.y, box.x, box.c)
    rows, cols = box_loops(view, box, row, pitch or run)
    if cols.src == cols.dst == box.channels == run and cols.count * run <= MAX_RUN:
        return copy_fields(source, target, [rows], cols.count * run, (cols.low * run, cols.high * run), fill)
    return copy_fields(source, target, [rows, cols], run, (0, box.channels), fill)


Dims = list[tuple[int, int, int]]  #: (count, source stride, destination stride), outermost first


def strided_copy(src: int, dst: int, dims: Dims) -> Fields:
    """Return the fields of one copy, byte by byte."""
    return copy_fields(src, dst, [CopyLoop(*dim) for dim in dims], 1)


def merge(dims: Dims) -> Dims:
    """``dims`` without single iterations, neighbours that step alike joined."""
    merged: Dims = []
    for count, src, dst in dims:
        if count == 1:
            continue
        if merged and merged[-1][1:] == (src * count, dst * count):
            merged[-1] = (merged[-1][0] * count, src, dst)
        else:
            merged.append((count, src, dst))
    return merged or [(1, 1, 1)]


def tiles(dims: Dims, size: int) -> Iterator[tuple[int, int, Dims]]:
    """Cut a strided copy into copies of at most ``size`` bytes that one instruction can carry out each.

    Yields source offset, destination offset and dims of each.
    """
    inner = 1 if dims[-1][1:] == (1, 1) else 0  # runs come on top of the three loops
    keep: list[int] = []
    room = size
    for position, (count, _, _) in enumerate(reversed(dims)):
        take = min(count, room, MAX_RUN) if position < 3 + inner else 1
        keep.append(take)
        room = room // take if take == count else 1
    keep.reverse()

    def cut(level: int, src: int, dst: int, tile: Dims) -> Iterator[tuple[int, int, Dims]]:
        if level == len(dims):
            yield src, dst, tile[-(3 + inner) :] if len(tile) > 3 + inner else tile
            return
        count, src_step, dst_step = dims[level]
        for first in range(0, count, keep[level]):
            part = (min(keep[level], count - first), src_step, dst_step)
            yield from cut(level + 1, src + first * src_step, dst + first * dst_step, [*tile, part])

    return cut(0, 0, 0, [])
