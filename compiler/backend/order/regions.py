"""Which layers become regions, and in which order: the price of an order is that of its best regions.

Layers of one region run side by side, so a region takes as long as its busiest unit; layers that are not in one region
run one after the other. A maximum over windows, which keeps the vector unit busy, costs nothing beside a convolution
that keeps the arrays busy as long.

Several engines share the layers of a region, or each computes some of them alone, whichever takes least. No engine may
read in a region what another makes there: see ``layers/region_share.py`` and ``order/region_places.py``.
"""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import networkx as nx
import numpy as np

from compiler import ir
from compiler.backend.layers.flow import layer_flow
from compiler.backend.layers.layer import ConvLayer, HostLayer, Layer
from compiler.backend.layers.region import Region
from compiler.backend.order.region_beam import QUICK, BeamWidth, RegionBeam
from compiler.backend.order.region_price import MOST, RegionPrice
from compiler.backend.order.region_rules import RegionRules
from compiler.backend.order.units import LD1, MAC, ST1, VEC, LayerTimes, layer_times
from compiler.order.annealing import annealed
from compiler.order.graph import OperatorNode, Order, OrderGraph, Price
from compiler.order.greedy import greedy_order
from compiler.order.model import order_model
from compiler.order.report import LowerBound, OrderReport
from compiler.order.search import SearchLimits
from compiler.order.subgraphs import subgraphs
from hw.contract.params import SocParams

_PART = 0.25  #: of a network that a region may be: it is scheduled as one
#: Of the cycles of the source order, what another must save: layers stand there where they hold least memory, of which
#: the price of an order knows little.
_WORTH = 0.0025
_TENSORS = 5 / 8  #: of LV2 that tensors of a region may take: windows take a quarter, and not all can be packed


#: What gives the order of a graph of layers, with a price of orders to go by, and the order that the search has found.
ChooseOrder = Callable[[OrderGraph, RegionPrice, Order], Order]


class OrderedRun:
    """Layers between two on the CPU, in an order, and how they are cut into regions."""

    def __init__(self, graph: ir.Graph, layers: Sequence[Layer], order: Order, price: RegionPrice) -> None:
        self._graph, self._layers, self._order, self._price = graph, layers, order, price

    def joined(self) -> list[Layer]:
        """Return regions, and layers that stand alone."""
        cuts = self._price.cut(self._order)[1]
        groups = [self._order[begin:end] for begin, end in itertools.pairwise([*cuts, len(self._order)])]
        return [
            Region.of(self._graph, [self._layers[i] for i in group], self._price.places(group))
            if len(group) > 1
            else self._layers[group[0]]
            for group in groups
        ]

    def has(self, region: Region) -> bool:
        """Return whether ``region`` is a part of it."""
        return region.members[0] in self._layers

    def forbid(self, region: Region) -> None:
        """The members of ``region`` cannot be one, at least not where its engines compute them."""
        self._price.forbid([self._layers.index(member) for member in region.members], region.places)


@dataclass(frozen=True)
class OrderedLayers:
    """All layers of a model in the order found, joined to regions, and what the search did."""

    runs: tuple[OrderedRun | HostLayer, ...]
    reports: tuple[OrderReport, ...]

    @property
    def layers(self) -> list[Layer]:
        """Return regions, and layers that stand alone."""
        return [layer for run in self.runs for layer in ([run] if isinstance(run, HostLayer) else run.joined())]

    def forbid(self, region: Region) -> None:
        """The members of ``region`` cannot be one, at least not where its engines compute them: from now on the order
        is cut otherwise."""
        for run in self.runs:
            if isinstance(run, OrderedRun) and run.has(region):
                run.forbid(region)


def order_and_join(
    graph: ir.Graph, layers: Sequence[Layer], params: SocParams, engines: int, limits: SearchLimits | None,
    choose: ChooseOrder | None = None, lv2_bytes: int = 0, width: BeamWidth = QUICK,
) -> OrderedLayers:  # fmt: skip
    """``layers`` in the best order found within ``limits`` (None: as they come), some joined to regions. ``choose``:
    what gives another; ``lv2_bytes``: of LV2 that they may use (0: all); ``width``: how far the search for regions
    looks. Layers on the CPU keep their places: all before them come before them."""
    lv2 = lv2_bytes or params.lv2_bytes
    runs, reports = list[OrderedRun | HostLayer](), list[OrderReport]()
    for on_host, group in itertools.groupby(layers, lambda layer: isinstance(layer, HostLayer)):
        if on_host:
            runs += [layer for layer in group if isinstance(layer, HostLayer)]
        else:
            run, report = _ordered(graph, list(group), params, engines, limits, choose, lv2, width)
            runs.append(run)
            reports += [report] if report else []
    return OrderedLayers(tuple(runs), tuple(reports))


def _ordered(
    graph: ir.Graph, run: Sequence[Layer], params: SocParams, engines: int, limits: SearchLimits | None,
    choose: ChooseOrder | None, lv2_bytes: int, width: BeamWidth,
) -> tuple[OrderedRun, OrderReport | None]:  # fmt: skip
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
        [
            {roots[name]: graph.tensors[roots[name]].size for name in (*layer.inputs, *layer.outputs)} for layer in run
        ],
        lv2_bytes, int(_TENSORS * lv2_bytes), lv2_bytes // 8 // engines, params,
        _PART * sum(float(one.busy.max()) for one in times),
    )  # fmt: skip
    whole = _order_graph(graph, run, times, flow)
    price, report = RegionPrice(rules, whole.source, whole), None
    order = whole.source
    if limits is not None and len(run) > 1:
        ends = time.monotonic() + limits.seconds
        report = _search(whole, rules, replace(limits, seconds=limits.seconds / 2))
        grown = _grown(whole, rules, price, lambda: time.monotonic() > ends, width)
        orders = [greedy_order(whole), report.order, *grown, order]
        firsts = dict.fromkeys([_mixed(whole, orders, price), greedy_order(whole)])
        orders += [
            annealed(whole, price, one, limits.tries, limits.seed, lambda: time.monotonic() > ends) for one in firsts
        ]
        found = _mixed(whole, orders, price)
        order = found if price(found) < (1 - _WORTH) * price(order) else order
    if choose is not None:
        order = choose(whole, price, order)
    return OrderedRun(graph, run, order, price), report


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
    graph: ir.Graph, run: Sequence[Layer], times: Sequence[LayerTimes], flow: nx.DiGraph
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
    edges = frozenset((number[a], number[b]) for a, b in flow.edges if a in number and b in number)
    return OrderGraph(graph.name, nodes, edges, kept=kept)
