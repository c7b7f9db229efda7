"""Balances queue times (operator scheduling by expected queue time, 2022)."""

from collections.abc import Sequence

from sw.runtime.policies.contract import Operator, PlacementPolicy
from sw.runtime.policies.queue_heap import QueueHeap


class QueueTime(PlacementPolicy):
    """Lets an operator join the queue with the smallest expected queue time; ties go to the smaller queue number.

    The expected queue time is the initial wait value of the queue plus the reference durations of all operators in it.
    What was added for an operator is subtracted when it has run, even if its reference duration changed meanwhile.
    A decision takes O(log n) for n queues, and O(n) while initial waits decay.

    ``decay_since``: initial waits fall by one for each unit of time from then on, as of engines that warm up, down to
    0; None if they stay.
    """

    def __init__(self, initial_waits: Sequence[float], decay_since: float | None = None) -> None:
        for queue, wait in enumerate(initial_waits):
            if wait < 0:
                raise ValueError(f"initial wait of queue {queue} must not be negative, not {wait}")
        self._full, self._initial = tuple(initial_waits), list(initial_waits)
        self._since = 0.0 if decay_since is None else decay_since
        self._warming = set() if decay_since is None else {q for q, wait in enumerate(initial_waits) if wait}
        self._added: list[dict[tuple[int, int], float]] = [{} for _ in initial_waits]
        self._queues = QueueHeap(initial_waits)

    @property
    def expected_times(self) -> list[float]:
        """Return the expected queue time of every queue."""
        return list(self._queues.values)

    def place(self, operator: Operator) -> int:
        """Return the queue that the class describes."""
        if self._warming:
            self._warm(operator.now)
        queue = self._queues.smallest()
        self._added[queue][operator.request, operator.layer] = operator.duration
        self._queues.set(queue, self._queues.values[queue] + operator.duration)
        return queue

    def _warm(self, now: float) -> None:
        """Let initial waits decay until ``now``."""
        for queue in list(self._warming):
            left = max(0.0, self._full[queue] - max(0.0, now - self._since))
            value = self._queues.values[queue] - self._initial[queue] + left if self._added[queue] else left
            self._initial[queue] = left
            self._queues.set(queue, value)
            if not left:
                self._warming.remove(queue)

    def executed(self, operator: Operator, queue: int) -> None:
        """Subtract what was added for ``operator``."""
        added = self._added[queue]
        duration = added.pop((operator.request, operator.layer))
        # An empty queue stands at its initial value exactly, whatever rounding did.
        left = self._queues.values[queue] - duration if added else self._initial[queue]
        self._queues.set(queue, left)
