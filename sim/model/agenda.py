"""Keeps what happens when: the events of a model in order of time."""

from collections.abc import Callable
from typing import Any

from sim.model.core import NOBODY, Core

Action = Callable[[int, Any], None]  #: told its time and what was scheduled with it


class Agenda:
    """Runs events in order of time, those of one cycle in the order in which they were scheduled. Some of the memory go
    ahead of all others of their cycle, or behind them. ``core`` holds the events, and runs what is its own."""

    def __init__(self) -> None:
        self.core = Core()
        self._address, self._at, self._state = self.core.address, self.core.call.at, self.core.state
        self._actions: dict[int, tuple[Action, Any]] = {}
        self._number = 0
        self.core.tell(event=self._happen)

    @property
    def stopped(self) -> int | None:
        """Return the cycle at which an event asked for an end by :meth:`stop`."""
        at: int = self._state.stopped
        return None if at == NOBODY else at

    @property
    def planned(self) -> int:
        """Return how many events were ever scheduled, those of the core included."""
        count: int = self._state.events_planned
        return count

    def at(self, time: int, action: Action, subject: Any = None) -> None:
        """Call ``action(time, subject)`` when all that is earlier has happened."""
        self._number = number = self._number + 1
        self._actions[number] = (action, subject)
        self._at(self._address, time, number)

    def _happen(self, time: int, number: int) -> None:
        action, subject = self._actions.pop(number)
        action(time, subject)

    def run(self, last: int) -> None:
        """Let all happen up to cycle ``last``, included, or until it is stopped."""
        self.core.call.run(self._address, last)
        self.core.check()

    def stop(self, time: int) -> None:
        """End the run at ``time``."""
        self._state.stopped = time
