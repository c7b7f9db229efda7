"""``caesura bench order``: the search for the order of operators, by the price of the order alone.

Graphs are drawn from seeds, and counted and priced in full or by the constraint solver to judge the search, which knows
nothing of that.
"""

from functools import cache, partial
from typing import Any

from benchmarks import order_programs
from benchmarks.figures import Figure, Measured, NotAvailableError, Target
from benchmarks.lab import Lab
from benchmarks.order_cases import graphs
from benchmarks.order_examples import worked_examples
from benchmarks.order_search.estimate import chip_model, order_graph
from benchmarks.order_search.lower_bound import NoSolverError, exact_bound, quick_bound
from benchmarks.order_search.price import ChipModel, OrderPrice
from benchmarks.workloads import branchy, workload
from compiler import (
    LowerBound,
    OrderGraph,
    SearchLimits,
    completions,
    count,
    every_order,
    greedy_order,
    import_model,
    least_peak_order,
    order_model,
    peak_bytes,
    search_order,
    spills,
)

GRAPHS = 100
MOST_ORDERS = 5000
FEWEST_ORDERS = 1000
ROOMY = ChipModel(on_chip_bytes=1 << 40, dram_bytes_per_cycle=8.0, tile=0.25, ahead=64)
DEAR_BANDWIDTH = 1 / 16  #: bytes per cycle: to spill the smallest tensor takes longer than all that an order can gain
#: Less than most of these graphs have orders, and the search may not try all because they are few.
LIMITS = SearchLimits(few=0, samples=100, tries=1000)
NETWORK_LIMITS = SearchLimits(few=1000, samples=100, tries=3000)
NETWORKS = [name for name in branchy.NETWORKS if not name.endswith("_small")]


def figures() -> list[Figure]:
    """Return all rows, in the order of the report."""
    return [
        Figure("worked_examples", Target(100, 100), _worked_examples),
        Figure("finds_optimum", Target(97, 100), _finds_optimum),
        Figure("above_lower_bound", Target(10, 2, at_most=True), _above_lower_bound),
        Figure("spill_free_found", Target(95, 100), _spill_free_found),
        Figure("order_alone_by_price", Target(3, 8), _order_alone),
        *(Figure(f"order_alone_{name}", Target(0, 8), partial(_network_gain, name=name)) for name in NETWORKS),
        *order_programs.figures(),
    ]


def _worked_examples(lab: Lab) -> Measured:
    checks = worked_examples()
    return Measured(100 * sum(checks.values()) / len(checks), True, {"checks": checks})


def _finds_optimum(lab: Lab) -> Measured:
    """In how many graphs the best order found is as good as the best of all."""
    hits, tried, orders, missed = 0, [], [], {}
    for graph in graphs(range(9, 15), lambda graph: FEWEST_ORDERS < count(graph).value <= MOST_ORDERS, GRAPHS):
        price = OrderPrice(graph, ROOMY)
        best = min(map(price, every_order(graph)))
        found = search_order(graph, price, LIMITS)
        hits += found.cycles <= best
        if found.cycles > best:
            missed[graph.name] = round(100 * (found.cycles / best - 1), 2)
        tried.append(found.tried)
        orders.append(found.orders.value)
    detail = {"graphs": GRAPHS, "orders": _spread(orders), "tried": _spread(tried), "missed_by_percent": missed}
    return Measured(100 * hits / GRAPHS, True, detail)


def _above_lower_bound(lab: Lab) -> Measured:
    """By how much the best order found may exceed the optimum, in the worst of the graphs."""
    gaps, gains, exact, orders = [], [], 0, []
    for graph in graphs(range(12, 15), lambda graph: count(graph).value > FEWEST_ORDERS, GRAPHS):
        found = search_order(graph, OrderPrice(graph, ROOMY), LIMITS)
        try:
            bound = exact_bound(graph, ROOMY)
        except NoSolverError as error:
            raise NotAvailableError(str(error)) from None
        gaps.append(100 * (found.cycles / bound.cycles - 1))
        gains.append(100 * (1 - found.cycles / min(found.source, found.greedy)))
        exact += bound.exact
        orders.append(found.orders.value)
    detail = {
        "graphs": GRAPHS,
        "orders": _spread(orders),
        "mean": round(sum(gaps) / GRAPHS, 3),
        "bounds_proved_exact": exact,
        "mean_gain_over_source_and_greedy": round(sum(gains) / GRAPHS, 2),
    }
    return Measured(max(gaps), True, detail)


def _spill_free_found(lab: Lab) -> Measured:
    """In how many graphs the best order found spills nothing, where memory is as small as it can be for that, and DRAM
    so slow that no order with a spill is worth it."""
    free, greedy, orders = 0, 0, []
    for graph in graphs(range(20, 27), _tight, GRAPHS):
        chip = ChipModel(_least_peak(graph), DEAR_BANDWIDTH, tile=ROOMY.tile)
        found = search_order(graph, OrderPrice(graph, chip), LIMITS)
        free += not spills(graph, found.order, chip.on_chip_bytes)
        greedy += not spills(graph, greedy_order(graph), chip.on_chip_bytes)
        orders.append(found.orders.value)
    detail = {"graphs": GRAPHS, "orders": _spread(orders), "spill_free_greedy": greedy}
    return Measured(100 * free / GRAPHS, True, detail)


def _tight(graph: OrderGraph) -> bool:
    """Many orders, and the source order needs more memory than another."""
    return completions(graph) is not None and peak_bytes(graph, graph.source) > _least_peak(graph)


@cache
def _least_peak(graph: OrderGraph) -> int:
    """Return the smallest peak of all orders: every downset is followed."""
    return peak_bytes(graph, least_peak_order(graph, width=1 << 40))


@cache
def _gain(params: Any, name: str) -> tuple[float, bool, dict[str, Any]]:
    """Return the percent of cycles that the order found saves against the better of source order and greedy, the price
    of the whole network each; whether it is an order; and what explains it."""
    graph, chip = order_graph(import_model(workload(name)), params), chip_model(params)
    report = order_model(
        graph,
        lambda part: OrderPrice(part, chip),
        lambda part: LowerBound(quick_bound(part, chip), False),
        NETWORK_LIMITS,
    )
    price = OrderPrice(graph, chip)
    cycles = {"source": price(graph.source), "greedy": price(greedy_order(graph)), "found": price(report.order)}
    gain = 100 * (1 - cycles["found"] / min(cycles["source"], cycles["greedy"]))
    detail = {"cycles": {key: round(value) for key, value in cycles.items()}, **report.to_dict()}
    return gain, graph.is_order(report.order), detail


def _order_alone(lab: Lab) -> Measured:
    """Return the mean over the networks."""
    gains = {name: _gain(lab.params, name) for name in NETWORKS}
    mean = sum(gain for gain, _, _ in gains.values()) / len(gains)
    each = {name: round(gain, 2) for name, (gain, _, _) in gains.items()}
    return Measured(mean, all(correct for _, correct, _ in gains.values()), {"percent": each})


def _network_gain(lab: Lab, name: str) -> Measured:
    return Measured(*_gain(lab.params, name))


def _spread(values: list[int]) -> dict[str, int]:
    ordered = sorted(values)
    return {"least": ordered[0], "median": ordered[len(ordered) // 2], "most": ordered[-1]}
