"""Prepares the next job while a body runs, as ``hw/control/prepare.py`` does."""

from hw.contract.isa import Segment
from hw.contract.job import JobFlag
from hw.contract.timing import JOB_EVENTS, JOB_READ
from sim.model.jobs import Job, no_job
from sim.model.surroundings import Component

_WAIT_FLAGS = (JobFlag.WAIT0, JobFlag.WAIT1)  #: looked at one after the other
_NOTHING, _READING, _UNFETCHED, _EVENTS, _READY = range(5)


class PreparerModel(Component):
    """Reads a job, begins to fetch its body, and waits for its events."""

    def reset(self) -> None:
        self.generation += 1
        self._state = _NOTHING
        self._job = no_job()
        self._index = 0
        self._waits: list[tuple[int, JobFlag]] = []
        self._listening = False  # for a change of an event

    @property
    def ready(self) -> bool:
        """Return whether the next job may begin."""
        return self._state == _READY

    def take(self) -> Job:
        """Return the next job, which begins."""
        self._index += 1
        self._state = _NOTHING
        return self._job

    def prepare(self, time: int) -> None:
        """Read the next job, if the loader has handed it over, or has failed at it."""
        engine = self.engine
        if self._state != _NOTHING or engine.paused or not engine.enabled or engine.resetting:
            return
        if engine.loader.loaded != self._index or engine.loader.fault:
            self._state = _READING
            self.later(time + JOB_READ, self._read)

    def _read(self, time: int, _: None) -> None:
        engine = self.engine
        if engine.loader.loaded == self._index:
            job = engine.ring.jobs.get(self._index) or no_job(self._index)
            job.fault = engine.loader.fault
            self._job, self._state = job, _READY
            engine.executor.consider(time)
            return
        self._job = engine.ring.jobs[self._index]
        self._state = _UNFETCHED
        self.fetch(time)

    def fetch(self, time: int) -> None:
        """Begin to fetch the next body, once that of the last is over."""
        executor = self.engine.executor
        if self._state != _UNFETCHED or self.engine.paused or executor.fetching(time):
            return
        job = self._job
        base, limit = job.segments[Segment.CODE]
        executor.dispatch.fetch.start(time + 1, job.members["body_pc"], base, limit)
        self._state = _EVENTS
        self._waits = [(i, flag) for i, flag in enumerate(_WAIT_FLAGS) if job.has(flag)]
        first = self._waits[0][0] if self._waits else len(_WAIT_FLAGS)
        self._look(time + 1 + JOB_EVENTS - len(_WAIT_FLAGS) + first)

    def _look(self, time: int) -> None:
        if self._waits:
            self.later(self.engine.events.looked(time, self.engine.number), self._reached, self._waits[0][0])
        else:
            self.later(time, self._now_ready)

    def _reached(self, time: int, number: int) -> None:
        members, events = self._job.members, self.engine.events
        if events.reached(members[f"wait{number}_id"], members[f"wait{number}_value"]):
            del self._waits[0]
            following = self._waits[0][0] if self._waits else len(_WAIT_FLAGS)
            self._look(time + following - number)
        else:
            self._listening = True

    def event_changed(self, time: int) -> None:
        """Look again, as a counter was changed."""
        if self._listening:
            self._listening = False
            self._look(time)

    def _now_ready(self, time: int, _: None) -> None:
        self._state = _READY
        self.engine.executor.consider(time)
