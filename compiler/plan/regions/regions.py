"""Which layers become regions, and in which order: the price of an order is that of its best regions.

Layers of one region run side by side, so a region takes as long as its busiest unit; layers that are not in one region
run one after the other. A maximum over windows, which keeps the vector unit busy, costs nothing beside a convolution
that keeps the arrays busy as long.

Several engines share the layers of a region, or each computes some of them alone, whichever takes least. No engine may
read in a region what another makes there: see ``layers/region_share.py`` and ``order/region_places.py``.
"""

import itertools
import time
from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass, replace

import networkx as nx
import numpy as np

from compiler import ir
from compiler.plan.layers.flow import layer_flow
from compiler.plan.layers.layer import ConvLayer, HostLayer, Layer
from compiler.plan.layers.step import ModelStep
from compiler.plan.order.alive_sets import AliveSets
from compiler.plan.order.annealing import annealed
from compiler.plan.order.graph import OperatorNode, Order, OrderGraph, Price
from compiler.plan.order.greedy import greedy_order
from compiler.plan.order.model import order_model
from compiler.plan.order.report import LowerBound, OrderReport
from compiler.plan.order.residency import threshold
from compiler.plan.order.search import SearchLimits
from compiler.plan.order.subgraphs import subgraphs
from compiler.plan.regions.pressure import Pressure
from compiler.plan.regions.region_beam import QUICK, BeamWidth, RegionBeam
from compiler.plan.regions.region_price import MOST, RegionPrice
from compiler.plan.regions.region_rules import RegionRules, region_bytes, rows_at_once
from compiler.plan.regions.units import LD1, MAC, ST1, VEC, LayerTimes, layer_times
from hw.contract.params import SocParams

_PART = 0.25  #: of a network that a region may be: it is scheduled as one
#: Of the cycles of the source order, what another must save: layers stand there where they hold least memory, of which
#: the price of an order knows little.
_WORTH = 0.0025
#: Of the room of LV2 for tensors, what orders are priced by: regions hold more at once than their layers one by one.
_ROOM = 0.8
_TENSORS = 5 / 8  #: of LV2 that tensors of a region may take: windows take a quarter, and not all can be packed


Orders = tuple[Order, ...]  #: of each run of layers between two on the CPU


class RunStudy:
    """Studies layers between two on the CPU: ``operators`` is their graph, ``price`` that of its orders, and learns."""

    def __init__(
        self, graph: ir.Graph, layers: Sequence[Layer], operators: OrderGraph, rules: RegionRules,
        pressure: Pressure | None = None,
    ) -> None:  # fmt: skip
        self.operators, self.price = operators, RegionPrice(rules, operators.source, operators, pressure=pressure)
        self.graph, self.layers, self.rules = graph, layers, rules

    @classmethod
    def of(
        cls, graph: ir.Graph, run: Sequence[Layer], params: SocParams, engines: int, lv2_bytes: int, *, beside: int = 1,
        turns: Sequence[Sequence[str]] = (), room: int | None = None,
    ) -> "RunStudy":  # fmt: skip
        """Return a study of the layers ``run``, which ``engines`` share and which may use ``lv2_bytes`` of LV2;
        ``beside``: of so many regions that may run at the same time; ``room``: of LV2 for tensors, beside staging areas
        and windows (None: all but a reserve)."""
        flow = layer_flow(graph, run)
        number = {layer: i for i, layer in enumerate(run)}
        roots, inputs = graph.roots(), {port.tensor for port in graph.inputs}
        times, alone = ([layer_times(graph, layer, params, count) for layer in run] for count in (engines, 1))
        rules = RegionRules(
            run, times, alone, engines,
            [frozenset(number[reader] for reader in flow.successors(layer)) for layer in run],
            frozenset(
                i
                for i, layer in enumerate(run)
                if isinstance(layer, ConvLayer) and {roots[name] for name in layer.inputs} & inputs
            ),
            [region_bytes(graph, layer, roots) for layer in run],
            threshold(lv2_bytes) if room is None else int(_ROOM * room), int(_TENSORS * lv2_bytes) // beside,
            lv2_bytes // 8 // engines // beside, params,
            _PART * sum(float(one.busy.max()) for one in times),
            frozenset(i for i, layer in enumerate(run) if rows_at_once(graph, layer, params, engines)),
            one_of_several=beside > 1,
        )  # fmt: skip
        return cls(graph, run, _order_graph(graph, run, times, flow, turns), rules)

    def afresh(self) -> "RunStudy":
        """Return a study of the same layers that has learned nothing."""
        return RunStudy(self.graph, self.layers, self.operators, self.rules, self.price.pressure)

    def pressed(self, alive: AliveSets, room: int, weight: float) -> "RunStudy":
        """Return the same study, with what it has learned, where bytes ``alive`` beyond ``room`` cost ``weight`` times
        what DRAM takes for them."""
        other = copy(self)
        pressure = Pressure(alive, room, weight, self.rules.params) if weight else None
        other.price = self.price.pressed(pressure)
        return other

    def passing(self, names: Collection[str]) -> "RunStudy":
        """Return the same study, with what it has learned, where tensors of these ``names`` lie in DRAM."""
        other, roots = copy(self), self.graph.roots()
        other.rules = self.rules.passing({roots[name] for name in names})
        other.price = self.price.under(other.rules)
        return other

    def search(self, limits: SearchLimits | None, width: BeamWidth = QUICK) -> tuple[Order, OrderReport | None]:
        """Return the best order found within ``limits`` (None: the source order), and what the search did; ``width``
        is how far the search for regions looks."""
        whole, rules, price = self.operators, self.rules, self.price
        order = whole.source
        if limits is None or len(whole) == 1:
            return order, None
        ends = time.monotonic() + limits.seconds
        report = _search(whole, rules, replace(limits, seconds=limits.seconds / 2))
        grown = _grown(whole, rules, price, lambda: time.monotonic() > ends, width)
        orders, tries = [greedy_order(whole), report.order, *grown, order], limits.of(len(whole)).tries
        firsts = dict.fromkeys([_mixed(whole, orders, price), greedy_order(whole)])
        orders += [annealed(whole, price, one, tries, limits.seed, lambda: time.monotonic() > ends) for one in firsts]
        found = _mixed(whole, orders, price)
        return found if price(found) < (1 - _WORTH) * price(order) else order, report

    def joined(self, order: Order) -> list[ModelStep]:
        """Return the layers in ``order``, as regions or alone, whichever should take least."""
        cuts = self.price.cut(order)[1]
        groups = [order[begin:end] for begin, end in itertools.pairwise([*cuts, len(order)])]
        return [
            ModelStep.region(self.graph, [self.layers[i] for i in group], self.price.places(group))
            if len(group) > 1
            else ModelStep.alone(self.layers[group[0]])
            for group in groups
        ]

    def forbid(self, region: ModelStep) -> None:
        """Learn that the members of ``region`` cannot be one, at least not where its engines compute them."""
        if region.members[0] in self.layers:
            self.price.forbid([self.layers.index(member) for member in region.members], region.places)


@dataclass(frozen=True)
class Study:
    """Studies all layers of a model: those that are in no run keep their places, such as those on the CPU, and all
    before them comes before them."""

    parts: tuple[RunStudy | Layer, ...]

    @classmethod
    def of(
        cls, graph: ir.Graph, layers: Sequence[Layer], params: SocParams, engines: int, lv2_bytes: int = 0,
        turns: Sequence[Sequence[str]] = (), room: int | None = None,
    ) -> "Study":  # fmt: skip
        """Return a study of ``layers``, which ``engines`` share and which may use ``lv2_bytes`` of LV2 (0: all);
        ``turns``: names of operators that run in this order; ``room``: see :meth:`RunStudy.of`."""
        lv2 = lv2_bytes or params.lv2_bytes
        return cls.of_runs(layers, lambda run: RunStudy.of(graph, run, params, engines, lv2, turns=turns, room=room))

    @classmethod
    def of_runs(cls, layers: Sequence[Layer], made: Callable[[list[Layer]], RunStudy]) -> "Study":
        """Return a study of ``layers`` in which ``made`` gives that of each run between two on the CPU."""
        parts = list[RunStudy | Layer]()
        for on_host, group in itertools.groupby(layers, lambda layer: isinstance(layer, HostLayer)):
            run = list(group)
            parts += run if on_host else [made(run)]
        return cls(tuple(parts))

    @property
    def runs(self) -> list[RunStudy]:
        """Return the studies of layers between two on the CPU."""
        return [part for part in self.parts if isinstance(part, RunStudy)]

    @property
    def source(self) -> Orders:
        """Return the orders of the model."""
        return tuple(run.operators.source for run in self.runs)

    def price(self, orders: Orders) -> float:
        """Return the cycles of ``orders`` by price."""
        return sum(run.price(order) for run, order in zip(self.runs, orders, strict=True))

    def cycles(self, orders: Orders) -> float:
        """Return the cycles of ``orders``, without what they spill."""
        return sum(run.price.cycles(order) for run, order in zip(self.runs, orders, strict=True))

    def pressed(self, alive: Sequence[AliveSets], room: int, weight: float) -> "Study":
        """Return the same study where bytes beyond ``room`` have a price, ``alive`` by run: see
        :meth:`RunStudy.pressed`."""
        given = iter(alive)
        return Study(
            tuple(
                part.pressed(next(given), room, weight) if isinstance(part, RunStudy) else part for part in self.parts
            )
        )

    def passing(self, names: Collection[str]) -> "Study":
        """Return the same study where tensors of these ``names`` lie in DRAM: see :meth:`RunStudy.passing`."""
        return Study(tuple(part.passing(names) if isinstance(part, RunStudy) else part for part in self.parts))

    def afresh(self) -> "Study":
        """Return a study of the same layers that has learned nothing."""
        return Study(tuple(part.afresh() if isinstance(part, RunStudy) else part for part in self.parts))

    def search(
        self, limits: SearchLimits | None, width: BeamWidth = QUICK
    ) -> tuple[Orders, tuple[OrderReport, ...]]:  # fmt: skip
        """Return the best orders found, and what the searches did: see :meth:`RunStudy.search`."""
        found = [run.search(limits, width) for run in self.runs]
        return tuple(order for order, _ in found), tuple(report for _, report in found if report)

    def joined(self, orders: Orders) -> list[ModelStep]:
        """Return all layers in ``orders``, as regions or alone."""
        given = iter(orders)
        return [
            step
            for run in self.parts
            for step in (run.joined(next(given)) if isinstance(run, RunStudy) else [ModelStep.alone(run)])
        ]

    def forbid(self, region: ModelStep) -> None:
        """Learn that the members of ``region`` cannot be one, at least not where its engines compute them."""
        for run in self.runs:
            run.forbid(region)


def _mixed(whole: OrderGraph, orders: Sequence[Order], price: Price) -> Order:
    """Return the cheapest of ``orders``, with those of single subgraphs from others where that is cheaper still: every
    order is one of the first subgraph, then one of the second, and so on."""
    best = min(orders, key=price)
    for part in map(frozenset, subgraphs(whole)):
        places = [place for place, number in enumerate(best) if number in part]
        for other in orders:
            numbers = (number for number in other if number in part)
            best = min(best, (*best[: places[0]], *numbers, *best[places[-1] + 1 :]), key=price)
    return best


def _search(whole: OrderGraph, rules: RegionRules, limits: SearchLimits) -> OrderReport:
    names = {node.name: i for i, node in enumerate(whole.operators)}

    def price_of(piece: OrderGraph) -> RegionPrice:
        return RegionPrice(rules, [names[node.name] for node in piece.operators], piece, quick=True)

    def bound_of(piece: OrderGraph) -> LowerBound:
        busy = sum(rules.times[names[node.name]].busy for node in piece.operators)
        return LowerBound(float(np.max(busy)), False)

    return order_model(whole, price_of, bound_of, limits)


def _grown(
    whole: OrderGraph, rules: RegionRules, price: RegionPrice, over: Callable[[], bool], width: BeamWidth
) -> list[Order]:  # fmt: skip
    """Return the order that a search for regions finds, if there is time for it."""
    quick = RegionPrice(rules, whole.source, whole, quick=True)
    work = np.array([np.minimum(one.busy, one.by_rows) for one in rules.times])
    beam = RegionBeam(whole, quick.region, price.region, work, greedy_order(whole), MOST, over, width)
    order = tuple(itertools.chain(*beam.best()))
    return [order] if order else []


def _order_graph(
    graph: ir.Graph, run: Sequence[Layer], times: Sequence[LayerTimes], flow: nx.DiGraph,
    turns: Sequence[Sequence[str]],
) -> OrderGraph:  # fmt: skip
    number = {layer: i for i, layer in enumerate(run)}
    outside = {port.tensor for port in graph.outputs}
    kept = frozenset(i for i, layer in enumerate(run) if outside.intersection(layer.outputs))
    nodes = tuple(
        OperatorNode(
            f"{layer.name}#{i}", layer.kind, 0.0, float(one.busy[MAC]),
            float(max(one.busy[VEC], one.busy[LD1] - one.busy[MAC], one.busy[ST1] - one.busy[MAC], 0.0)),
            one.out_bytes, one.weight_bytes,
        )
        for i, (layer, one) in enumerate(zip(run, times, strict=True))
    )  # fmt: skip
    edges = {(number[a], number[b]) for a, b in flow.edges if a in number and b in number}
    named = {layer.op.name: i for i, layer in enumerate(run)}
    for turn in turns:
        edges |= set(itertools.pairwise(named[name] for name in turn if name in named))
    return OrderGraph(graph.name, nodes, frozenset(edges), kept=kept)
