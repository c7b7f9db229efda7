"""Says which points of a sweep are worth a look: those that no other one beats at everything that costs."""

from collections.abc import Mapping, Sequence
from typing import Any

#: Figures that should be small, and those that should be large; a sweep has some of them.
COSTS = ("cycles", "area", "dram_bytes_per_cycle", "antt")
GAINS = ("stp",)
#: Points are compared that run the same.
SAME = ("model", "scenario")

_AREA_PER_MAC = 100  #: bytes of SRAM whose area a MAC takes; docs/sweeps.md says why


def area(onchip_bytes: int, macs: int) -> int:
    """Return about how much area a machine takes, in bytes of SRAM: those it has, and ``macs`` (per cycle) at 100."""
    return onchip_bytes + _AREA_PER_MAC * macs


def pareto_front(rows: Sequence[Mapping[str, Any]]) -> list[bool]:
    """Return for each row whether it is on the Pareto front: no other row of the same model or scenario is at least as
    good in every figure that costs, and better in one. A row without figures is not."""
    vectors = [_vector(row) for row in rows]
    same = [tuple(row.get(name) for name in SAME) for row in rows]
    return [
        bool(mine) and not any(_beats(other, mine) for other, run in zip(vectors, same, strict=True) if run == same[i])
        for i, mine in enumerate(vectors)
    ]


def _vector(row: Mapping[str, Any]) -> tuple[float, ...]:
    """Return what of a row should be small; empty for a row that failed."""
    found = [row.get(name) for name in COSTS], [row.get(name) for name in GAINS]
    return tuple(value for value in found[0] if value is not None) + tuple(-v for v in found[1] if v is not None)


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return len(one) == len(other) and one != other and all(a <= b for a, b in zip(one, other, strict=True))
