"""Makes policies: by name, of a class or of whatever else makes one; or takes one that exists."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
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
        places = f"; {name} chooses queues: give it as placement" if name in PLACEMENT else ""
        raise ValueError(f"no policy named {name!r} for the order of layers; there are {', '.join(ORDER)}{places}")
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


#: What decides: a policy's name, its class or another maker, or a policy that exists.
OrderChoice = str | OrderPolicy | Callable[..., OrderPolicy]
PlacementChoice = str | PlacementPolicy | Callable[..., PlacementPolicy]


@dataclass(frozen=True)
class PolicyObject:
    """Makes a policy that exists: the same object each time, so what it knows stays with it."""

    policy: OrderPolicy

    def __call__(self) -> OrderPolicy:
        """Return the policy."""
        return self.policy


def order_maker(choice: OrderChoice, **options: Any) -> Callable[[], OrderPolicy]:
    """Return what makes the order policy of ``choice``, once it has made one.

    Raises ``ValueError`` for a name or an option that does not exist, ``TypeError`` for what makes no policy, and what
    the maker raises.
    """
    if isinstance(choice, PolicyObject):
        return choice
    if isinstance(choice, str):
        make: Callable[[], OrderPolicy] = partial(by_name, choice, **options)
    elif isinstance(choice, type) or not hasattr(choice, "choose"):
        if not callable(choice):
            raise TypeError(f"a policy is a name, a class or an object with the method choose, not {choice!r}")
        make = partial(choice, **options) if options else choice
    elif options:
        raise ValueError(f"{policy_name(choice)} exists, and takes no options ({', '.join(options)}): give its class")
    else:
        given: Any = choice
        make = PolicyObject(given)
    made = make()
    lacking = [name for name in ("choose", "window", "yields") if not hasattr(made, name)]
    if lacking:
        raise TypeError(
            f"{policy_name(choice)} is no policy for the order of layers: it has no {', '.join(lacking)}; derive its "
            "class from caesura.policies.OrderPolicy"
        )
    return make


def placement_maker(choice: PlacementChoice) -> Callable[..., PlacementPolicy]:
    """Return what makes the placement policy of ``choice`` from the initial waits of the queues, and since when they
    decay. A class is given the number of queues, unless it is a :class:`QueueTime`. Raises ``TypeError`` for what is no
    policy."""
    if isinstance(choice, str):
        return partial(placement_for, choice)
    given: Any = choice
    if isinstance(choice, type):
        return given if issubclass(choice, QueueTime) else lambda waits, since=None: given(len(waits))
    if places := getattr(choice, "place", None):
        if not callable(places):
            raise TypeError(f"{policy_name(choice)} is no placement policy: its place is no method")
        return lambda waits, since=None: given
    if not callable(choice):
        raise TypeError(f"a placement policy is a name, a class or an object with the method place, not {choice!r}")
    return given


def policy_name(choice: OrderChoice | PlacementChoice) -> str:
    """Return what people read of ``choice``: the name that it is known by, or that of its class."""
    if isinstance(choice, str):
        return choice
    if isinstance(choice, PolicyObject):
        choice = choice.policy
    of = choice if isinstance(choice, type) else type(choice)
    known = [name for made in (ORDER, PLACEMENT) for name, maker in made.items() if maker is of]
    return known[0] if known else getattr(choice, "__name__", of.__name__)
