"""Walks over the units and semaphores of an engine: who starts when, if each instruction takes a given time.

Units take their instructions in order, and the n-th wait for a semaphore takes what its n-th signal gave. So every time
follows from earlier ones by maxima and sums (a max-plus system), whatever order the instructions are passed in. Program
order walks with typical durations (:mod:`compiler.backend.program.schedule`), the bound on pauses with the longest
(:mod:`sim.timing.bound`).
"""

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from hw.contract.isa import Unit

Semaphore = TypeVar("Semaphore", bound=Hashable)


class Walk(Generic[Semaphore]):
    """Holds the state of one engine on a walk, in cycles since it began. ``counts`` is those of the semaphores at the
    beginning."""

    def __init__(self, counts: Mapping[Semaphore, int] | None = None) -> None:
        self.free = dict.fromkeys(Unit, 0)  #: when each unit has done all that was passed
        self._signalled = {semaphore: deque([0] * count) for semaphore, count in (counts or {}).items()}

    def ready(self, unit: Unit, waits: Iterable[Semaphore]) -> int | None:
        """Return when ``unit`` could start an instruction that waits for ``waits``, or None if one of them has no
        signal yet."""
        start = self.free[unit]
        for semaphore in waits:
            times = self._signalled.get(semaphore)
            if not times:
                return None
            start = max(start, times[0])
        return start

    def take(self, waits: Iterable[Semaphore]) -> int:
        """Take one count of each of ``waits``; return when the last of them was signalled."""
        latest = 0
        for semaphore in waits:
            latest = max(latest, self._signalled[semaphore].popleft())
        return latest

    def occupy(self, unit: Unit, ready: int, cycles: int) -> int:
        """Hold ``unit`` for ``cycles`` as soon as it is free, not before ``ready``; return when it is free again."""
        self.free[unit] = end = max(self.free[unit], ready) + cycles
        return end

    def signal(self, signals: Iterable[Semaphore], time: int) -> None:
        """Give one count to each of ``signals``."""
        for semaphore in signals:
            self._signalled.setdefault(semaphore, deque()).append(time)

    def left(self) -> list[Semaphore]:
        """Return the semaphores with counts that nothing took."""
        return [semaphore for semaphore, times in self._signalled.items() if times]
