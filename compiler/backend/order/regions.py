"""Which layers become regions, and in which order: the price of an order is that of its best regions.

Layers of one region run side by side, so a region takes as long as its busiest unit; layers that are not in one region
run one after the other. A maximum over windows, which keeps the vector unit busy, costs nothing beside a convolution
that keeps the arrays busy as long.

Where several engines share each layer, an engine may not read in a region what another makes there: see
``layers/region_share.py``.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np
import numpy.typing as npt

from compiler import ir
from compiler.backend.layers.engine_share import imbalance
from compiler.backend.layers.flow import layer_flow
from compiler.backend.layers.layer import ConvLayer, HostLayer, Layer, MaxLayer, ProductLayer
from compiler.backend.layers.region import Region
from compiler.backend.layers.region_share import Share, region_shares
from compiler.backend.order.region_time import RegionMember, side_by_side_cycles
from compiler.backend.order.units import LD1, MAC, ST1, VEC, LayerTimes, layer_times
from compiler.order.graph import OperatorNode, Order, OrderGraph
from compiler.order.greedy import greedy_order
from compiler.order.lower_bound import LowerBound
from compiler.order.model import order_model
from compiler.order.price import Price
from compiler.order.report import OrderReport
from compiler.order.residency import spills
from compiler.order.search import SearchLimits
from compiler.order.split import threshold
from hw.contract.params import SocParams

_MOST = 8  #: layers of a region
_PART = 0.25  #: of a network that a region may be: it is scheduled as one
_ATTENTION = 1 << 18  #: cycles that a region with products of computed matrices may take, whatever the network
_TENSORS = 5 / 8  #: of LV2 that tensors of a region may take: windows take a quarter, and not all can be packed
_START = 700.0  #: cycles from the end of one layer to the first result of the next
_HIDDEN = 0.05  #: of the time of the other units that a region takes in addition to its busiest, by the quick estimate
_BETWEEN = 400.0  #: cycles from the last result of one layer to the first load of the next


@dataclass(frozen=True)
class RegionRules:
    """What may be a region on ``engines`` that share each layer, of ``layers`` with their times."""

    layers: Sequence[Layer]
    times: Sequence[LayerTimes]
    engines: int
    readers: Sequence[frozenset[int]]  #: by layer the numbers of those that read its result
    outside: frozenset[int]  #: layers that read inputs of the model, of which one can stay in LV2
    tensors: Sequence[Mapping[str, int]]  #: by layer bytes of the tensors that it reads and writes
    memory: int  #: bytes on chip for tensors
    window: int  #: bytes of weights that a job may have
    dram_bytes_per_cycle: float
    longest: float  #: cycles of MAC or VEC of a region: schedulers and pauses between jobs want more than one

    def possible(self, members: Sequence[int]) -> bool:
        """Whether layers of these numbers, in this order, may be one region."""
        layers = [self.layers[number] for number in members]
        if any(isinstance(layer, HostLayer) for layer in layers):
            return False
        if not any(_keeps_arrays_busy(layer) for layer in layers):
            return False
        if len(self.outside.intersection(members)) > 1:
            return False
        longest = (
            max(self.longest, _ATTENTION) if any(isinstance(one, ProductLayer) for one in layers) else self.longest
        )
        if float(np.max(sum(self.times[number].busy for number in members))) > longest:
            return False
        if not self._fits(members):
            return False
        shares = self._shares(members)
        return shares is not None and self._weight_bytes(members, shares) <= self.window

    def _fits(self, members: Sequence[int]) -> bool:
        """Whether a region keeps on chip what its members would each by themselves: all that they read and write is
        there at a time."""
        sizes = {name: size for number in members for name, size in self.tensors[number].items()}
        largest = max(sum(self.tensors[number].values()) for number in members)
        return sum(sizes.values()) <= max(self.memory, largest)

    def _shares(self, members: Sequence[int]) -> list[Share] | None:
        if self.engines == 1:
            return [Share.ANY] * len(members)
        edges = [
            (at, place)
            for place, reader in enumerate(members)
            for at, maker in enumerate(members[:place])
            if reader in self.readers[maker]
        ]
        idle = [place for place, number in enumerate(members) if not self.times[number].busy.any()]
        return region_shares([self.layers[number] for number in members], edges, idle)

    def _weight_bytes(self, members: Sequence[int], shares: Sequence[Share]) -> int:
        times = [self.times[number] for number in members]
        return sum(
            one.all_weights if share is Share.ROWS else one.weight_bytes
            for one, share in zip(times, shares, strict=True)
        )

    def _busy(self, members: Sequence[int]) -> list[npt.NDArray[np.float64]]:
        """Cycles of the units for members in this order, which may be a region."""
        times, shares = [self.times[number] for number in members], self._shares(members)
        assert shares is not None
        found = {
            Share.ANY: lambda one: one.busy,
            Share.CHANNELS: lambda one: one.busy * imbalance(one.blocks, self.engines),
            Share.ROWS: lambda one: one.by_rows,
            Share.MATRICES: lambda one: one.busy,
        }
        return [found[share](one) for one, share in zip(times, shares, strict=True)]

    def least(self, members: Sequence[int]) -> float:
        """A lower bound of :meth:`cycles` that is quickly found: the busiest unit."""
        times = [self.times[number] for number in members]
        most = float(np.max(sum(np.minimum(one.busy, one.by_rows) for one in times)))
        return most + _BETWEEN if most else 0.0

    def quick_cycles(self, members: Sequence[int]) -> float:
        """An estimate of :meth:`cycles` that is quickly found, for a search: the busiest unit and a little of the
        others, as if no layer waited for another."""
        busy = sum(self._busy(members))
        most = float(np.max(busy))
        hidden = _HIDDEN * (float(np.sum(busy)) - most) * (len(members) > 1)
        return most + hidden + self._again(members) + (_START if most else 0.0)

    def cycles(self, members: Sequence[int]) -> float:
        """Of layers side by side, or of one."""
        place = {number: i for i, number in enumerate(members)}
        found = []
        for number, busy in zip(members, self._busy(members), strict=True):
            reads = tuple(place[maker] for maker in members if number in self.readers[maker])
            layer = self.layers[number]
            around = int(isinstance(layer, ConvLayer | MaxLayer) and max(layer.kernel) > 1)
            mac, vec, ld1, st1 = (float(busy[unit]) for unit in (MAC, VEC, LD1, ST1))
            found.append(RegionMember((ld1, mac, vec, st1), reads, around))
        busy_at_all = any(max(member.busy) for member in found)
        return side_by_side_cycles(found) + self._again(members) + _BETWEEN if busy_at_all else 0.0

    def _again(self, members: Sequence[int]) -> float:
        """Cycles in which DRAM gives engines weights that it gave another: they come ahead of the region, at the
        expense of what could come then."""
        shares = self._shares(members)
        if self.engines == 1 or shares is None:
            return 0.0
        extra = self._weight_bytes(members, shares) - self._weight_bytes(members, [Share.ANY] * len(members))
        return extra * self.engines / self.dram_bytes_per_cycle


def _keeps_arrays_busy(layer: Layer) -> bool:
    return isinstance(layer, ProductLayer) or (isinstance(layer, ConvLayer) and not layer.depthwise)


#: What gives the order of a graph of layers, with a price of orders to go by, and the order that the search has found.
ChooseOrder = Callable[[OrderGraph, Price, Order], Order]


class RegionPrice:
    """The price of orders of a part of the layers: cycles of its best regions, and of what is spilled."""

    def __init__(
        self, rules: RegionRules, numbers: Sequence[int], graph: OrderGraph, params: SocParams, *, quick: bool = False
    ) -> None:  # fmt: skip
        """``numbers``: of the layers that are the operators of ``graph``. ``quick``: by the quick estimate."""
        self._quick = quick
        self._rules, self._numbers, self._graph, self._params = rules, numbers, graph, params
        self._known: dict[tuple[int, ...], float] = {}
        self._bounds: dict[tuple[int, ...], float] = {}
        self._forbidden: list[frozenset[int]] = []

    def __call__(self, order: Order) -> float:
        moved = sum(spills(self._graph, order, threshold(self._params.lv2_bytes)))
        return self.cut(order)[0] + moved / self._params.dram_bytes_per_cycle

    def _possible(self, members: tuple[int, ...]) -> bool:
        return len(members) == 1 or (
            self._rules.possible(members) and not any(bad.issubset(members) for bad in self._forbidden)
        )

    def _least(self, members: tuple[int, ...]) -> float:
        """A lower bound of the cycles of a layer or a region; infinite if these cannot be one."""
        if members not in self._bounds:
            self._bounds[members] = self._rules.least(members) if self._possible(members) else math.inf
        return self._bounds[members]

    def _step(self, members: tuple[int, ...]) -> float:
        """Cycles of a layer or a region that is possible."""
        if members not in self._known:
            self._known[members] = (self._rules.quick_cycles if self._quick else self._rules.cycles)(members)
        return self._known[members]

    def forbid(self, members: Sequence[int]) -> None:
        """Layers of these numbers cannot be one region, nor with others."""
        self._forbidden.append(frozenset(members))
        self._bounds.clear()

    def cut(self, order: Order) -> tuple[float, list[int]]:
        """The least cycles, and where regions of ``order`` begin."""
        numbers = tuple(self._numbers[i] for i in order)
        best: list[tuple[float, int]] = [(0.0, 0)]
        for end in range(1, len(numbers) + 1):
            begins = range(end - 1, max(-1, end - 1 - _MOST), -1)
            least = sorted((best[begin][0] + self._least(numbers[begin:end]), begin) for begin in begins)
            found = (math.inf, 0)
            for bound, begin in least:
                if bound >= found[0]:
                    break
                found = min(found, (best[begin][0] + self._step(numbers[begin:end]), begin))
            best.append(found)
        cuts, end = list[int](), len(numbers)
        while end:
            end = best[end][1]
            cuts.append(end)
        return best[-1][0], cuts[::-1]


class OrderedRun:
    """Layers between two on the CPU, in an order, and how they are cut into regions."""

    def __init__(self, graph: ir.Graph, layers: Sequence[Layer], order: Order, price: RegionPrice) -> None:
        self._graph, self._layers, self._order, self._price = graph, layers, order, price

    def joined(self) -> list[Layer]:
        """Regions, and layers that stand alone."""
        cuts = self._price.cut(self._order)[1]
        groups = [
            [self._layers[i] for i in self._order[begin:end]]
            for begin, end in itertools.pairwise([*cuts, len(self._order)])
        ]
        return [Region.of(self._graph, group) if len(group) > 1 else group[0] for group in groups]

    def has(self, region: Region) -> bool:
        """Whether ``region`` is a part of it."""
        return region.members[0] in self._layers

    def forbid(self, region: Region) -> None:
        """The members of ``region`` cannot be one."""
        self._price.forbid(tuple(self._layers.index(member) for member in region.members))


@dataclass(frozen=True)
class OrderedLayers:
    """All layers of a model in the order found, joined to regions, and what the search did."""

    runs: tuple[OrderedRun | HostLayer, ...]
    reports: tuple[OrderReport, ...]

    @property
    def layers(self) -> list[Layer]:
        """Regions, and layers that stand alone."""
        return [layer for run in self.runs for layer in ([run] if isinstance(run, HostLayer) else run.joined())]

    def forbid(self, region: Region) -> None:
        """The members of ``region`` cannot be one: from now on the order is cut otherwise."""
        for run in self.runs:
            if isinstance(run, OrderedRun) and run.has(region):
                run.forbid(region)


def order_and_join(
    graph: ir.Graph, layers: Sequence[Layer], params: SocParams, engines: int, limits: SearchLimits | None,
    choose: ChooseOrder | None = None,
) -> OrderedLayers:  # fmt: skip
    """``layers`` in the best order found within ``limits`` (None: as they come), some joined to regions. ``choose``:
    what gives another. Layers on the CPU keep their places: all before them come before them."""
    runs, reports = list[OrderedRun | HostLayer](), list[OrderReport]()
    for on_host, group in itertools.groupby(layers, lambda layer: isinstance(layer, HostLayer)):
        if on_host:
            runs += [layer for layer in group if isinstance(layer, HostLayer)]
        else:
            run, report = _ordered(graph, list(group), params, engines, limits, choose)
            runs.append(run)
            reports += [report] if report else []
    return OrderedLayers(tuple(runs), tuple(reports))


def _ordered(
    graph: ir.Graph, run: Sequence[Layer], params: SocParams, engines: int, limits: SearchLimits | None,
    choose: ChooseOrder | None,
) -> tuple[OrderedRun, OrderReport | None]:  # fmt: skip
    flow = layer_flow(graph, run)
    number = {layer: i for i, layer in enumerate(run)}
    roots, inputs = graph.roots(), {port.tensor for port in graph.inputs}
    times = [layer_times(graph, layer, params, engines) for layer in run]
    rules = RegionRules(
        run, times, engines,
        [frozenset(number[reader] for reader in flow.successors(layer)) for layer in run],
        frozenset(
            i
            for i, layer in enumerate(run)
            if isinstance(layer, ConvLayer) and {roots[name] for name in layer.inputs} & inputs
        ),
        [
            {roots[name]: graph.tensors[roots[name]].size for name in (*layer.inputs, *layer.outputs)} for layer in run
        ],
        int(_TENSORS * params.lv2_bytes), params.lv2_bytes // 8 // engines, params.dram_bytes_per_cycle,
        _PART * sum(float(one.busy.max()) for one in times),
    )  # fmt: skip
    whole = _order_graph(graph, run, times, flow)
    price, report = RegionPrice(rules, whole.source, whole, params), None
    order = whole.source
    if limits is not None and len(run) > 1:
        report = _search(whole, rules, params, limits)
        order = min(report.order, whole.source, greedy_order(whole), key=price)
    if choose is not None:
        order = choose(whole, price, order)
    return OrderedRun(graph, run, order, price), report


def _search(whole: OrderGraph, rules: RegionRules, params: SocParams, limits: SearchLimits) -> OrderReport:
    names = {node.name: i for i, node in enumerate(whole.operators)}

    def price_of(piece: OrderGraph) -> RegionPrice:
        return RegionPrice(rules, [names[node.name] for node in piece.operators], piece, params, quick=True)

    def bound_of(piece: OrderGraph) -> LowerBound:
        busy = sum(rules.times[names[node.name]].busy for node in piece.operators)
        return LowerBound(float(np.max(busy)), False)

    return order_model(whole, price_of, bound_of, limits)


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
