"""Defines jobs of the synthetic machine, and what it reports of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(eq=False, slots=True)
class SyntheticJob:
    """Is a layer to run on ``engine``. Times are in the unit of the simulation; those it passes are filled in.

    ``number`` gives the order of submission. ``jobs``: so many has its request in all; until the last of them has
    ended, what it works on is on chip. ``earliest``: its load does not start before, as when it was announced.
    ``bytes`` of on-chip memory are held from the start of the load to the end of the compute. The compute starts when
    all jobs of ``after`` have ended; they must have smaller numbers and may be
    on other engines.
    """

    number: int
    request: int
    layer: int
    engine: int
    load: float
    compute: float
    bytes: int = 0
    priority: int = 0
    after: Sequence["SyntheticJob"] = ()
    jobs: int = 1
    earliest: float = 0.0
    submitted: float = 0.0
    load_start: float | None = None
    load_end: float | None = None
    start: float | None = None
    end: float | None = None
    preempted: int = field(default=0)  #: how often it was dumped and restored

    @property
    def ready(self) -> bool:
        """Return whether the job may start: its load has ended, and its inputs exist."""
        return self.load_end is not None and all(job.end is not None for job in self.after)


class MachineObserver(Protocol):
    """An observer hears of every change the moment it happens; it may submit jobs meanwhile."""

    def load_started(self, job: SyntheticJob) -> None:
        """Hear that memory access of ``job`` begins."""

    def load_ended(self, job: SyntheticJob) -> None:
        """Hear that memory access of ``job`` is over."""

    def rolled_back(self, job: SyntheticJob) -> None:
        """Hear that what was loaded for ``job`` is given up; it will be loaded again."""

    def started(self, job: SyntheticJob) -> None:
        """Hear that compute of ``job`` begins."""

    def ended(self, job: SyntheticJob) -> None:
        """Hear that compute of ``job`` is over, its memory free."""
