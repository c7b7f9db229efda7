"""Finds what the jobs of a placed model wait for: an event per engine, and of each the count at which the data is
there.

An engine runs its jobs in order and signals its event at the end of each. So "job k has ended" is "the event of its
engine has reached the number of jobs up to k there", and a job waits for at most one count of each other engine. What
follows from another wait, or from one of a job ahead in the same queue, is left out. Jobs are queued in an order in
which each comes behind those it waits for; so the oldest job of some queue can always run, and no wait closes a circle.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class _Queued:
    """Says that a job is number ``count`` on engine ``part`` of the model. When it ends, at least ``ended`` jobs of
    each engine have ended."""

    part: int
    count: int
    ended: tuple[int, ...]


class EdgeWaits:
    """Holds the jobs of one inference of a placed model that were queued so far, on ``parts`` engines, numbered from
    0."""

    def __init__(self, parts: int) -> None:
        self._parts = parts
        self.begin()

    def begin(self) -> None:
        """Begin an inference."""
        self._jobs: dict[int, _Queued] = {}
        self._latest: list[_Queued] = [_Queued(part, 0, (0,) * self._parts) for part in range(self._parts)]

    def waits(self, after: Iterable[int], part: int, ended: Callable[[int], bool]) -> list[tuple[int, int]]:
        """Return the engines and their counts for which a job on ``part`` has to wait if it comes next there. ``after``
        is the jobs that it needs; ``ended`` tells whether one is known to have ended."""
        known = self._latest[part].ended
        needed: dict[int, int] = {}  # by engine, the latest of the jobs there
        for job in after:
            queued = self._jobs[job]
            if queued.part != part and queued.count > known[queued.part] and not ended(job):
                latest = needed.get(queued.part)
                if latest is None or self._jobs[latest].count < queued.count:
                    needed[queued.part] = job
        kept = [self._jobs[job] for job in needed.values()]
        return [
            (one.part, one.count)
            for one in kept
            if not any(other.ended[one.part] >= one.count for other in kept if other is not one)
        ]

    def queue(self, job: int, after: Iterable[int], part: int) -> None:
        """Enter ``job`` as the next one on ``part``."""
        count = self._latest[part].count + 1
        clocks = [self._latest[part].ended, *(self._jobs[earlier].ended for earlier in after)]
        ended = [max(clock[i] for clock in clocks) for i in range(self._parts)]
        ended[part] = count
        self._jobs[job] = self._latest[part] = _Queued(part, count, tuple(ended))
