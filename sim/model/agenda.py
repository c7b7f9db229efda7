"""What happens when: the events of a model in order of time."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

_LATE = 1 << 60  #: more than there are events

Action = Callable[[int, Any], None]  #: told its time and what was scheduled with it


class Agenda:
    """Events in order of time, those of one cycle in the order in which they were scheduled, but for those that are
    :meth:`early` or :meth:`late`.

    ``events``: a heap of them, time first. ``last``: the cycle up to which events may happen now. ``stopped``: when an
    event asked for an end by :meth:`stop`.
    """

    def __init__(self) -> None:
        self.events: list[tuple[int, int, Action, Any]] = []
        self._count = 0
        self.last = -1
        self.stopped: int | None = None

    def at(self, time: int, action: Action, subject: Any = None) -> None:
        """Call ``action(time, subject)`` when all that is earlier has happened."""
        self._count += 1
        heappush(self.events, (time, self._count, action, subject))

    def early(self, time: int, action: Action, subject: Any = None) -> None:
        """As :meth:`at`, ahead of all else of that cycle."""
        self._count += 1
        heappush(self.events, (time, self._count - _LATE, action, subject))

    def late(self, time: int, action: Action, subject: Any = None) -> None:
        """As :meth:`at`, behind all else of that cycle."""
        self._count += 1
        heappush(self.events, (time, self._count + _LATE, action, subject))

    def first(self, time: int) -> bool:
        """Whether nothing else is left to happen before ``time``, and ``time`` may come: what would be :meth:`early`
        then can be done at once."""
        return time <= self.last and (not self.events or self.events[0][0] >= time) and self.stopped is None

    def quiet_until(self) -> int:
        """The last cycle up to which nothing else is left to happen, as far as time may come."""
        return min(self.last, self.events[0][0] - 1) if self.events else self.last

    def run(self, last: int) -> None:
        """Let all happen up to cycle ``last``, included, or until it is stopped."""
        heap = self.events
        self.last, self.stopped = last, None
        while heap and heap[0][0] <= last and self.stopped is None:
            time, _, action, subject = heappop(heap)
            action(time, subject)

    def stop(self, time: int) -> None:
        """End the run at ``time``."""
        self.stopped = time
