"""Defines what a scenario is executed by: the interface behind which stand a device and the synthetic machine."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import simpy

from caesura.scenario.outcome import Frame, Outcome

Process = Generator[simpy.Event, Any, Any]  #: what SimPy runs


@dataclass(frozen=True, eq=False)
class ModelRun:
    """Describes one run of a model that a stage of ``frame`` asks for. ``stage``: its number there, from 0. ``token``:
    which of so many ``tokens`` of a conversation."""

    frame: Frame
    model: str
    priority: int
    stage: int = 0
    token: int = 0
    tokens: int = 1

    def next_token(self) -> "ModelRun | None":
        """Return the run for the token behind, None after the last."""
        return replace(self, token=self.token + 1) if self.token + 1 < self.tokens else None


class ModelExecutor(Protocol):
    """Runs models, and moves the simulated time in which requests arrive and the CPU works.

    It schedules layers by itself, under the policies it was made with.
    """

    env: simpy.Environment  #: simulated time, in ticks
    ticks: int  #: in one unit of the scenario's time

    def announce(self, run: ModelRun, delay: float) -> None:
        """``run`` will be submitted in ``delay`` ticks: so much is known, and may be used to switch ahead."""
        ...

    def submit(self, run: ModelRun) -> simpy.Event:
        """``run`` is ready to start. The event happens when it has ended; its value is true if it was dropped."""
        ...

    def run(self, served: simpy.Event) -> None:
        """Let time pass until ``served``. Raises what makes a run fail, ``RuntimeError`` if nothing can happen any
        more."""
        ...

    def outcome(self, frames: Sequence[Frame]) -> Outcome:
        """Return what ran, and ``frames``, which it ran for."""
        ...
