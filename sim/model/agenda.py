"""What happens when: the events of a model in order of time."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

Action = Callable[[int, Any], None]  #: told its time and what was scheduled with it


class Agenda:
    """Events in order of time, those of one cycle in the order in which they were scheduled.

    ``last``: the cycle up to which events may happen now. ``stopped``: when an event asked for an end by
    :meth:`stop`.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Action, Any]] = []
        self._count = 0
        self.last = -1
        self.stopped: int | None = None

    def at(self, time: int, action: Action, subject: Any = None) -> None:
        """Call ``action(time, subject)`` when all that is earlier has happened."""
        self._count += 1
        heappush(self._heap, (time, self._count, action, subject))

    def before_others(self, time: int) -> bool:
        """Whether nothing else is left to happen up to ``time``, and ``time`` may come: what would be scheduled for it
        next can be done at once."""
        return time <= self.last and (not self._heap or self._heap[0][0] > time) and self.stopped is None

    def quiet_until(self) -> int:
        """The last cycle up to which nothing else is left to happen, as far as time may come."""
        return min(self.last, self._heap[0][0] - 1) if self._heap else self.last

    def run(self, last: int) -> None:
        """Let all happen up to cycle ``last``, included, or until it is stopped."""
        heap = self._heap
        self.last, self.stopped = last, None
        while heap and heap[0][0] <= last and self.stopped is None:
            time, _, action, subject = heappop(heap)
            action(time, subject)

    def stop(self, time: int) -> None:
        """End the run at ``time``."""
        self.stopped = time
