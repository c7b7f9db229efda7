"""Boxes of bytes in larger units: where all that is touched consists of whole grains, a grain is told apart from the
next, and no byte within it is."""

import math
from collections.abc import Iterable

from sim.functional import Box


def merged(box: Box) -> Box:
    """Return the same bytes in fewer loops, where one goes on where the next ends."""
    if box.empty:
        return box
    counts, steps = list[int](), list[int]()
    for count, step in zip(box.shape, box.strides, strict=True):
        if counts and steps[-1] == count * step:
            counts[-1], steps[-1] = counts[-1] * count, step
        elif count > 1:
            counts.append(count)
            steps.append(step)
    return Box(box.offset, tuple(counts), tuple(steps)) if counts else Box(box.offset, (1,), (1,))


def grain_of(boxes: Iterable[Box]) -> int:
    """Return the most bytes of which all ``boxes`` consist as wholes: addresses, steps and runs are multiples of it."""
    grain = 0
    for box in boxes:
        if box.empty or box.strides.count(1) != 1:  # runs of one byte, or two that overlap
            return 1
        runs = (count if step == 1 else step for count, step in zip(box.shape, box.strides, strict=True))
        grain = math.gcd(grain, box.offset, *runs)
        if grain == 1:
            return 1
    return grain or 1


def in_grains(box: Box, grain: int) -> Box:
    """Return ``box``, which consists of whole grains, with grains for bytes."""
    loops = [
        (count // grain, 1) if step == 1 else (count, step // grain)
        for count, step in zip(box.shape, box.strides, strict=True)
    ]
    return Box(box.offset // grain, tuple(count for count, _ in loops), tuple(step for _, step in loops))
