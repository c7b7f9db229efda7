"""Makes policies by name."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from sw.runtime.policies.contract import OrderPolicy, PlacementPolicy
from sw.runtime.policies.deadline import Deadline
from sw.runtime.policies.idle_time import IdleTime, IdleTimeTolerant
from sw.runtime.policies.placement import EarliestFinish, QueueTime, RoundRobinQueues, ShortestQueue
from sw.runtime.policies.request_order import Fcfs, Prema, RoundRobin, ShortestJobFirst

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
