"""Bounds what streams on other engines ask of the DRAM within some cycles, from how often their requests may come."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from caesura.certificate.image_stream import Demand, ImageTerms


@dataclass(frozen=True)
class DramUser:
    """Describes a stream as others see it through the DRAM. ``alone``: its terms beside nobody; ``period``, ``burst``:
    how often it comes; ``deadline``: by when every request has ended, in cycles from when it is due."""

    name: str
    priority: int
    engines: frozenset[int]
    alone: ImageTerms
    period: int | None
    burst: int
    deadline: int | None

    def requests(self, cycles: int) -> int:
        """Return how many requests can be under way at some time within so many cycles."""
        assert self.period is not None and self.deadline is not None
        return self.burst - 1 - (-(cycles + self.deadline) // self.period)

    def service(self, users: Iterable["DramUser"]) -> int:
        """Return how long DRAM can be busy for one request, with the switch from whoever it interrupts and back."""
        victims = [one for one in users if one.priority < self.priority and one.engines & self.engines]
        switch = max((one.alone.switch for one in victims), default=0)
        return min(self.alone.service, self.alone.execution) + switch


def demand_beside(name: str, users: Mapping[str, DramUser]) -> Demand | None:
    """Return what all of ``users`` on other engines than ``name`` ask of the DRAM within some cycles; None if one of
    them may come as often as it likes, or end when it likes.

    That requests end by their deadlines may be taken for granted: until the first that does not, they do.
    """
    others = [one for one in users.values() if not one.engines & users[name].engines]
    if any(one.period is None or one.deadline is None for one in others):
        return None
    service = {one.name: one.service(users.values()) for one in others}

    def demand(cycles: int) -> int:
        return sum(one.requests(cycles) * service[one.name] for one in others)

    return demand
