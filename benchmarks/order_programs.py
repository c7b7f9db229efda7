"""Rows of ``caesura bench order`` that compile programs and run them: what regions and orders of layers are worth."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from benchmarks.accuracy_cases import whole_networks
from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import Lab
from benchmarks.order_search.depth_first import depth_first
from benchmarks.order_seventy import seventy_layers
from benchmarks.workloads import branchy, workload
from caesura import Arrays, layer_cycles, random_samples
from caesura.views import Progress
from compiler import (
    Desk,
    Graph,
    Options,
    Order,
    OrderGraph,
    blank,
    build,
    build_timed,
    completions,
    emit,
    every_order,
    golden,
    greedy_order,
    import_model,
    lowered,
    random_order,
    run_all,
    settle,
)
from hw.contract.params import preset
from hw.image import Image
from sim import DEFAULT_BACKEND
from sim.cost import inference
from sim.model import ModelBus
from sw.driver import Device

NETWORKS = tuple(name for name in branchy.NETWORKS if not name.endswith("_small"))
RANKED = ("inception_small", "nasnet_small", "random_wired_small", "squeezenet_small", "resnet50_small")
ORDERS = 30  #: of each ranked network, all different
SEED = 11
PHASES = 8  #: of the DRAM's refresh at which a ranked program begins
_LIMIT = 100_000_000  #: cycles
_BETWEEN = 400  #: cycles between two jobs, which no schedule holds


def figures() -> list[Figure]:
    """Return the rows; all but the first take many minutes."""
    return [
        Figure("rtl_branchy", Target(20, 30), partial(_gain, others=("layers",)), optional=True),
        *(
            Figure(f"rtl_{name}", Target(0, 30), partial(_gain, others=("layers",), names=(name,)), optional=True)
            for name in NETWORKS
        ),
        Figure("rtl_order_alone", Target(3, 8), partial(_gain, others=("source", "greedy")), optional=True),
        Figure(
            "rtl_order_timed", Target(3, 8), partial(_gain, others=("source", "greedy"), mine="timed"), optional=True
        ),
        Figure("rtl_rank", Target(0.9, 0.98, "rho"), _rank, optional=True),
        Figure("rtl_seventy", Target(0, 5), _seventy, optional=True),
    ]


class Ordered(NamedTuple):
    """A model compiled in one order: its ``price`` by the order alone, an ``estimate`` by the schedules of its compiled
    instructions, and the number of its regions."""

    image: Image
    price: float
    estimate: float
    order: Order
    joined: int


def compiled(graph: Graph, lab: Lab, choose: Callable[[OrderGraph], Order] | None, options: Options) -> Ordered:
    """``graph`` in the order that ``choose`` gives; without, in that of ``options``, whose price is not known."""
    price, order = 0.0, tuple[int, ...]()
    if choose is None:
        image, _ = build(graph, lab.params, options)
    else:
        plan = blank(graph, lab.params, options)
        net = lowered(graph, plan)
        study = net.study()
        orders = tuple(choose(run.operators) for run in study.runs)
        price, order = study.runs[-1].price(orders[-1]), orders[-1]
        with Desk() as desk:
            image = emit(settle(plan, net, desk, study, orders).without_orders(), graph, desk)
    estimate = inference(image.meta.layers).cycles + _BETWEEN * len(image.meta.layers)
    return Ordered(image, price, estimate, order, _regions(image))


def _regions(image: Image) -> int:
    return sum(" + " in layer.name for layer in image.meta.layers)


@cache
def _cycles(lab: Lab, name: str, key: str) -> tuple[int, bool, int]:
    """Return the cycles of a network compiled as ``key`` says, whether its outputs are right, and its regions."""
    whole = Options(engines=lab.params.engines)
    if key == "timed":
        with Desk() as desk:
            options = replace(whole, order="timed")
            built = build_timed(import_model(workload(name)), lab.params, options, desk, layer_cycles)
        run = lab.run_image(name, built.image)
        return run.stats.cycles, run.correct, _regions(built.image)
    options, choose = {
        "default": (whole, None),
        "layers": (replace(whole, regions=False, order="source"), None),
        "source": (whole, lambda graph: graph.source),
        "greedy": (whole, greedy_order),
    }[key]
    one = compiled(import_model(workload(name)), lab, choose, options)
    run = lab.run_image(name, one.image)
    return run.stats.cycles, run.correct, one.joined


def _gain(lab: Lab, others: tuple[str, ...], names: tuple[str, ...] = NETWORKS, mine: str = "default") -> Measured:
    """Return the percent of cycles that ``mine`` saves against the best of ``others``, mean over the networks.
    ``timed`` may cut into other regions, too; others are cut by price."""
    gains, correct, detail = [], True, {}
    for name in names:
        runs = {key: _cycles(lab, name, key) for key in (mine, *others)}
        cycles = {key: found for key, (found, _, _) in runs.items()}
        gains.append(100 * (1 - cycles[mine] / min(cycles[key] for key in others)))
        # A row counts only if there were regions, and none where it says layer by layer.
        correct &= all(equal and bool(joined) == (key != "layers") for key, (_, equal, joined) in runs.items())
        detail[name] = {"percent": round(gains[-1], 2), "cycles": cycles, "regions": runs[mine][2]}
    return Measured(sum(gains) / len(gains), correct, {"preset": lab.params.name, **detail})


def _rank(lab: Lab) -> Measured:
    """Return the lowest of the rank correlations (Spearman) between cycles of random orders on the RTL and on the fast
    model, by which ``--order measured`` ranks them, over the graphs; those of cheaper prices are in the detail: of the
    schedules of compiled instructions, and of the order alone."""
    detail, lowest, correct, params = {}, 1.0, True, preset("tiny")
    paths = {case.name: case.path for case in whole_networks(params)}
    with Lab(params, DEFAULT_BACKEND, Progress()) as small:
        for name in RANKED:
            path = paths[name]() if name in paths else workload(name)
            found = _random_orders(import_model(path), small)
            feed = random_samples(found[0].image, 1, SEED)[0]
            expected = golden.golden_outputs(path, feed)
            correct &= len(found) == ORDERS and all(one.joined for one in found)
            correct &= all(run_on(small, one.image, feed, expected)[1] for one in found)
            cycles = [_mean_cycles(small.device.driver, one.image) for one in found]
            prices: dict[str, list[float]] = {
                "rho": [_mean_cycles(Device(ModelBus(params, data=False)), one.image) for one in found],
                "rho_by_schedules": [one.estimate for one in found],
                "rho_by_order_alone": [one.price for one in found],
            }
            rhos = {key: round(spearman(price, cycles), 3) for key, price in prices.items()}
            lowest = min(lowest, rhos["rho"])
            detail[name] = {**rhos, "orders": len(found), "cycles": [round(min(cycles)), round(max(cycles))]}
    return Measured(lowest, correct, {"measured_on": f"{DEFAULT_BACKEND}, tiny", **detail})


def _mean_cycles(driver: Device, image: Image) -> float:
    """Return the cycles of an inference, the mean over beginnings spread over the interval of the DRAM's refreshes: one
    more or less is 2 % of a run of 11,000 cycles, as much as some orders differ."""
    bus, interval, cycles = driver.bus, image.params.dram_refresh_interval, []
    model = driver.load(image)
    for phase in range(PHASES):
        bus.advance((phase * interval // PHASES - bus.cycle) % interval + 1)
        driver.begin(model, _LIMIT)
        results = driver.collect(driver.submit(model, range(len(image.meta.jobs)), limit=_LIMIT), _LIMIT)
        begin = min(one.prologue_start or one.start for one in results)
        cycles.append(max(one.end for one in results) - begin)
    driver.unload(model)
    return sum(cycles) / PHASES


def _random_orders(graph: Graph, lab: Lab) -> list[Ordered]:
    """``ORDERS`` programs in different orders, or as many as are found."""
    rng, found = random.Random(SEED), dict[Order, Ordered]()

    def choose(operators: OrderGraph) -> Order:
        return random_order(operators, rng, completions(operators))

    for _ in range(10 * ORDERS):
        one = compiled(graph, lab, choose, Options())
        found.setdefault(one.order, one)
        if len(found) == ORDERS:
            break
    return list(found.values())


def fed(graph: Graph) -> tuple[Arrays, Arrays]:
    """Return random inputs of a graph without an ONNX file, and the outputs that the reference gives for them."""
    rng = np.random.default_rng(SEED)
    feed = {port.name: rng.integers(-128, 128, port.shape).astype(np.int8) for port in graph.inputs}
    tensors = run_all(graph, feed)
    return feed, {port.name: tensors[port.tensor] for port in graph.outputs}


def run_on(lab: Lab, image: Image, feed: Arrays, expected: Arrays) -> tuple[int, bool]:
    """Return the cycles of one inference, and whether its outputs are what is ``expected``."""
    model = lab.device.load(image)
    outputs, stats = model.run(feed)
    lab.device.unload(model)
    return stats.cycles, all(np.array_equal(value, outputs[name]) for name, value in expected.items())


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the correlation of ranks; equal values share their mean rank. 0 if all values of one are equal."""
    ranks = [_ranks(np.asarray(values, float)) for values in (one, other)]
    if any(np.ptp(rank) == 0 for rank in ranks):
        return 0.0
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[place]


def _given(order: Order, operators: OrderGraph) -> Order:
    return order


def _seventy(lab: Lab) -> Measured:
    """By how many percent the best of all 70 orders takes fewer cycles than the better depth-first one."""
    graph = seventy_layers()
    seen: list[OrderGraph] = []

    def source(operators: OrderGraph) -> Order:
        seen.append(operators)
        return operators.source

    with Lab(preset("tiny"), DEFAULT_BACKEND, Progress()) as small:
        compiled(graph, small, source, Options())
        cycles, correct, prices, estimates = {}, True, {}, {}
        feed, expected = fed(graph)
        for order in every_order(seen[0]):
            one = compiled(graph, small, partial(_given, order), Options())
            cycles[order], equal = run_on(small, one.image, feed, expected)
            prices[order], estimates[order] = one.price, one.estimate
            correct &= equal and one.joined > 0
    deep = min(cycles[order] for order in depth_first(seen[0]))
    best = min(cycles, key=lambda order: cycles[order])
    names = [node.name.split("#")[0] for node in seen[0].operators]
    detail = {
        "measured_on": f"{DEFAULT_BACKEND}, tiny", "orders": len(cycles), "best": cycles[best],
        "worst": max(cycles.values()),
        "depth_first": deep, "best_order": [names[i] for i in best],
        "as_good_as_the_best": sum(value == cycles[best] for value in cycles.values()),
        "rho": round(spearman([estimates[order] for order in cycles], list(cycles.values())), 3),
        "rho_by_order_alone": round(spearman([prices[order] for order in cycles], list(cycles.values())), 3),
        "found_by_price": cycles[min(prices, key=lambda order: prices[order])],
        "best_is_not_depth_first": cycles[best] < deep,
    }  # fmt: skip
    return Measured(100 * (1 - cycles[best] / deep), correct and len(cycles) == 70 and cycles[best] < deep, detail)
