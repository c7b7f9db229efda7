"""The policies that a scenario is served under, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from caesura.api import UsageError
from sw.runtime.policies import ORDER, PLACEMENT, OrderPolicy, PlacementPolicy, by_name, placement_for
from sw.runtime.policies.fcfs import Fcfs


@dataclass(frozen=True)
class Policies:
    """What decides: the order of layers, and the queue that each joins.

    ``at_arrival``: all operators of a request are placed when it arrives, as queue balancers do; otherwise each time a
    layer starts, the next one is chosen.
    """

    name: str
    order: Callable[[], OrderPolicy]
    placement: Callable[..., PlacementPolicy]  #: from initial waits of the queues, and since when they decay if they do
    at_arrival: bool = False

    @classmethod
    def named(cls, name: str, placement: str = "queue_time", options: Mapping[str, Any] | None = None) -> "Policies":
        """The policy ``name`` with its ``options``. One for the order of layers is joined by one for ``placement``.

        Raises ``UsageError`` for a name or an option that does not exist.
        """
        chosen = dict(options or {})
        if name in PLACEMENT:
            if chosen:
                raise UsageError(f"policy {name!r} has no options, {', '.join(chosen)} given")
            return cls(name, Fcfs, partial(placement_for, name), at_arrival=True)
        if name not in ORDER:
            raise UsageError(f"no policy named {name!r}; there are {', '.join((*ORDER, *PLACEMENT))}")
        if placement not in PLACEMENT:
            raise UsageError(f"no placement policy named {placement!r}; there are {', '.join(PLACEMENT)}")

        def order() -> OrderPolicy:
            return by_name(name, **chosen)

        try:
            order()
        except (TypeError, ValueError) as error:
            raise UsageError(str(error)) from None
        return cls(name, order, partial(placement_for, placement))
