"""Queue-time balancing (operator scheduling by expected queue time, 2022)."""

from collections.abc import Sequence

from sw.runtime.policies.contract import Operator, PlacementPolicy
from sw.runtime.policies.queue_heap import QueueHeap


class QueueTime(PlacementPolicy):
    """An operator joins the queue with the smallest expected queue time; ties go to the smaller queue number.

    The expected queue time is the initial wait value of the queue plus the reference durations of all operators in it.
    What was added for an operator is subtracted when it has run, even if its reference duration changed meanwhile.
    A decision takes O(log n) for n queues.
    """

    def __init__(self, initial_waits: Sequence[float]) -> None:
        for queue, wait in enumerate(initial_waits):
            if wait < 0:
                raise ValueError(f"initial wait of queue {queue} must not be negative, not {wait}")
        self._initial = list(initial_waits)
        self._added: list[dict[tuple[int, int], float]] = [{} for _ in initial_waits]
        self._queues = QueueHeap(initial_waits)

    @property
    def expected_times(self) -> list[float]:
        """The expected queue time of every queue."""
        return list(self._queues.values)

    def place(self, operator: Operator) -> int:
        """See the class."""
        queue = self._queues.smallest()
        self._added[queue][operator.request, operator.layer] = operator.duration
        self._queues.set(queue, self._queues.values[queue] + operator.duration)
        return queue

    def executed(self, operator: Operator, queue: int) -> None:
        """Subtract what was added for ``operator``."""
        added = self._added[queue]
        duration = added.pop((operator.request, operator.layer))
        # An empty queue stands at its initial value exactly, whatever rounding did.
        left = self._queues.values[queue] - duration if added else self._initial[queue]
        self._queues.set(queue, left)
