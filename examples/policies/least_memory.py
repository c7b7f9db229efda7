"""A policy of one's own: the layer that needs least on-chip memory, priorities first. Run me."""

import sys
from collections.abc import Sequence

from caesura.policies import AcceleratorState, Candidate, OrderPolicy
from caesura.scenario import serve


class LeastMemory(OrderPolicy):
    """The most urgent layers first, among them the smallest, among equal ones the oldest."""

    def choose(self, state: AcceleratorState, candidates: Sequence[Candidate]) -> Candidate:
        """See the class."""
        return min(candidates, key=lambda c: (-c.priority, c.cost.bytes, c.arrival, c.request))


if __name__ == "__main__":
    for policy in ("fcfs", LeastMemory, "idle_time"):
        result = serve(sys.argv[1], policy, *sys.argv[2:]).result
        print(f"{result['policy']:14} ANTT {result['antt']:.2f}, late {result['sla_violation_rate']:.1%}")
