"""Finds which job has kept its engine longer than it may, and whose fault it is that a queue does not move.

The oldest job of each engine has a clock. A job that waits for an event is not late by itself: the engine on which the
event is to be signalled has a clock too, and whoever delays that is late. Only where no clock is left that could run
out, because jobs wait for each other or for what nobody signals, one of those that wait is to blame.
"""

from collections.abc import Mapping, Sequence

from hw.contract.bus import Bus
from sw.driver.limits import BEGINNING
from sw.driver.queues.engine_queue import EngineQueue
from sw.driver.queues.job import DeviceJob
from sw.driver.queues.registers import RegisterAccess

_WORD = 1 << 32
Signals = tuple[int, int]  #: an event, and how many signals of it are missing


class OverdueJobs:
    """Watches the oldest jobs of ``engines``. Nothing is read from the device before a clock has run out."""

    def __init__(self, bus: Bus, regs: RegisterAccess, engines: Sequence[EngineQueue]) -> None:
        self._bus, self._regs, self._engines = bus, regs, engines
        self._came: dict[int, DeviceJob] = {}  #: by engine: the oldest job, if its events are known to have come

    def left(self) -> int | None:
        """Return the cycles until the next clock runs out, or None if there is none."""
        ends = [end for queue in self._engines if (end := _end(queue)) is not None]
        return max(0, min(ends) - self._bus.cycle) if ends else None

    def find(self) -> DeviceJob | None:
        """Return a job that is overdue, or None if there is none. Clocks of jobs that wait for others, or that have
        waited until now, begin again."""
        late = [q for q in self._engines if (end := _end(q)) is not None and end <= self._bus.cycle]
        if not late:
            return None
        waits = {queue.number: self._missing(queue) for queue in self._engines if queue.oldest}
        blocked = self._blocked(waits)
        for queue in late:
            job = _oldest(queue)
            if queue.number in blocked:
                return _oldest(self._engines[self._first_to_blame(blocked)])
            if not waits[queue.number] and (not job.waits or self._came.get(queue.number) is job):
                return job
            if not waits[queue.number]:
                self._came[queue.number] = job
            queue.restart_clock()
        return None

    def _missing(self, queue: EngineQueue) -> list[Signals]:
        """Return what the oldest job of an engine waits for."""
        left = [(event, (value - self._regs.read(f"EVENT[{event}]")) % _WORD) for event, value in _oldest(queue).waits]
        return [(event, count) for event, count in left if 0 < count < _WORD // 2]

    def _blocked(self, waits: Mapping[int, list[Signals]]) -> dict[int, list[Signals]]:
        """Return the engines that no other can set free, of those whose oldest jobs wait, by what they wait for."""
        blocked = {engine: missing for engine, missing in waits.items() if missing}
        while True:
            moving = [queue for queue in self._engines if queue.number not in blocked]
            freed = [
                engine
                for engine, missing in blocked.items()
                if all(sum(_signals(queue, event) for queue in moving) >= count for event, count in missing)
            ]
            if not freed:
                return blocked
            for engine in freed:
                del blocked[engine]

    def _first_to_blame(self, blocked: Mapping[int, list[Signals]]) -> int:
        """Return an engine whose job waits for signals that jobs queued before it do not give; there is one wherever
        nothing moves."""
        for engine, missing in blocked.items():
            job = _oldest(self._engines[engine])
            if any(sum(_signals(queue, event, job) for queue in self._engines) < count for event, count in missing):
                return engine
        return min(blocked)


def allowed(job: DeviceJob) -> int:
    """Return the cycles that a job may keep its engine from when it is the oldest and its events have come."""
    return BEGINNING + job.work.cycle_limit


def _oldest(queue: EngineQueue) -> DeviceJob:
    assert queue.oldest is not None
    return queue.oldest


def _end(queue: EngineQueue) -> int | None:
    """Return when the clock of an engine's oldest job runs out, or None without one, or if the job has no limit."""
    if queue.clock is None or not _oldest(queue).work.cycle_limit:
        return None
    return queue.clock + allowed(_oldest(queue))


def _signals(queue: EngineQueue, event: int, before: DeviceJob | None = None) -> int:
    """Return how many signals of ``event`` the unfinished jobs of an engine give, or those queued ``before`` a job."""
    jobs = [job for job in queue.unfinished if job.work.signal == event]
    return sum(before is None or (job.id - before.id) % _WORD > _WORD // 2 for job in jobs)
