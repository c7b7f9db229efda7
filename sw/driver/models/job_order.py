"""Finds which jobs of a model have to end before another one: those that hold its weight window, and, in a placed
model, those that it reads.

An image says how many places earlier, among its own jobs on an engine, the latest job lies that used any of a window.
Where jobs of other models come between, or the job runs on another engine, that distance means nothing: what is kept
here is the job itself, and the distance follows from where it was queued.

A placed model has an event for each engine, and waits name the count at which the data is there. An engine runs its
jobs in order and signals its event at the end of each. So "job k has ended" is "the event of its engine has reached
the number of jobs up to k there", and a job waits for at most one count of each other engine. What follows from another
wait, or from one of a job ahead in the same queue, is left out. Jobs are queued in an order in which each comes behind
those it waits for; so the oldest job of some queue can always run, and no wait closes a circle."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hw.image import Image


def predecessors(image: Image) -> list[int | None]:
    """Return for each job of ``image`` the one that must retire before its prologue may start, or None if no job of the
    same inference used its window."""
    result: list[int | None] = []
    queues: dict[int, list[int]] = {}
    for index, job in enumerate(image.meta.jobs):
        mine = queues.setdefault(job.engine, [])
        known = 0 < job.window_after <= len(mine)
        result.append(mine[len(mine) - job.window_after] if known else None)
        mine.append(index)
    return result


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
