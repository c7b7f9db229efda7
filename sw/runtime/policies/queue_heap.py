"""Orders queues by a value each, for placement policies."""

import heapq
from collections.abc import Sequence


class QueueHeap:
    """Finds the queue with the smallest value, in O(log n): a heap with lazy deletion. Ties go to the smaller
    number."""

    def __init__(self, initial: Sequence[float]) -> None:
        if not initial:
            raise ValueError("there must be at least one queue")
        self.values = list(initial)
        self._heap = [(value, queue) for queue, value in enumerate(initial)]
        heapq.heapify(self._heap)

    def smallest(self) -> int:
        """Return the queue with the smallest value."""
        heap, values = self._heap, self.values
        while values[heap[0][1]] != heap[0][0]:  # an entry of a value that the queue no longer has
            heapq.heappop(heap)
        return heap[0][1]

    def set(self, queue: int, value: float) -> None:
        """Give ``queue`` a value."""
        self.values[queue] = value
        heapq.heappush(self._heap, (value, queue))
        if len(self._heap) > 8 * len(self.values):  # outdated entries deep in the heap
            self._heap = [(value, queue) for queue, value in enumerate(self.values)]
            heapq.heapify(self._heap)
