"""Makes scheduling policies by name. Each is one small class with one decision method, as ``contract`` describes.

The order of layers: ``fcfs``, ``round_robin``, ``sjf``, ``idle_time``, ``idle_time_tolerant``, ``deadline``,
``prema``. The placement of operators in engine queues: ``shortest_queue``, ``round_robin_queues``, ``earliest_finish``,
``queue_time``.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from sw.runtime.policies.contract import (
    AcceleratorState,
    Candidate,
    LayerCost,
    Operator,
    OrderPolicy,
    PlacementPolicy,
    Release,
)
from sw.runtime.policies.deadline import Deadline
from sw.runtime.policies.fcfs import Fcfs
from sw.runtime.policies.idle_time import Idle, IdleTime, IdleTimeTolerant, idle_times
from sw.runtime.policies.placement import EarliestFinish, QueueTime, RoundRobinQueues, ShortestQueue
from sw.runtime.policies.prema import Prema
from sw.runtime.policies.round_robin import RoundRobin
from sw.runtime.policies.sjf import ShortestJobFirst

__all__ = [
    "ORDER",
    "PLACEMENT",
    "AcceleratorState",
    "Candidate",
    "Idle",
    "LayerCost",
    "Operator",
    "OrderPolicy",
    "PlacementPolicy",
    "Release",
    "by_name",
    "idle_times",
    "placement_for",
]

ORDER: dict[str, Callable[..., OrderPolicy]] = {
    "fcfs": Fcfs,
    "round_robin": RoundRobin,
    "sjf": ShortestJobFirst,
    "idle_time": IdleTime,
    "idle_time_tolerant": IdleTimeTolerant,
    "deadline": Deadline,
    "prema": Prema,
}

PLACEMENT: dict[str, Callable[..., PlacementPolicy]] = {
    "shortest_queue": ShortestQueue,
    "round_robin_queues": RoundRobinQueues,
    "earliest_finish": EarliestFinish,
    "queue_time": QueueTime,
}


def by_name(name: str, **options: Any) -> OrderPolicy:
    """Return an order policy with its options, such as ``by_name("idle_time", window=3, starvation_limit=8)``.

    Raises ``ValueError`` for a name or an option that does not exist.
    """
    if name not in ORDER:
        raise ValueError(f"no policy named {name!r} for the order of layers; there are {', '.join(ORDER)}")
    accepted = inspect.signature(ORDER[name]).parameters if options else {}
    for option in options:
        if option not in accepted:
            raise ValueError(f"policy {name!r} has no option {option!r}; it takes {', '.join(accepted) or 'none'}")
    return ORDER[name](**options)


def placement_for(name: str, initial_waits: Sequence[float], decay_since: float | None = None) -> PlacementPolicy:
    """Return the placement policy ``name`` for as many queues as ``initial_waits``, whose values, and ``decay_since``,
    only ``queue_time`` uses."""
    if name == "queue_time":
        return QueueTime(initial_waits, decay_since)
    if name not in PLACEMENT:
        raise ValueError(f"no placement policy named {name!r}; there are {', '.join(PLACEMENT)}")
    return PLACEMENT[name](len(initial_waits))
