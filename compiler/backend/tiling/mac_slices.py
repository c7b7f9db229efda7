"""One chunk of a convolution over several MAC instructions, so that none runs for long.

A pause waits for every instruction that a unit has taken (**Cancellation points**): with ``unit_queue_depth`` of them
queued, their length decides how soon the engine is HALTED.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class MacSlice:
    """Consecutive weight blocks: ``first`` of them, their loops ``blocks`` (outermost first), and the activation word
    at which they begin, relative to the chunk's."""

    first: int
    blocks: tuple[int, ...]
    act: int


def mac_slices(blocks: tuple[int, ...], steps: tuple[int, ...], most: int) -> Iterator[MacSlice]:
    """Yield the weight blocks of loops ``blocks`` with activation strides ``steps``, in order, in parts of nearly equal
    length and of at most ``most`` blocks, or of one."""
    if prod(blocks) <= max(1, most):
        yield MacSlice(0, blocks, 0)
        return
    outer = next(i for i, count in enumerate(blocks) if count > 1)
    inner, count, step = blocks[outer + 1 :], blocks[outer], steps[outer]
    each = prod(inner)
    if each > most:
        for i in range(count):
            for part in mac_slices(inner, steps[outer + 1 :], most):
                yield MacSlice(i * each + part.first, (1,) * (outer + 1) + part.blocks, i * step + part.act)
        return
    pieces = -(-count // (most // each))
    for i in range(pieces):
        low, high = count * i // pieces, count * (i + 1) // pieces
        yield MacSlice(low * each, (*blocks[:outer], high - low, *inner), low * step)
