"""Defines a request to the run time: one inference, as a future, the groups of it as they run, and whose error an
exception is."""

import asyncio
import enum
import math
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy.typing as npt

from hw.image import StepInfo
from sw.driver import DeviceFault, DeviceJob, DeviceTimeout, DriverError, JobResult, LoadedModel
from sw.runtime.job_groups import Expected, JobGroup, job_groups, reference_duration
from sw.runtime.model_data import Arrays, ModelData
from sw.runtime.past_durations import past_of
from sw.runtime.request_table import request_table
from sw.runtime.scheduler import Decision
from sw.runtime.stats import StepOnCpu

Inputs = npt.ArrayLike | Mapping[str, npt.ArrayLike]


class State(enum.Enum):
    """Names where a request stands."""

    WAITING = "waiting"  #: for its arrival, or for its model to be free
    RUNNING = "running"
    SUSPENDED = "suspended"  #: taken off the engines; it continues where it stood
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


_ENDED = {State.DONE, State.FAILED, State.CANCELLED}
#: States that may follow each state. Nothing follows an end, so a request ends exactly once.
_NEXT = {
    State.WAITING: {State.RUNNING, State.FAILED, State.CANCELLED},
    State.RUNNING: {State.WAITING, State.SUSPENDED, *_ENDED},
    State.SUSPENDED: {State.WAITING, State.RUNNING, *_ENDED},
    **{state: set() for state in _ENDED},
}


class RequestCancelled(DriverError):
    """Says that the request was cancelled, so it has no result."""


class DeadlineMissed(DriverError):
    """Says that the request had not ended by its deadline, so it was aborted. ``model``: its name; ``deadline`` and
    ``cycle``: it was found too late at that cycle; ``progress``: share of its layers that had ended, 0 to 1."""

    def __init__(self, request: "Request", cycle: int) -> None:
        self.model, self.deadline, self.cycle = request.model.name, request.last_cycle, cycle
        self.progress = request.progress
        super().__init__(
            f"{request.name} for model {self.model!r} missed its deadline, cycle {self.deadline:.0f}: at cycle {cycle} "
            f"it was {request.state.value}, with {self.progress:.0%} of its layers ended"
        )


@dataclass(frozen=True)
class CpuStep:
    """Is a ``step`` that the CPU computes from cycle ``begin`` to ``end``; its ``outputs`` are on the device from then
    on."""

    step: StepInfo
    begin: int
    end: int
    outputs: Arrays


@dataclass(eq=False)
class Request:
    """Is one inference, which ``Runtime.submit`` makes; it can be awaited. Cycles are the SoC's.

    ``priority``: larger is more urgent. ``arrival``: cycle from which it may run; ``announced``: known before.
    ``deadline``: the last cycle at which it may end, then it is aborted; a ``soft_deadline`` is for policies alone.
    ``engines``: those that it runs on if its model is to change them.
    """

    number: int
    data: ModelData
    inputs: Inputs
    priority: int
    deadline: float | None
    arrival: int
    drive: Callable[[], None]  #: one turn of the run time
    withdraw: Callable[["Request"], None]  #: cancel it: stop what is planned for it
    tag: object = None
    announced: bool = False
    engines: Sequence[int] | None = None
    soft_deadline: bool = False
    stream: str | None = None  #: of the certificate
    deferred: int = 0  #: cycles by which it was let in later than it came, as its stream is ahead of its rate
    state: State = State.WAITING
    outputs: Arrays | None = None
    error: Exception | None = None
    started: int | None = None  #: cycle at which the host started it, for the last time if it had to be repeated
    stored: int | None = None  #: likewise the cycle from which its inputs were on the device
    ended: int | None = None  #: cycle at which its last job ended
    repeated: int = (
        0  #: times it was started over: it was killed, or its engine was stopped for another, or its device died
    )
    preempted: int = 0  #: times it was suspended or killed for a more urgent one
    killed: int = 0  #: those of these times that it was killed, so that it started over
    results: list[JobResult] = field(default_factory=list, repr=False)  #: of its jobs that have ended
    setbacks: int = 0  #: times since its last layer that moving or clearing memories for it failed
    alone: bool = False  #: nothing else has been on the device since it started
    cancelling: bool = False
    missed: DeadlineMissed | None = None  #: set once it is aborted for its deadline
    host: int = 0  #: cycles of its steps on the CPU that have begun
    cpu_steps: list[StepOnCpu] = field(default_factory=list, repr=False)  #: those that have ended
    on_cpu: CpuStep | None = field(default=None, repr=False)
    step: int = field(default=0, repr=False)
    groups_ended: int = field(default=0, repr=False)

    def __repr__(self) -> str:
        """Return in a line what it is for and how far it is."""
        ended = f", ended at cycle {self.ended:,}" if self.ended is not None else ""
        failed = f", {type(self.error).__name__}" if self.error is not None else ""
        return (
            f"<Request {self.number} of {self.model.name!r}: {self.state.name.lower()}, priority {self.priority}, "
            f"arrival {self.arrival:,}{ended}{failed}>"
        )

    def _repr_html_(self) -> str:
        """Return a table of how it went, as notebooks show it."""
        return request_table(self)

    @property
    def name(self) -> str:
        """Return what messages call the request."""
        return f"request {self.number}"

    @property
    def model(self) -> LoadedModel:
        """Return the model that the request runs, as the driver knows it."""
        return self.data.model

    @property
    def tenant(self) -> str | None:
        """Return the tenant for whom the model was loaded, or None for the default one."""
        return self.model.tenant

    @property
    def last_cycle(self) -> float:
        """Return the last cycle at which the request may end, which is infinity if there is none."""
        return math.inf if self.deadline is None or self.soft_deadline else self.deadline

    @property
    def ending(self) -> bool:
        """Return whether nothing more is to be queued for the request: it ends with what is."""
        return self.cancelling or self.missed is not None

    @property
    def steps(self) -> Sequence[StepInfo]:
        """Return the steps of the image."""
        return self.model.image.meta.steps

    @property
    def groups(self) -> list[JobGroup]:
        """Return the groups of the current step; there are none once all steps have ended."""
        if self.step == len(self.steps):
            return []
        return job_groups(self.model.image, self.steps[self.step], self.expected)

    @property
    def expected(self) -> Expected:
        """Return what gives the durations of a layer of the model: as measured, or as layers like it let expect."""
        return past_of(self.data.device, self.tenant).of(self.model.image)

    @property
    def expected_cycles(self) -> float:
        """Return the cycles that the request takes when it has its engines to itself."""
        return sum(
            reference_duration(self.model.image, step, self.expected) + self.data.host_cycles(step)
            for step in self.steps
        )

    @property
    def progress(self) -> float:
        """Return the share of the model's layers that have ended, 0 to 1."""
        if self.state is State.DONE:
            return 1.0
        jobs = self.steps[: self.step]
        ended = sum(len(job_groups(self.model.image, step)) for step in jobs if step.kind == "jobs") + self.groups_ended
        total = sum(len(job_groups(self.model.image, step)) for step in self.steps if step.kind == "jobs")
        return ended / total if total else 0.0

    def done(self) -> bool:
        """Return whether the request has ended, well or not."""
        return self.state in _ENDED

    def exception(self) -> Exception | None:
        """Run until the request is done and return why it failed, or None if it has not."""
        while not self.done():
            self.drive()
        return self.error

    def result(self) -> Arrays:
        """Run until the request is done and return outputs by name; raises what made it fail, :class:`RequestCancelled`
        if it was."""
        error = self.exception()
        if error is not None:
            raise error
        assert self.outputs is not None
        return self.outputs

    def cancel(self) -> bool:
        """Give the request up: nothing more is queued for it, and what is runs out. Return False if it was done
        already."""
        if self.done():
            return False
        self.withdraw(self)
        return True

    def __await__(self) -> Generator[object, None, Arrays]:
        while not self.done():
            self.drive()
            yield from asyncio.sleep(0).__await__()
        return self.result()

    def run(self, cycle: int | None = None) -> None:
        """Note that the request is on the engines: started at ``cycle``, or continued."""
        self._become(State.RUNNING)
        self.started = self.started if cycle is None else cycle

    def suspend(self) -> None:
        """Note that the request was taken off the engines."""
        self._become(State.SUSPENDED)
        self.preempted += 1

    def hold(self) -> None:
        """Note that the request could not be brought back on the engines."""
        self._become(State.SUSPENDED)

    def rewind(self) -> None:
        """Go back to the request's start."""
        self._become(State.WAITING)
        self.started = self.stored = self.on_cpu = None
        self.step, self.groups_ended, self.results, self.host, self.cpu_steps = 0, 0, [], 0, []
        self.repeated += 1

    def miss(self, cycle: int) -> DeadlineMissed:
        """Note that it is too late for the request at ``cycle``, and return its error, which says where it stood when
        that was found first."""
        self.missed = self.missed or DeadlineMissed(self, cycle)
        return self.missed

    def end(self, cycle: int, error: Exception | None = None) -> None:
        """End the request at ``cycle``."""
        if self.cancelling:
            self._become(State.CANCELLED)
            self.error = RequestCancelled(f"request {self.number} was cancelled")
        else:
            outputs = None
            if self.missed is not None or (error is None and cycle > self.last_cycle):
                meanwhile, error = error, self.miss(cycle)
                if meanwhile is not None and meanwhile is not error:
                    error.add_note(f"while it was being aborted there was another error: {meanwhile!r}")
            if error is None:
                try:
                    outputs = self.data.fetch()
                except Exception as failure:  # whatever it is, it is this request's own
                    error = failure
            self._become(State.DONE if error is None else State.FAILED)
            self.outputs, self.error = outputs, error
        self.ended = cycle

    def failed_at_end(self, error: Exception) -> None:
        """Note that what was called with the request at its end raised ``error``: it has failed, unless it had
        anyway."""
        if self.error is not None:
            self.error.add_note(f"at its end there was another error: {error!r}")
            return
        self.state, self.outputs, self.error = State.FAILED, None, error

    def _become(self, state: State) -> None:
        if state not in _NEXT[self.state]:
            raise RuntimeError(f"request {self.number} is {self.state.value} and cannot become {state.value}")
        self.state = state


class Blamed(Exception):
    """Says that ``error`` is that of ``request`` alone."""

    def __init__(self, request: Request, error: Exception) -> None:
        super().__init__(f"request {request.number}: {error}")
        self.request, self.error = request, error


@contextmanager
def blaming(request: Request) -> Iterator[None]:
    """Blame ``request`` alone for errors. Faults and time-outs of the device pass: they say themselves whose they
    are."""
    try:
        yield
    except (Blamed, DeviceFault, DeviceTimeout):
        raise
    except Exception as error:
        raise Blamed(request, error) from error


@dataclass(eq=False)
class GroupRun:
    """Is a group of a request, from the decision for it until it has ended. Cycles are the SoC's."""

    request: Request
    index: int  #: of the group in its step
    group: JobGroup
    decision: Decision
    decided: int
    left: deque[int]  #: indices of jobs not queued yet
    jobs: list[DeviceJob] = field(default_factory=list)  #: those that were queued, until all have ended
    results: list[JobResult] = field(default_factory=list)
    idle: tuple[float, float] = (0.0, 0.0)  #: measured: of compute and of memory access, before and within it
    stopped: list[int] = field(default_factory=list)  #: when its preempted bodies had begun or gone on, about

    def has(self, job_id: int) -> bool:
        """Return whether the job is one of this group."""
        return any(job.id == job_id for job in self.jobs)

    @property
    def load_start(self) -> int:
        """Return when the group's first prologue began, or when it was decided on if it has none."""
        return min((r.prologue_start for r in self.results if r.prologue_start), default=self.decided)

    @property
    def load_end(self) -> int:
        """Return when the group's last prologue had landed."""
        return max((r.prologue_end for r in self.results if r.prologue_start), default=self.decided)

    @property
    def start(self) -> int:
        """Return when the group's first body began."""
        return min([r.start for r in self.results] + self.stopped)

    @property
    def end(self) -> int:
        """Return when the group's last body had drained."""
        return max(r.end for r in self.results)
