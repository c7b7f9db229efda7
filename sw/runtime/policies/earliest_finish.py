"""Places an operator by the time at which it would end."""

from sw.runtime.policies.contract import Operator, PlacementPolicy


class EarliestFinish(PlacementPolicy):
    """Lets an operator join the queue in which it would end first, its inputs considered; ties go to the smaller
    number.

    Like HEFT (Topcuoglu et al., 2002) without insertion into gaps: each queue is believed busy until the operators
    placed in it have run for their reference durations, and free at once when the last of them has ended.
    """

    def __init__(self, queues: int) -> None:
        self._free_at = [0.0] * queues
        self._waiting = [0] * queues

    def place(self, operator: Operator) -> int:
        """Return the queue that the class describes."""
        earliest = max(operator.now, operator.ready)
        ends = [max(earliest, free_at) + operator.duration for free_at in self._free_at]
        queue = min(range(len(ends)), key=ends.__getitem__)
        self._free_at[queue] = ends[queue]
        self._waiting[queue] += 1
        return queue

    def executed(self, operator: Operator, queue: int) -> None:
        """Note that a queue that has run empty is free."""
        self._waiting[queue] -= 1
        if not self._waiting[queue]:
            self._free_at[queue] = 0.0
