"""Places operators in turn."""

from sw.runtime.policies.contract import Operator, PlacementPolicy


class RoundRobinQueues(PlacementPolicy):
    """Lets operators join queue 0, 1, 2, ... in turn."""

    def __init__(self, queues: int) -> None:
        self._queues = queues
        self._next = 0

    def place(self, operator: Operator) -> int:
        """Return the queue that the class describes."""
        queue = self._next
        self._next = (queue + 1) % self._queues
        return queue
