"""Places operators in the queues of engines."""

import heapq
from collections.abc import Sequence

from sw.runtime.policies.contract import Operator, PlacementPolicy


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

    def add_to_smallest(self, amount: float) -> int:
        """Add ``amount`` to the smallest value; return its queue."""
        queue = self.smallest()
        self.values[queue] = value = self.values[queue] + amount
        heapq.heapreplace(self._heap, (value, queue))
        return queue

    def set(self, queue: int, value: float) -> None:
        """Give ``queue`` a value."""
        self.values[queue] = value
        heapq.heappush(self._heap, (value, queue))
        if len(self._heap) > 8 * len(self.values):  # outdated entries deep in the heap
            self._heap = [(value, queue) for queue, value in enumerate(self.values)]
            heapq.heapify(self._heap)


class ShortestQueue(PlacementPolicy):
    """Lets an operator join the queue with the fewest operators, the running one included; ties go to the smaller
    number."""

    def __init__(self, queues: int) -> None:
        self._queues = QueueHeap([0] * queues)

    def place(self, operator: Operator) -> int:
        """Return the queue that the class describes."""
        return self._queues.add_to_smallest(1)

    def executed(self, operator: Operator, queue: int) -> None:
        """Count one operator fewer in ``queue``."""
        self._queues.set(queue, self._queues.values[queue] - 1)


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
        queue = self._queues.add_to_smallest(operator.duration)
        self._added[queue][operator.request, operator.layer] = operator.duration
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


class LiveQueueTime(QueueTime):
    """Lets an operator join the queue with the smallest expected queue time at the moment at which its inputs will
    exist; ties go to the one with the smallest now, and then to the smaller number.

    What a queue will have run by then is not in its way. So the branches of a network that meet are dealt out anew to
    all queues, however long each was busy before. When a queue ends is worked out anew for each operator, from what is
    in the queues: operators follow each other there, wait for inputs that others make, and take their reference
    durations; one that should have run and is still there ends at any moment. A decision takes O(m) for m operators in
    all queues.

    ``since``: the time at which the initial waits are as given; from then on they pass.
    """

    def __init__(self, initial_waits: Sequence[float], since: float = 0.0) -> None:
        super().__init__(initial_waits)
        self._free = [since + wait for wait in initial_waits]  #: when what was there at first has run
        self._queued: dict[tuple[int, int], tuple[Operator, int]] = {}  #: in the order of their placement
        self._begins: dict[tuple[int, int], float] = {}  #: when each was last expected to begin

    def place(self, operator: Operator) -> int:
        """Return the queue that the class describes."""
        ends, free = self._forecast(operator.now)
        known = [ends[key] for key in operator.inputs if key in ends]
        ready = max([operator.now, *known]) if operator.inputs else max(operator.now, operator.ready)
        values = self._queues.values
        queue = min(range(len(free)), key=lambda one: (max(0.0, free[one] - ready), values[one]))
        key = operator.request, operator.layer
        self._queued[key] = operator, queue
        self._begins[key] = max(ready, free[queue])
        self._added[queue][key] = operator.duration
        self._queues.set(queue, values[queue] + operator.duration)
        return queue

    def _forecast(self, now: float) -> tuple[dict[tuple[int, int], float], list[float]]:
        """Return when each operator that is in a queue will have run, and when each queue will have run all of them."""
        ends, free = dict[tuple[int, int], float](), [max(now, end) for end in self._free]
        for key, (operator, queue) in self._queued.items():
            inputs = [ends[one] for one in operator.inputs if one in ends]
            begin = max([free[queue], *inputs] if operator.inputs else [free[queue], operator.ready])
            if begin <= now:  # it runs, since it was expected to begin or, if that was to be later, since now
                begin = min(now, self._begins.get(key, now))
            self._begins[key] = begin
            ends[key] = free[queue] = max(now, begin + operator.duration)
        return ends, free

    def executed(self, operator: Operator, queue: int) -> None:
        """Subtract what was added for ``operator``. What its queue had to run at first was ahead of it."""
        super().executed(operator, queue)
        key = operator.request, operator.layer
        del self._queued[key]
        self._begins.pop(key, None)
        self._free[queue] = 0.0
