"""Finds the first waiting requests of each model and priority, however many there are."""

import heapq
from collections.abc import Callable, Collection, Iterator

from sw.runtime.request import Request


class FirstRequests:
    """Holds requests of which only the oldest of each model and priority may be next.

    ``find``: the request of a number as long as it belongs here, otherwise None. It is asked about the oldest ones
    alone, and those that do not belong here any more are forgotten then.
    """

    def __init__(self, find: Callable[[int], Request | None]) -> None:
        self._find = find
        self._waiting: dict[int, dict[int, list[tuple[int, int]]]] = {}  #: heaps of (arrival, number)

    def add(self, request: Request) -> None:
        """Add ``request``, which belongs here from now on."""
        by_priority = self._waiting.setdefault(request.model.number, {})
        heapq.heappush(by_priority.setdefault(request.priority, []), (request.arrival, request.number))

    def of_models_not(self, used: Collection[int]) -> Iterator[Request]:
        """Yield the oldest request of each priority and of each model whose number is not among those ``used``."""
        for model, by_priority in list(self._waiting.items()):
            if model in used:
                continue
            for priority, heap in list(by_priority.items()):
                first = self._first(heap)
                if first is not None:
                    yield first
                else:
                    del by_priority[priority]
            if not by_priority:
                del self._waiting[model]

    def _first(self, heap: list[tuple[int, int]]) -> Request | None:
        while heap:
            found = self._find(heap[0][1])
            if found is not None:
                return found
            heapq.heappop(heap)
        return None
