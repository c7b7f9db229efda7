"""Decisions about one layer: what was decided, and what is given because the layer of another length decided it."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from compiler.backend.memory.plan_error import OtherJobsError, PlanError
from compiler.backend.program.job_order import JobOrder

Choice = TypeVar("Choice", bound=Hashable)


@dataclass(frozen=True)
class LayerDecisions:
    """``jobs``: program order and points of each; ``choices``: what kernels chose, in the order in which they did
    (None: they are free to)."""

    jobs: tuple[JobOrder, ...]
    choices: tuple[Hashable, ...] | None

    def check_jobs(self, count: int) -> None:
        """Raise :class:`OtherJobsError` unless these are decisions about ``count`` jobs."""
        if len(self.jobs) != count:
            raise OtherJobsError(f"a layer has {count} jobs, in the plan {len(self.jobs)}")


class ChoiceLog:
    """Choices of kernels while they plan and emit a layer: ``made``, or ``given`` and then taken in the same order."""

    def __init__(self, given: Sequence[Hashable] | None = None) -> None:
        self.made: list[Hashable] = []
        self._given: Iterator[Hashable] | None = None if given is None else iter(given)

    def choose(self, make: Callable[[], Choice]) -> Choice:
        """Return the next choice: what ``make`` returns, unless it is given. Raises :class:`PlanError` if too few
        are."""
        if self._given is None:
            choice = make()
        else:
            try:
                choice = cast(Choice, next(self._given))
            except StopIteration:
                raise PlanError("a kernel has more to choose than in the plan") from None
        self.made.append(choice)
        return choice
