"""A request to the preemptive run time: one inference, whose jobs are queued in order as far as the rings have room."""

from dataclasses import dataclass, field

from sw.driver import Device, DriverError, JobResult, LoadedModel
from sw.driver.preempt.suspension import Suspension
from sw.runtime.request import Inputs
from sw.runtime.session import Arrays, Session


@dataclass(eq=False)
class PriorityRequest:
    """One inference. ``priority``: larger is more urgent. ``arrival``: cycle from which it may run. ``announced``: that
    was known before. ``results``: of its jobs, once it has ended; ``error``: why it failed."""

    number: int
    session: Session
    inputs: Inputs
    priority: int
    arrival: int
    outputs: Arrays | None = None
    error: DriverError | None = None
    results: list[JobResult] = field(default_factory=list)
    started: int | None = None  #: cycle at which the host started it (again, after a kill)
    ended: int | None = None
    suspension: Suspension | None = None
    preempted: int = 0  #: times it was suspended or killed
    announced: bool = False
    _step: int = 0
    _next: int = 0  #: jobs of the step submitted so far
    _ids: list[int] = field(default_factory=list)

    @property
    def model(self) -> LoadedModel:
        """The model it runs."""
        return self.session.model

    @property
    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self.ended is not None

    def rewind(self) -> None:
        """Back to its start."""
        self._step = self._next = 0
        self._ids, self.results, self.started, self.suspension = [], [], None, None

    def jobs_left(self) -> list[int]:
        """Jobs not submitted, in order, over all steps left."""
        steps = [s for s in self.model.image.meta.steps[self._step :] if s.kind == "jobs"]
        jobs = [job for s in steps for job in range(s.first, s.first + s.count)]
        return jobs[self._next :]

    def complete(self, device: Device) -> bool:
        """Whether its last job has ended, even if nothing has been taken yet."""
        ended = all(device.finished(i) for i in self._ids)
        return ended and not self.jobs_left() and self._step >= len(self.model.image.meta.steps) - 1

    def drained(self, device: Device) -> bool:
        """Whether all it has queued has ended: no interrupt will tell, if a pause has taken the completions."""
        return bool(self._ids) and all(device.finished(i) for i in self._ids)

    def pump(self, device: Device) -> bool:
        """Submit what fits and take what has ended; True once everything has."""
        steps = self.model.image.meta.steps
        while self._step < len(steps):
            step = steps[self._step]
            if step.kind == "host":
                self.session.run_host(step)
            else:
                left = range(step.first + self._next, step.first + step.count)
                ids = device.submit(self.model, left, limit=0) if left else []
                self._ids += ids
                self._next += len(ids)
                if self._next < step.count or not all(device.finished(i) for i in self._ids):
                    return False
                self.results += device.collect(self._ids, 0)
            self._step, self._next, self._ids = self._step + 1, 0, []
        return True
