"""Buffers for tests of packings: as the packers take them, and what a packing of them must keep to."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
DrawnBuffer = tuple[int, int, int, int]  #: size, first step, further steps, base


def arrays(buffers: Sequence[DrawnBuffer]) -> tuple[Integers, Integers, Integers]:
    """Lives, sizes and bases."""
    lives = np.array([(first, first + more) for _, first, more, _ in buffers], np.int64).reshape(-1, 2)
    sizes, bases = (np.array([one[at] for one in buffers], np.int64) for at in (0, 3))
    return lives, sizes, bases


def together(lives: Integers) -> npt.NDArray[np.bool_]:
    """Which buffers are alive at the same time, each with itself."""
    found: npt.NDArray[np.bool_] = (lives[:, None, 0] <= lives[None, :, 1]) & (lives[None, :, 0] <= lives[:, None, 1])
    return found


def shared(offsets: Integers, lives: Integers, sizes: Integers) -> int:
    """How many pairs, in either order, share bytes while both are alive."""
    ends = offsets + sizes
    meet = (offsets[:, None] < ends) & (offsets < ends[:, None]) & together(lives)
    return int(meet.sum() - (sizes > 0).sum())
