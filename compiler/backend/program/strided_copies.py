"""Strided copies of any number of loops, cut into copies that one instruction can carry out each."""

from collections.abc import Iterator

from compiler.backend.program.copies import MAX_RUN, CopyLoop, Fields, copy_fields

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
