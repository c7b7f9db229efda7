"""The layers of a placed model: which become regions, and in which order steps are queued.

A region runs on one engine, beside others on other engines. So an order of its steps takes as long as the queues of all
engines, into which the run time puts one step after the other (:mod:`compiler.plan.regions.queue_schedule`).
"""

import itertools
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import networkx as nx

from compiler import ir
from compiler.plan.layers.layer import Layer
from compiler.plan.layers.step import ModelStep
from compiler.plan.order.annealing import annealed
from compiler.plan.order.graph import OperatorNode, Order, OrderGraph
from compiler.plan.order.model import order_model
from compiler.plan.order.report import LowerBound, OrderReport
from compiler.plan.order.search import SearchLimits
from compiler.plan.regions.placed_regions import LayerGrouping, Members
from compiler.plan.regions.queue_schedule import QueuedStep, by_critical_path, makespan
from compiler.plan.regions.region_beam import QUICK, BeamWidth
from compiler.plan.regions.region_price import MOST
from compiler.plan.regions.regions import RunStudy
from hw.contract.params import SocParams


class QueuePrice:
    """The price of orders of some of the ``steps``: the cycles until the queues of ``engines`` have ended."""

    def __init__(self, steps: Mapping[int, QueuedStep], numbers: Sequence[int], engines: int) -> None:
        """``numbers``: of the steps that orders are about."""
        place = {number: i for i, number in enumerate(numbers)}
        self._steps = {
            i: replace(steps[number], reads=tuple(place[other] for other in steps[number].reads if other in place))
            for number, i in place.items()
        }
        self._engines = engines

    def __call__(self, order: Order) -> float:
        return makespan(self._steps, order, self._engines)


class PlacedRunStudy(RunStudy):
    """Studies layers between two on the CPU of a model whose steps each run on one of several engines."""

    def __init__(self, study: RunStudy, engines: int, regions: bool) -> None:
        """``study``: of the same layers on one engine; ``regions``: whether layers may be joined."""
        super().__init__(study.graph, study.layers, study.operators, study.rules)
        self._engines, self._regions = engines, regions
        self._known: dict[Members, tuple[float, Members]] = {}  #: cycles of layers as a step, and their order there
        self._grouping = LayerGrouping(len(study.operators), study.operators.edges, self._cycles, engines)

    def afresh(self) -> "PlacedRunStudy":
        """Return a study of the same layers that has learned nothing."""
        return PlacedRunStudy(super().afresh(), self._engines, self._regions)

    def search(self, limits: SearchLimits | None, width: BeamWidth = QUICK) -> tuple[Order, OrderReport | None]:
        """Return the best order found within ``limits`` (None: that of list scheduling), and what the search did."""
        ends = time.monotonic() + (limits.seconds if limits else math.inf)
        if self._regions:
            self._grouping.merge(MOST, lambda: time.monotonic() > ends)
        flow = self._grouping.flow()
        steps, queued = list(nx.lexicographical_topological_sort(flow)), self._grouping.queued(flow)
        order, report = by_critical_path(queued, self._engines), None
        if limits is not None and len(steps) > 1:
            order, report = self._searched(_order_graph(self.operators, steps, queued), queued, order, limits, ends)
        return tuple(itertools.chain(*(steps[number] for number in order))), report

    def _searched(
        self, whole: OrderGraph, queued: Mapping[int, QueuedStep], listed: Order, limits: SearchLimits, ends: float
    ) -> tuple[Order, OrderReport]:
        """Return the cheapest order of steps, ``listed`` unless another takes less."""
        number = {node.name: i for i, node in enumerate(whole.operators)}
        price = QueuePrice(queued, whole.source, self._engines)

        def bound_of(piece: OrderGraph) -> LowerBound:
            return LowerBound(sum(node.matrix for node in piece.operators) / self._engines, False)

        def price_of(piece: OrderGraph) -> QueuePrice:
            return QueuePrice(queued, [number[node.name] for node in piece.operators], self._engines)

        report = order_model(whole, price_of, bound_of, replace(limits, seconds=limits.seconds / 2))
        first = min((listed, report.order), key=price)
        return annealed(whole, price, first, limits.tries, limits.seed, lambda: time.monotonic() > ends), report

    def joined(self, order: Order) -> list[ModelStep]:
        """Return the layers in ``order``, as regions or alone."""
        of = {layer: step for step in self._grouping.steps for layer in step}
        steps = dict.fromkeys(of[layer] for layer in order)
        return [self._step(members) for members in steps]

    def _step(self, members: Members) -> ModelStep:
        layers = [self.layers[number] for number in self._ordered(members)[1]]
        return ModelStep.region(self.graph, layers) if len(layers) > 1 else ModelStep.alone(layers[0])

    def forbid(self, region: ModelStep) -> None:
        """Learn that the members of ``region`` cannot be one."""
        if region.members[0] in self.layers:
            self._grouping.dissolve(tuple(sorted(self.layers.index(member) for member in region.members)))

    def _cycles(self, members: Members) -> float:
        """Return the cycles of layers as one step on one engine."""
        return self._ordered(members)[0]

    def _ordered(self, members: Members) -> tuple[float, Members]:
        """Return the cycles of layers as one step on one engine, and the order in which they take least: their own, or
        with the shortest first, as a maximum may follow the longest tile by tile if nothing comes between."""
        if members not in self._known:
            orders = dict.fromkeys([members, self._shortest_first(members)])
            self._known[members] = min(((self.price.region(order), order) for order in orders), key=lambda one: one[0])
        return self._known[members]

    def _shortest_first(self, members: Members) -> Members:
        inside = nx.DiGraph()
        inside.add_nodes_from(members)
        inside.add_edges_from((a, b) for a, b in self.operators.edges if a in inside and b in inside)
        cycles = self.operators.operators
        return tuple(nx.lexicographical_topological_sort(inside, key=lambda number: (cycles[number].cycles, number)))


def placed_run_study(
    graph: ir.Graph, run: Sequence[Layer], params: SocParams, engines: int, lv2_bytes: int, *, regions: bool
) -> PlacedRunStudy:
    """Return a study of the layers ``run``, each for one of ``engines``, which may use ``lv2_bytes`` of LV2 together;
    ``regions``: whether some may become one step."""
    return PlacedRunStudy(RunStudy.of(graph, run, params, 1, lv2_bytes, beside=engines), engines, regions)


def _order_graph(layers: OrderGraph, steps: Sequence[Members], queued: Mapping[int, QueuedStep]) -> OrderGraph:
    """Return the graph of ``steps``, which are as ``queued``, by their numbers."""
    nodes = tuple(
        OperatorNode(
            f"{' + '.join(layers.operators[layer].name for layer in step)}#{number}", "step",
            matrix=queued[number].cycles,
            out_bytes=sum(layers.operators[layer].out_bytes for layer in step),
            param_bytes=sum(layers.operators[layer].param_bytes for layer in step),
        )
        for number, step in enumerate(steps)
    )  # fmt: skip
    edges = frozenset((other, number) for number, step in queued.items() for other in step.reads)
    kept = frozenset(i for i, step in enumerate(steps) if layers.kept.intersection(step))
    return OrderGraph(layers.name, nodes, edges, kept=kept)
