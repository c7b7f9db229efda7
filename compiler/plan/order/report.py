"""What an order search did: for each subgraph how many orders there are, how many were tried, and what they cost."""

import math
from dataclasses import dataclass
from typing import Any

from compiler.plan.order.graph import Order
from compiler.plan.order.orders import OrderCount


@dataclass(frozen=True)
class LowerBound:
    """No order takes fewer ``cycles``. ``exact``: a solver proved the optimum of its problem, not only a bound."""

    cycles: float
    exact: bool


@dataclass(frozen=True)
class SubgraphReport:
    """One subgraph. Prices are cycles: the ``best``, the ``worst`` of those tried, those of the ``source`` order and of
    the ``greedy`` one, and a ``lower_bound`` for every order; ``exact_bound``: some order's price may equal it, for it
    is the optimum of the price without spills."""

    name: str
    operators: tuple[str, ...]  #: in the best order
    orders: OrderCount
    tried: int
    best: float
    worst: float
    source: float
    greedy: float
    lower_bound: float
    exact_bound: bool = False
    complete: bool = False  #: all orders were tried
    good_enough: bool = False  #: the search ended as soon as the price was below the one asked for

    @property
    def gap(self) -> float:
        """Return the percent by which the best exceeds the lower bound."""
        return 100 * (self.best / self.lower_bound - 1) if self.lower_bound else 0.0

    def to_dict(self) -> dict[str, Any]:
        """For JSON. ``orders`` is a number if it is exact, else text."""
        return {
            "name": self.name,
            "operators": list(self.operators),
            "orders": self.orders.value if self.orders.exact else str(self.orders),
            "tried": self.tried,
            "complete": self.complete,
            "good_enough": self.good_enough,
            "best": _rounded(self.best),
            "worst": _rounded(self.worst),
            "source": _rounded(self.source),
            "greedy": _rounded(self.greedy),
            "lower_bound": _rounded(self.lower_bound),
            "exact_bound": self.exact_bound,
        }


@dataclass(frozen=True)
class OrderReport:
    """A whole graph: the order found, and its subgraphs in sequence."""

    name: str
    order: Order
    subgraphs: tuple[SubgraphReport, ...]

    @property
    def gain(self) -> float:
        """Return the percent of cycles less than the better of source order and greedy, subgraph by subgraph."""
        before = sum(min(part.source, part.greedy) for part in self.subgraphs)
        return 100 * (1 - sum(part.best for part in self.subgraphs) / before) if before else 0.0

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        totals = {key: sum(getattr(part, key) for part in self.subgraphs) for key in ("best", "source", "greedy")}
        return {
            "name": self.name,
            **{key: _rounded(value) for key, value in totals.items()},
            "gain_percent": round(self.gain, 2),
            "subgraphs": [part.to_dict() for part in self.subgraphs],
        }


def _rounded(cycles: float) -> float | None:
    return round(cycles, 1) if math.isfinite(cycles) else None
