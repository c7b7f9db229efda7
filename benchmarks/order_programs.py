"""Rows of ``caesura bench order`` that compile programs and run them: what regions and the order of layers are worth."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.figures import Figure, Measured
from benchmarks.lab import Lab
from benchmarks.order_seventy import seventy_layers
from benchmarks.rows import Target
from benchmarks.workloads import branchy, workload
from caesura.progress import Progress
from compiler.backend.options import Options
from compiler.backend.pipeline import build
from compiler.frontend import import_model
from compiler.ir import Graph
from compiler.order.graph import Order, OrderGraph
from compiler.order.greedy import greedy_order
from compiler.order.orders import completions, depth_first, every_order, random_order
from compiler.order.price import Price
from compiler.reference import run_all
from hw.contract.image import Image
from hw.contract.params import preset
from sim.backends import DEFAULT_BACKEND

NETWORKS = tuple(name for name in branchy.NETWORKS if not name.endswith("_small"))
RANKED = ("inception_small", "shufflenet_small", "nasnet_small", "random_wired_small")
ORDERS = 30  #: of each ranked network
SEED = 11


def figures() -> list[Figure]:
    """The rows; all but the first take many minutes."""
    return [
        Figure("rtl_branchy", Target(15, 30), partial(_gain, by_order=False), optional=True),
        *(
            Figure(f"rtl_{name}", Target(0, 30), partial(_gain, by_order=False, names=(name,)), True)
            for name in NETWORKS
        ),
        Figure("rtl_order_alone", Target(3, 8), partial(_gain, by_order=True), optional=True),
        Figure("rtl_rank", Target(0.9, 0.98, "rho"), _rank, optional=True),
        Figure("rtl_seventy", Target(0, 5), _seventy, optional=True),
    ]


class Ordered(NamedTuple):
    """A model compiled in one order. ``joined``: its regions."""

    image: Image
    price: float
    order: Order
    joined: int


def compiled(graph: Graph, lab: Lab, choose: Callable[[OrderGraph], Order] | None, options: Options) -> Ordered:
    """``graph`` in the order that ``choose`` gives; without, in that of ``options``, whose price is not known."""
    seen: list[tuple[float, Order]] = []

    def noted(operators: OrderGraph, price: Price) -> Order:
        assert choose is not None
        order = choose(operators)
        seen.append((price(order), order))
        return order

    image, _ = build(graph, lab.params, options, choose_order=noted if choose else None)
    price, order = seen[-1] if seen else (0.0, ())
    return Ordered(image, price, order, sum(" + " in layer.name for layer in image.meta.layers))


def _gain(lab: Lab, by_order: bool, names: tuple[str, ...] = NETWORKS) -> Measured:
    """Percent of cycles that the default saves, mean over the networks: against layer by layer in source order, or
    ``by_order`` against the better of source order and list scheduling with regions too."""
    gains, correct, detail = [], True, {}
    for name in names:
        graph = import_model(workload(name))
        whole = Options(engines=lab.params.engines)
        default = compiled(graph, lab, None, whole)
        others = {
            "layers": compiled(graph, lab, None, Options(engines=lab.params.engines, regions=False, order="source"))
        }
        if by_order:
            others = {"source": compiled(graph, lab, lambda g: g.source, whole)}
            others["greedy"] = compiled(graph, lab, greedy_order, whole)
        runs = {key: lab.run_image(name, one.image) for key, one in {"found": default, **others}.items()}
        cycles = {key: run.stats.cycles for key, run in runs.items()}
        best = min(cycles[key] for key in others)
        gains.append(100 * (1 - cycles["found"] / best))
        without = others["layers"].joined if "layers" in others else 0
        correct &= all(run.correct for run in runs.values()) and default.joined > 0 and not without
        detail[name] = {"percent": round(gains[-1], 2), "cycles": cycles, "regions": default.joined}
    return Measured(sum(gains) / len(gains), correct, {"preset": lab.params.name, **detail})


def _rank(lab: Lab) -> Measured:
    """The lowest of the rank correlations (Spearman) between price and cycles of random orders, over the graphs."""
    detail, lowest, correct = {}, 1.0, True
    with Lab(preset("tiny"), DEFAULT_BACKEND, Progress()) as small:
        for name in (*RANKED, "seventy"):
            seventy = name == "seventy"
            graph = seventy_layers() if seventy else import_model(workload(name))
            found = [_random(graph, small, seed) for seed in range(SEED, SEED + ORDERS)]
            prices, cycles = [], []
            for one in found:
                measured, equal = _run(small, graph, one.image) if seventy else _run_workload(small, name, one.image)
                prices.append(one.price)
                cycles.append(measured)
                correct &= equal and one.joined > 0
            rho = spearman(prices, cycles)
            lowest = min(lowest, rho)
            orders = len({one.order for one in found})
            detail[name] = {"rho": round(rho, 3), "orders": orders, "cycles": [min(cycles), max(cycles)]}
    return Measured(lowest, correct, {"measured_on": f"{DEFAULT_BACKEND}, tiny", **detail})


def _random(graph: Graph, lab: Lab, seed: int) -> Ordered:
    rng = np.random.default_rng(seed)

    def choose(operators: OrderGraph) -> Order:
        import random

        return random_order(operators, random.Random(int(rng.integers(1 << 30))), completions(operators))

    return compiled(graph, lab, choose, Options())


def _run_workload(lab: Lab, name: str, image: Image) -> tuple[int, bool]:
    run = lab.run_image(name, image)
    return run.stats.cycles, run.correct


def _run(lab: Lab, graph: Graph, image: Image) -> tuple[int, bool]:
    """Cycles of one inference of a graph without an ONNX file, and whether its outputs equal the reference."""
    rng = np.random.default_rng(SEED)
    feed = {port.name: rng.integers(-128, 128, port.shape).astype(np.int8) for port in graph.inputs}
    model = lab.device.load(image)
    outputs, stats = model.run(feed)
    lab.device.unload(model)
    expected = run_all(graph, feed)
    return stats.cycles, all(np.array_equal(expected[port.tensor], outputs[port.name]) for port in graph.outputs)


def spearman(one: list[float], other: list[int]) -> float:
    """The correlation of ranks; equal values share their mean rank. 0 if all values of one are equal."""
    ranks = [_ranks(np.asarray(values, float)) for values in (one, other)]
    if any(np.ptp(rank) == 0 for rank in ranks):
        return 0.0
    return float(np.corrcoef(*ranks)[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[place]


def _seventy(lab: Lab) -> Measured:
    """By how many percent the best of all 70 orders takes fewer cycles than the better depth-first one."""
    graph = seventy_layers()
    seen: list[OrderGraph] = []

    def source(operators: OrderGraph) -> Order:
        seen.append(operators)
        return operators.source

    with Lab(preset("tiny"), DEFAULT_BACKEND, Progress()) as small:
        compiled(graph, small, source, Options())
        cycles, correct, prices = {}, True, {}
        for order in every_order(seen[0]):
            one = compiled(graph, small, lambda _, order=order: order, Options())
            cycles[order], equal = _run(small, graph, one.image)
            prices[order] = one.price
            correct &= equal and one.joined > 0
    deep = min(cycles[order] for order in depth_first(seen[0]))
    best = min(cycles, key=lambda order: cycles[order])
    names = [node.name.split("#")[0] for node in seen[0].operators]
    detail = {
        "measured_on": f"{DEFAULT_BACKEND}, tiny", "orders": len(cycles), "best": cycles[best], "worst": max(cycles.values()),
        "depth_first": deep, "best_order": [names[i] for i in best],
        "as_good_as_the_best": sum(value == cycles[best] for value in cycles.values()),
        "rho": round(spearman([prices[order] for order in cycles], list(cycles.values())), 3),
        "found_by_price": cycles[min(prices, key=lambda order: prices[order])],
        "best_is_not_depth_first": cycles[best] < deep,
    }  # fmt: skip
    return Measured(100 * (1 - cycles[best] / deep), correct and len(cycles) == 70 and cycles[best] < deep, detail)
