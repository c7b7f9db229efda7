"""What happens when: the events of a model in order of time."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

Action = Callable[[int, Any], None]  #: told its time and what was scheduled with it


class Agenda:
    """Events in order of time, those of one cycle in the order in which they were scheduled."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Action, Any]] = []
        self._count = 0

    def at(self, time: int, action: Action, subject: Any = None) -> None:
        """Call ``action(time, subject)`` when all that is earlier has happened."""
        self._count += 1
        heappush(self._heap, (time, self._count, action, subject))

    def run(self, last: int, until: Callable[[], bool] | None = None) -> int | None:
        """Let all happen up to cycle ``last``, included; or until an event after which ``until`` holds, whose time is
        returned."""
        heap = self._heap
        if until is None:
            while heap and heap[0][0] <= last:
                time, _, action, subject = heappop(heap)
                action(time, subject)
            return None
        while heap and heap[0][0] <= last:
            time, _, action, subject = heappop(heap)
            action(time, subject)
            if until():
                return time
        return None
