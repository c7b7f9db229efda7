"""Says what copies read, what they write, and how the bytes get there."""

from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np
import numpy.typing as npt

from sim.functional.limits import source_start
from sim.functional.state import Work
from sim.functional.strided import MOST, Box, Piece, cut, pieces, whole

Bytes = npt.NDArray[np.uint8]


def source_box(f: dict) -> Box:
    """Return the box that a copy reads: the part of (n2, n1, n0, len) bytes that is inside the clip box, counted from
    where its memory or segment begins."""
    (lo1, hi1), (lo0, hi0), (lo, hi) = _clips(f)
    inner = (f["n2"], max(0, hi1 - lo1), max(0, hi0 - lo0), max(0, hi - lo))
    start = source_start(f) + lo1 * f["src_s1"] + lo0 * f["src_s0"] + lo
    return Box(start, inner, (f["src_s2"], f["src_s1"], f["src_s0"], 1))


def target_box(f: dict) -> Box:
    """Return the box that a copy writes, counted from where its memory or segment begins."""
    return Box(f["dst"], (f["n2"], f["n1"], f["n0"], f["len"]), (f["dst_s2"], f["dst_s1"], f["dst_s0"], 1))


def moving(f: dict, data: Bytes, targets: Sequence[Bytes]) -> Work:
    """Return a function that writes the (n2, n1, n0, len) bytes of a copy to ``targets``, which may have a loop more
    around these: ``data`` inside the clip box, fill elsewhere."""
    shape = (f["n2"], f["n1"], f["n0"], f["len"])
    if data.shape == shape:
        return partial(_assign, targets, data) if len(targets) != 1 else partial(targets[0].__setitem__, ..., data)
    if prod(shape) <= MOST:
        return _filling(f, data, targets, ())

    def work() -> None:
        for piece in pieces(shape[:3], f["len"]):
            _filling(f, data, targets, piece)()

    return work


def _assign(targets: Sequence[Bytes], data: Bytes) -> None:
    for target in targets:
        target[...] = data


def _filling(f: dict, data: Bytes, targets: Sequence[Bytes], piece: Piece) -> Work:
    """Return a function that writes a piece of a copy of which only a part is read, and the rest is fill."""
    loops, fill = (f["n2"], f["n1"], f["n0"]), f["fill"]
    (lo1, hi1), (lo0, hi0), (lo, hi) = _clips(f)
    i2, i1, i0 = whole(piece, loops)
    (to1, from1), (to0, from0) = cut(i1, lo1, hi1), cut(i0, lo0, hi0)
    shape = (*(each.stop - each.start for each in (i2, i1, i0)), f["len"])
    read = data[i2, from1, from0] if data.size else None
    written = [target[..., i2, i1, i0, :] for target in targets]

    def work() -> None:
        runs = np.empty(shape, np.uint8)
        runs.fill(fill)
        if read is not None:
            runs[:, to1, to0, lo:hi] = read
        for target in written:
            target[...] = runs

    return work


def _clips(f: dict) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """Return where a copy reads: for i1, i0 and the byte of a run, the first and the end."""
    return (
        (f["lo1"], min(f["hi1"], f["n1"])),
        (f["lo0"], min(f["hi0"], f["n0"])),
        (f["lo"], min(f["hi"], f["len"])),
    )
