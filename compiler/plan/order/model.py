"""The order of a whole model: cut into subgraphs, a search for each, and the orders linked."""

import time
from collections.abc import Callable
from dataclasses import replace

from compiler.plan.order.graph import MANY, OrderGraph, Price
from compiler.plan.order.orders import has_choice
from compiler.plan.order.report import LowerBound, OrderReport, SubgraphReport
from compiler.plan.order.search import DEFAULT_LIMITS, SearchLimits, search_order
from compiler.plan.order.subgraphs import SMALLEST, link, subgraphs

PriceOf = Callable[[OrderGraph], Price]  #: the price of a subgraph's orders
BoundOf = Callable[[OrderGraph], LowerBound]  #: what none of its orders can beat
ModelProgress = Callable[[str, int, float], None]  #: called with subgraph, orders tried and best cycles


def order_model(
    graph: OrderGraph,
    price_of: PriceOf,
    bound_of: BoundOf,
    limits: SearchLimits = DEFAULT_LIMITS,
    *,
    smallest: int = SMALLEST,
    progress: ModelProgress | None = None,
) -> OrderReport:
    """**Order search** for all of ``graph``: subgraphs between key nodes run in sequence, so each is searched alone.
    The time of ``limits`` is shared out by operators: each subgraph gets its part of what is left, one with a single
    order none. So are, in a graph of more than ``MANY``, the operators that are put in their places."""
    ends = time.monotonic() + limits.seconds
    parts = subgraphs(graph, smallest)
    orders, reports = [], []
    left = sum(len(part) for part in parts)
    for number, part in enumerate(parts):
        piece = graph.part(part, f"{graph.name}[{number}]")
        seconds = max(0.0, ends - time.monotonic()) * len(part) / left if has_choice(piece) else 0.0
        left -= len(part)
        placed = limits.placed * (len(part) / len(graph) if len(graph) > MANY else 1)

        def told(tried: int, best: float, name: str = piece.name) -> None:
            if progress:
                progress(name, tried, best)

        found = search_order(piece, price_of(piece), replace(limits, seconds=seconds, placed=placed), told)
        bound = bound_of(piece)
        orders.append(found.order)
        reports.append(
            SubgraphReport(
                piece.name, tuple(piece.operators[n].name for n in found.order), found.orders, found.tried,
                found.cycles, found.worst, found.source, found.greedy, bound.cycles, bound.exact, found.complete,
                found.good_enough,
            )
        )  # fmt: skip
    return OrderReport(graph.name, link(parts, orders), tuple(reports))
