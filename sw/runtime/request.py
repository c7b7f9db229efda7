"""A request to the run time: one inference, as a future."""

import asyncio
import enum
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy.typing as npt

from hw.contract.image import StepInfo
from sw.driver import DriverError, LoadedModel
from sw.runtime.parts import Part, parts_of
from sw.runtime.session import Arrays, Session

Inputs = npt.ArrayLike | Mapping[str, npt.ArrayLike]


class State(enum.Enum):
    """Where a request stands."""

    WAITING = "waiting"  #: for its arrival, or for its model to be free
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RequestCancelled(DriverError):
    """The request was cancelled, so it has no result."""


@dataclass(eq=False)
class Request:
    """One inference. Made by ``Runtime.submit``; awaitable. Cycles are the SoC's.

    ``priority``: larger is more urgent. ``arrival``: cycle from which it may run; ``announced``: known before.
    ``deadline``: cycle, for policies.
    """

    number: int
    session: Session
    inputs: Inputs
    priority: int
    deadline: float | None
    arrival: int
    drive: Callable[[], None]  #: one turn of the run time
    withdraw: Callable[["Request"], None]  #: stop what is planned for it
    tag: object = None
    announced: bool = False
    state: State = State.WAITING
    outputs: Arrays | None = None
    error: DriverError | None = None
    started: int | None = None  #: cycle at which the host started it, for the last time if it had to be repeated
    ended: int | None = None  #: cycle at which its last job ended
    repeated: int = 0  #: times it was started over because another request stopped the engine
    cancelling: bool = False
    step: int = field(default=0, repr=False)
    parts_ended: int = field(default=0, repr=False)

    @property
    def model(self) -> LoadedModel:
        """The model it runs."""
        return self.session.model

    @property
    def steps(self) -> Sequence[StepInfo]:
        """Steps of the image."""
        return self.model.image.meta.steps

    @property
    def parts(self) -> list[Part]:
        """Of the current step."""
        return parts_of(self.model.image, self.steps[self.step])

    @property
    def progress(self) -> float:
        """Share of the model's layers that have ended, 0 to 1."""
        if self.state is State.DONE:
            return 1.0
        jobs = self.steps[: self.step]
        ended = sum(len(parts_of(self.model.image, step)) for step in jobs if step.kind == "jobs") + self.parts_ended
        total = sum(len(parts_of(self.model.image, step)) for step in self.steps if step.kind == "jobs")
        return ended / total if total else 0.0

    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self.state not in (State.WAITING, State.RUNNING)

    def exception(self) -> DriverError | None:
        """Why it failed; None if it has not. Runs until it is done."""
        while not self.done():
            self.drive()
        return self.error

    def result(self) -> Arrays:
        """Outputs by name. Runs until it is done; raises what made it fail, :class:`RequestCancelled` if it was."""
        error = self.exception()
        if error is not None:
            raise error
        assert self.outputs is not None
        return self.outputs

    def cancel(self) -> bool:
        """Give it up: nothing more is queued for it, and what is runs out. False if it was done already."""
        if self.done():
            return False
        self.cancelling = True
        self.withdraw(self)
        return True

    def __await__(self) -> Generator[object, None, Arrays]:
        while not self.done():
            self.drive()
            yield from asyncio.sleep(0).__await__()
        return self.result()

    def rewind(self) -> None:
        """Back to its start."""
        self.state, self.started, self.step, self.parts_ended = State.WAITING, None, 0, 0
        self.repeated += 1

    def end(self, cycle: int, error: DriverError | None = None) -> None:
        """It has ended at ``cycle``."""
        self.ended = cycle
        if self.cancelling:
            self.state, self.error = State.CANCELLED, RequestCancelled(f"request {self.number} was cancelled")
        elif error is not None:
            self.state, self.error = State.FAILED, error
        else:
            self.state, self.outputs = State.DONE, self.session.fetch()
