"""Describes a published load: its tenants, when their requests arrive, and what its publication says of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Every:
    """Sends a request each ``period`` milliseconds: exactly, or that long apart on average if they are ``random``.

    ``share`` of them are sent, chosen at random: those that a tenant of the same ``choice`` does not send where that is
    ``inverted``.
    """

    period: float
    random: bool = False
    share: float = 1.0
    choice: str = ""
    inverted: bool = False


@dataclass(frozen=True)
class Bursts:
    """Sends ``count`` requests each ``period`` milliseconds, ``low`` to ``high`` milliseconds apart, where the period
    itself varies by up to ``jitter`` milliseconds; ``doubled`` of the periods have another burst in their middle."""

    period: float
    count: int = 1
    low: float = 0.0
    high: float = 0.0
    jitter: float = 0.0
    doubled: float = 0.0


@dataclass(frozen=True)
class Loop:
    """Sends the next request when one has ended: for as long as there are others, or ``counted`` as those of a
    tenant with a period are."""

    counted: bool = False


Pattern = Every | Bursts | Loop


@dataclass(frozen=True)
class Tenant:
    """Sends requests of one kind, each of which runs through ``networks`` in order.

    ``priority``: 0 for those without a claim. ``deadline``: from arrival, in milliseconds; ``slack``: the same as a
    multiple of what a request takes alone.
    """

    name: str
    networks: tuple[str, ...]
    pattern: Pattern
    priority: int = 0
    deadline: float | None = None
    slack: float | None = None


@dataclass(frozen=True)
class Published:
    """Holds what the publication of a load reports. ``figures``: by name; ``differs``: what one must know before
    comparing; ``checked``: the figures were read in the source itself."""

    source: str
    figures: Mapping[str, Any]
    differs: str
    checked: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"source": self.source, **self.figures, "differs": self.differs, "checked_in_source": self.checked}


@dataclass(frozen=True)
class Load:
    """Holds tenants and how their rates are scaled to a machine of another speed.

    ``reference``: milliseconds that a request of each network takes alone on the machine of the publication. With it,
    times are stretched so that the requests with a period demand the same share of ours; otherwise so that they demand
    ``demand``.
    """

    name: str
    tenants: tuple[Tenant, ...]
    published: Published
    reference: Mapping[str, float] = field(default_factory=dict)
    demand: float = 0.0
    policy: str = "idle_time"

    @property
    def networks(self) -> list[str]:
        """Return the names of all networks, each once."""
        return list(dict.fromkeys(network for tenant in self.tenants for network in tenant.networks))

    def demanded(self, alone: Mapping[str, float]) -> float:
        """Return the share of a machine that requests with a period demand where networks take ``alone``
        milliseconds."""
        return sum(sum(alone[n] for n in tenant.networks) * rate(tenant.pattern) for tenant in self.tenants)

    def dilation(self, alone: Mapping[str, float]) -> float:
        """Return by how much times are stretched on a machine on which networks take ``alone`` milliseconds; 1 where
        all tenants are closed loops."""
        demanded = self.demanded(alone)
        if not demanded:
            return 1.0
        return demanded / (self.demanded(self.reference) if self.reference else self.demand)


def rate(pattern: Pattern) -> float:
    """Return the mean requests per millisecond; 0 for a closed loop."""
    match pattern:
        case Every():
            return (1 - pattern.share if pattern.inverted else pattern.share) / pattern.period
        case Bursts():
            return pattern.count * (1 + pattern.doubled) / pattern.period
        case Loop():
            return 0.0
