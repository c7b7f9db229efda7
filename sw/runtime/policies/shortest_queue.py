"""Placement by number of operators."""

from sw.runtime.policies.contract import Operator, PlacementPolicy
from sw.runtime.policies.queue_heap import QueueHeap


class ShortestQueue(PlacementPolicy):
    """An operator joins the queue with the fewest operators, the running one included; ties: the smaller number."""

    def __init__(self, queues: int) -> None:
        self._queues = QueueHeap([0] * queues)

    def place(self, operator: Operator) -> int:
        """See the class."""
        queue = self._queues.smallest()
        self._queues.set(queue, self._queues.values[queue] + 1)
        return queue

    def executed(self, operator: Operator, queue: int) -> None:
        """One operator fewer in ``queue``."""
        self._queues.set(queue, self._queues.values[queue] - 1)
