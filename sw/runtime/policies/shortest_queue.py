"""Places operators by the number of operators in each queue."""

from sw.runtime.policies.contract import Operator, PlacementPolicy
from sw.runtime.policies.queue_heap import QueueHeap


class ShortestQueue(PlacementPolicy):
    """Lets an operator join the queue with the fewest operators, the running one included; ties go to the smaller
    number."""

    def __init__(self, queues: int) -> None:
        self._queues = QueueHeap([0] * queues)

    def place(self, operator: Operator) -> int:
        """Return the queue that the class describes."""
        queue = self._queues.smallest()
        self._queues.set(queue, self._queues.values[queue] + 1)
        return queue

    def executed(self, operator: Operator, queue: int) -> None:
        """Count one operator fewer in ``queue``."""
        self._queues.set(queue, self._queues.values[queue] - 1)
