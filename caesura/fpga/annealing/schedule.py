"""Runs the annealing in C."""

import ctypes
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from caesura.fpga.annealing.design import PlacedDesign
from caesura.fpga.paths import CellDelays
from sim import c_library

#: Stages, each a little colder, and moves of a stage for each cell that can move.
STAGES, MOVES = 110, 20
_CHANCES = 4096
_NUMBERS = "width height cells nets pins candidates stages moves seed unit"
_ARRAYS = (
    "column row half kind tile_key slice_key net_first net pin_first driver start cell setup direct arc_first arc_net "
    "arc_delay table reg writer goes_on logic candidate"
)
#: The layout of ``design_t``.
_Design = c_library.structure("_Design", _NUMBERS, f"{_ARRAYS} share chance told")


class Estimate(NamedTuple):
    """Holds what a placement comes to, by the estimate: the longest path in ns, the length of all wires in tiles, and
    how much of them lies in the bin with the most."""

    path: float
    wires: float
    peak: float


def annealed(placed: bytes, delays: CellDelays, logic: Mapping[int, Sequence[int]], seed: int) -> bytes:
    """Return a design that nextpnr has ``placed`` with its cells moved about. ``delays`` are those of its cells and, by
    estimate, of its wires; ``logic`` are the columns of the part with logic, by row."""
    design = PlacedDesign(placed, delays, logic)
    anneal(design, seed)
    return design.written()


def anneal(design: PlacedDesign, seed: int, moves: int = MOVES, stages: int = STAGES) -> tuple[Estimate, Estimate]:
    """Anneal ``design``, whose arrays change, in so many ``stages``, each of so many ``moves`` for each cell that can
    move. Return what it was and what it is."""
    arrays = design.arrays
    sizes = np.diff(arrays["pin_first"]) + 1
    share = np.array([_share(size) for size in sizes.tolist()])
    chance = np.array([-math.log((place + 0.5) / _CHANCES) for place in range(_CHANCES)])
    told = np.zeros(2 * len(Estimate._fields))
    candidates = len(arrays["candidate"])
    numbers = (
        design.width, design.height, len(design.names), len(arrays["driver"]), len(arrays["cell"]), candidates,
        stages, moves * candidates, seed, design.unit,
    )  # fmt: skip
    pointers = [arrays[name] for name in _ARRAYS.split()] + [share, chance, told]
    _function()(ctypes.byref(_Design(*numbers, *(array.ctypes.data for array in pointers))))
    before, after = ((path / 1000, wires, peak) for path, wires, peak in told.reshape(2, -1).tolist())
    return Estimate(*before), Estimate(*after)


def _share(size: int) -> float:
    """Return how many times the half of its box a net with so many cells takes in wires."""
    return 1.0 if size <= 3 else 1 + 0.26 * (math.sqrt(size - 2) - 1)


@cache
def _function() -> Any:
    loaded = c_library.c_library(*sorted(Path(__file__).parent.glob("*.c")), standard=True)
    function = loaded.caesura_anneal
    function.argtypes, function.restype = [ctypes.c_void_p], None
    return function
