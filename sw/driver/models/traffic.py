"""Tells what the DMAs between DRAM and LV2 counted for one job: the monitors of **Idle-time layer scheduling**."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class DmaTraffic:
    """Says what one DMA did for one job. ``bytes``: read from the source; ``busy``: cycles with an instruction in
    progress; ``stalled``: of these, cycles in which a memory held data up."""

    bytes: int = 0
    busy: int = 0
    stalled: int = 0

    def __add__(self, other: "DmaTraffic") -> "DmaTraffic":
        return DmaTraffic(self.bytes + other.bytes, self.busy + other.busy, self.stalled + other.stalled)


@dataclass(frozen=True)
class DramTraffic:
    """Holds all that one job moved between DRAM and LV2.

    ``ahead``: loads of its prologue, while earlier jobs computed; ``loads`` and ``stores``: of its body.
    """

    ahead: DmaTraffic
    loads: DmaTraffic
    stores: DmaTraffic

    @classmethod
    def of(cls, counters: Mapping[str, int]) -> "DramTraffic":
        """Return the traffic that counters by the names of ``hw.contract.job.COUNTERS`` tell."""
        parts = ("prologue", "ld2", "st2")
        return cls(*(DmaTraffic(*(counters[f"{p}_{what}"] for what in ("bytes", "busy", "stalled"))) for p in parts))

    @property
    def total(self) -> DmaTraffic:
        """Return loads, stores and the prologue's loads together. They overlap in time, so ``busy`` may exceed the
        duration of the job."""
        return self.ahead + self.loads + self.stores
