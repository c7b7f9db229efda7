"""What the accounts of time say of one model: all numbers that searches compare and images hold, as digests.

The compiler is watched while it builds an image: what it asks the accounts for is taken down in the order of the calls.
What no build asks for is asked for here.
"""

import dataclasses
import functools
import hashlib
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from enum import Enum
from importlib import import_module
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.order_search.estimate import chip_model, order_graph
from benchmarks.order_search.price import OrderPrice
from compiler import ir
from compiler.emission.objects.desk import Desk
from compiler.pipeline import decide, emit
from compiler.plan.layers.layer import MoveLayer
from compiler.plan.layers.step import ModelStep
from compiler.plan.lowered_model import LoweredModel
from compiler.plan.options import Options
from compiler.plan.order.graph import Order, OrderGraph
from compiler.plan.regions.regions import Study
from compiler.plan.regions.side_by_side import side_by_side
from compiler.plan.regions.units import layer_times
from compiler.plan.split.estimate import RunEstimate, operator_work
from compiler.plan.split.price import placed_cycles
from compiler.plan.tiles import ConvTiles, ProductTiles
from hw.image.image import Image
from sim.cost import inference
from sw.runtime.job_groups import job_groups, reference_duration
from tests.sim.cost.corpus_cases import ModelCase

Digests = dict[str, str]  #: by account
_ORDERS = 4  #: random orders that are priced, of the layers of a model


class Ledger:
    """The numbers of each account, of which only digests are kept. ``shown``: an account that is also kept as text."""

    def __init__(self, shown: str = "") -> None:
        self._hashes: dict[str, Any] = {}
        self._shown, self.text = shown, list[str]()

    def note(self, account: str, *values: Any) -> None:
        """Take ``values`` down."""
        line = json.dumps(plain(values))
        self._hashes.setdefault(account, hashlib.sha256()).update(line.encode() + b"\n")
        if account == self._shown:
            self.text.append(line)

    @property
    def digests(self) -> Digests:
        """The first 16 digits of SHA-256, by account."""
        return {account: found.hexdigest()[:16] for account, found in sorted(self._hashes.items())}


def plain(value: Any) -> Any:
    """``value`` as JSON can say it, the same in every process: what has no order is sorted."""
    if isinstance(value, Enum) and not isinstance(value, int):
        return value.name
    if dataclasses.is_dataclass(value):
        return [plain(getattr(value, field.name)) for field in dataclasses.fields(value)]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return [[plain(key), plain(one)] for key, one in value.items()]
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value))
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(one) for one in value]
    assert value is None or isinstance(value, bool | int | float | str), value
    return value


def model_digests(case: ModelCase, ledger: Ledger | None = None) -> Digests:
    """What all accounts say of ``case``."""
    ledger, params = ledger or Ledger(), case.params
    options = Options(engines=case.engines, lv2_limit=case.lv2_limit, placed=case.placed)
    graph = case.make()
    with Desk(1) as desk:
        with watched(ledger):
            plan = decide(graph, params, options, desk)
        image = emit(plan, graph, desk)
    _note_image(ledger, image)
    _note_work(ledger, case, options)
    _note_orders(ledger, case.make(), case)
    return ledger.digests


def _note_image(ledger: Ledger, image: Image) -> None:
    ledger.note("image", hashlib.sha256(image.to_bytes()).hexdigest())
    ledger.note("worst cases", [job.worst_cycles for job in image.meta.jobs])
    ledger.note("worst cases", [(one.job, one.worst_interval) for one in image.meta.cancel_points])
    for layer in image.meta.layers:
        ledger.note("forecast", layer.name, layer.estimated_load, layer.estimated_compute, layer.estimated_stream)
    predicted = inference(image.meta.layers)
    ledger.note("forecast", predicted.cycles, predicted.in_turn)
    for step in image.meta.steps:
        if step.kind == "jobs":
            ledger.note("forecast", reference_duration(image, step), [one.cost for one in job_groups(image, step)])


def _note_work(ledger: Ledger, case: ModelCase, options: Options) -> None:
    """The busies of layers, and prices of what is split."""
    params, graph = case.params, case.make()
    ledger.note("split price", placed_cycles(graph, params, options))
    work = operator_work(graph, params, case.engines)
    ledger.note("split price", work)
    for source, run in _runs(graph):
        estimate = RunEstimate(graph, run, source, work, params.lv2_bytes // 16, params)
        for inside in ((True, True), (False, True), (False, False)):
            ledger.note("split price", estimate.whole(inside), estimate.cut(inside))
    made = LoweredModel.of(graph, params, options)
    layers = side_by_side(made.graph, made.layers, params, case.engines) if case.placed else made.layers
    for layer in layers:
        for engines in {case.engines, 1}:
            ledger.note("busies", layer.name, engines, layer_times(made.graph, layer, params, engines))


def _runs(graph: ir.Graph) -> Iterator[tuple[str, list[ir.Operation]]]:
    """Runs of up to three operators, each of which reads the one before, with what the first reads."""
    for first in range(len(graph.ops)):
        run = graph.ops[first : first + 3]
        for before, op in pairwise(run):
            if op.inputs != [before.output]:
                run = run[: run.index(op)]
                break
        if isinstance(run[0], ir.Conv):
            yield run[0].inputs[0], run


def _note_orders(ledger: Ledger, graph: ir.Graph, case: ModelCase) -> None:
    """Prices of orders that a search might meet: of single layers and regions, and of operators."""
    params = case.params
    price = OrderPrice(operators := order_graph(graph, params), chip_model(params))
    for order in _random_orders(operators):
        ledger.note("order price", price.timeline(order))
    made = LoweredModel.of(graph, params, Options(engines=case.engines))

    for run in Study.of(made.graph, made.layers, params, case.engines, case.lv2_limit).runs:
        rules = run.price._rules
        for tried in (run.operators.source, *_random_orders(run.operators)):
            ledger.note("region price", run.price(tried), run.price.cut(tried), run.price.groups(tried))
            for first in range(len(tried)):
                for count in (1, 2, 3):
                    members = tried[first : first + count]
                    shared = [rules.placed(members, True), rules.quick_placed(members, True)]
                    ledger.note(
                        "region price", run.price.region(members), run.price.places(members), rules.least(members)
                    )
                    ledger.note("region price", shared)


def _random_orders(graph: OrderGraph) -> Iterator[Order]:
    rng = random.Random(len(graph.operators))
    for _ in range(_ORDERS):
        order, left = list[int](), set(range(len(graph.operators)))
        while left:
            ready = [number for number in sorted(left) if not any((a in left) for a, b in graph.edges if b == number)]
            order.append(rng.choice(ready))
            left.remove(order[-1])
        yield tuple(order)


@contextmanager
def watched(ledger: Ledger) -> Iterator[None]:
    """Note in ``ledger`` what the compiler asks its accounts for."""
    with ExitStack() as stack:
        for modules, name, noting in _WATCHED:
            for module in modules:
                path = f"compiler.{module}"
                original = getattr(import_module(path), name)
                stack.enter_context(patch(f"{path}.{name}", noting(ledger, original)))
        yield


Noting = Callable[[Ledger, Callable], Callable]


def _tilings(ledger: Ledger, tilings: Callable) -> Callable:
    """Prices of tilings of convolutions, one by one."""

    @functools.wraps(tilings)
    def noted(layer: Any, context: Any, params: Any) -> Iterator:
        for cycles, tiling in tilings(layer, context, params):
            ledger.note("conv cost", layer.name, cycles, tiling)
            yield cycles, tiling

    return noted


def _returned(account: str) -> Noting:
    """What a function returns."""

    def noting(ledger: Ledger, function: Callable) -> Callable:
        @functools.wraps(function)
        def noted(*given: Any, **named: Any) -> Any:
            found = function(*given, **named)
            ledger.note(account, found)
            return found

        return noted

    return noting


def _scheduled(ledger: Ledger, schedule: Callable) -> Callable:
    """Starts and ends of tasks in program order, of which each stands where a kernel emitted it."""

    @functools.wraps(schedule)
    def noted(tasks: Sequence, *given: Any, **named: Any) -> Any:
        place, found = _places(tasks), schedule(tasks, *given, **named)
        ledger.note("program order", found.cycles, [place[task] for task in found.tasks], found.starts, found.ends)
        return found

    return noted


def _programmed(ledger: Ledger, step_jobs: Callable) -> Callable:
    """What kernels chose for a layer."""

    @functools.wraps(step_jobs)
    def noted(step: ModelStep, context: Any) -> Any:
        jobs, tiles = step_jobs(step, context)
        ledger.note("tilings", step.name, _summary(step, jobs, tiles), tiles)
        return jobs, tiles

    return noted


def _summary(step: ModelStep, jobs: Sequence, tiles: Sequence) -> str:
    """The tiles in a few words."""
    if step.places:
        alone = sum(isinstance(place, int) for place in step.places)
        return "side by side" + f", {alone} on one engine each" * bool(alone)
    if isinstance(step.members[0], MoveLayer) and not jobs:
        return "in place"
    return _shape(tiles[0]) + ", streamed" * any(job.stream_data for job, _ in jobs)


def _shape(tiles: Any) -> str:
    if isinstance(tiles, ProductTiles):
        return f"{tiles.rows}x{tiles.columns}x{tiles.depth}"
    if not isinstance(tiles, ConvTiles):
        return ""
    one = tiles.tiling
    return (
        f"{one.rows}x{one.cols} pixels, kernel {one.chunk_rows}x{one.chunk_cols}, {one.chunk_channels} channels, "
        f"{'pixels' if one.pixels_outer else 'channels'} outer" + ", folded" * one.fold
    )


def _region_ordered(ledger: Ledger, ordered: Callable) -> Callable:
    """The order of the tasks of a region, of which each stands where a kernel emitted it, and its cycles."""

    @functools.wraps(ordered)
    def noted(parts: Sequence, *given: Any) -> Any:
        place = _places(task for part in parts for task in part.tasks)
        found = ordered(parts, *given)
        ledger.note("region order", found.cycles, [place[task] for task in found.tasks])
        return found

    return noted


def _places(tasks: Iterable) -> dict:
    return {task: place for place, task in enumerate(tasks)}


#: Modules of the back end, the function that they call, and how it is noted.
_WATCHED: tuple[tuple[tuple[str, ...], str, Noting], ...] = (
    (("plan.tiling.conv_search",), "_tilings", _tilings),
    (("plan.tiling.conv_search", "emission.kernels.windows"), "tile_load_cycles", _returned("channel loads")),
    (("emission.kernels.conv",), "best_tiling", _returned("tilings")),
    (("emission.objects.step_object",), "step_jobs", _programmed),
    (("emission.objects.step_object", "emission.kernels.region", "emission.kernels.conv"), "schedule", _scheduled),
    (("emission.kernels.region",), "ordered", _region_ordered),
)
