"""Which layers become regions, and in which order: the price of an order is that of its best regions.

Layers of one region run side by side, so a region takes as long as its busiest unit; layers that are not in one region
run one after the other. A maximum over windows, which keeps the vector unit busy, costs nothing beside a convolution
that keeps the arrays busy as long.

Where several engines share each layer, an engine may not read in a region what another makes there. So a layer may only
read the result of another member if each engine reads what it made itself: a maximum over windows and an element-wise
operator do, as their tiles are given to the engine that made their input.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np
import numpy.typing as npt

from compiler import ir
from compiler.backend.layers.engine_share import imbalance
from compiler.backend.layers.flow import layer_flow
from compiler.backend.layers.layer import ConvLayer, EltwiseLayer, HostLayer, Layer, MaxLayer
from compiler.backend.layers.region import Region
from compiler.backend.order.units import LD1, MAC, ST1, VEC, LayerTimes, layer_times
from compiler.order.graph import OperatorNode, Order, OrderGraph
from compiler.order.lower_bound import LowerBound
from compiler.order.model import order_model
from compiler.order.report import OrderReport
from compiler.order.residency import spills
from compiler.order.search import SearchLimits
from compiler.order.split import threshold
from hw.contract.params import SocParams

_MOST = 8  #: layers of a region
_START = 700.0  #: cycles from the end of one layer to the first result of the next
_BEHIND = 400.0  #: cycles from the first result of a layer of a region to the first of one that reads it
_HIDDEN = 0.02  #: of the time of the other units that a region takes in addition to its busiest


@dataclass(frozen=True)
class RegionRules:
    """What may be a region on ``engines`` that share each layer, of ``layers`` with their times."""

    layers: Sequence[Layer]
    times: Sequence[LayerTimes]
    engines: int
    readers: Sequence[frozenset[int]]  #: by layer the numbers of those that read its result
    outside: frozenset[int]  #: layers that read inputs of the model, of which one can stay in LV2
    window: int  #: bytes of weights that a job may have
    tiles: Sequence[int]  #: by layer the blocks of channels of its result, which engines can share

    def possible(self, members: Sequence[int]) -> bool:
        """Whether layers of these numbers, in this order, may be one region."""
        layers = [self.layers[number] for number in members]
        dense = [layer for layer in layers if isinstance(layer, ConvLayer) and not layer.depthwise]
        if any(isinstance(layer, HostLayer) for layer in layers) or not 0 < len(dense) < len(layers):
            return False
        if len(self.outside.intersection(members)) > 1:
            return False
        if sum(self.times[number].weight_bytes for number in members) > self.window:
            return False
        if self.engines == 1:
            return True
        inside = set(members)
        return all(self._aligned(reader) for number in members for reader in self.readers[number] if reader in inside)

    def _aligned(self, number: int) -> bool:
        layer = self.layers[number]
        if _by_window(layer) or not self.times[number].busy.any():
            return True
        return isinstance(layer, EltwiseLayer) and not layer.broadcast

    def _by_channels(self, number: int, inside: set[int]) -> bool:
        """Whether engines must share the channels of a member, as a window over them follows."""
        return any(
            _by_window(self.layers[reader]) or self._by_channels(reader, inside)
            for reader in self.readers[number]
            if reader in inside
        )

    def _busy(self, number: int, inside: set[int]) -> npt.NDArray[np.float64]:
        busy = self.times[number].busy
        if self.engines == 1:
            return busy
        tiles = [self.tiles[number]] if self._by_channels(number, inside) else []
        makers = (maker for maker in inside if number in self.readers[maker])
        tiles += [self.tiles[maker] for maker in makers if self._by_channels(maker, inside)]
        return busy * max((imbalance(count, self.engines) for count in tiles), default=1.0)

    def cycles(self, members: Sequence[int]) -> float:
        """Of layers side by side, or of one."""
        inside = set(members)
        busy = sum(self._busy(number, inside) for number in members)
        most = float(np.max(busy))
        if not most:
            return 0.0
        hidden = _HIDDEN * (float(np.sum(busy)) - most) if len(members) > 1 else 0.0
        return most + hidden + _START + _BEHIND * (self._depth(members) - 1)

    def _depth(self, members: Sequence[int]) -> int:
        """Layers of the longest chain among ``members``, which are in order; those that take no time do not count."""
        depth: dict[int, int] = {}
        for number in members:
            own = depth.setdefault(number, 0) + bool(self.times[number].busy.any())
            depth[number] = own
            for reader in self.readers[number]:
                depth[reader] = max(depth.get(reader, 0), own)
        return max(depth[number] for number in members)


def _by_window(layer: Layer) -> bool:
    """Whether each channel of the result comes from windows over one channel of the input."""
    return isinstance(layer, MaxLayer) or (isinstance(layer, ConvLayer) and layer.depthwise)


class RegionPrice:
    """The price of orders of a part of the layers: cycles of its best regions, and of what is spilled."""

    def __init__(self, rules: RegionRules, numbers: Sequence[int], graph: OrderGraph, params: SocParams) -> None:
        """``numbers``: of the layers that are the operators of ``graph``."""
        self._rules, self._numbers, self._graph, self._params = rules, numbers, graph, params
        self._known: dict[tuple[int, ...], float] = {}

    def __call__(self, order: Order) -> float:
        moved = sum(spills(self._graph, order, threshold(self._params.lv2_bytes)))
        return self.cut(order)[0] + moved / self._params.dram_bytes_per_cycle

    def _step(self, members: tuple[int, ...]) -> float:
        """Cycles of a layer or a region; infinite if these cannot be one."""
        if members not in self._known:
            possible = len(members) == 1 or self._rules.possible(members)
            self._known[members] = self._rules.cycles(members) if possible else math.inf
        return self._known[members]

    def cut(self, order: Order) -> tuple[float, list[int]]:
        """The least cycles, and where regions of ``order`` begin."""
        numbers = tuple(self._numbers[i] for i in order)
        best: list[tuple[float, int]] = [(0.0, 0)]
        for end in range(1, len(numbers) + 1):
            begins = range(end - 1, max(-1, end - 1 - _MOST), -1)
            best.append(min((best[begin][0] + self._step(numbers[begin:end]), begin) for begin in begins))
        cuts, end = list[int](), len(numbers)
        while end:
            end = best[end][1]
            cuts.append(end)
        return best[-1][0], cuts[::-1]


def order_and_join(
    graph: ir.Graph, layers: Sequence[Layer], params: SocParams, engines: int, limits: SearchLimits | None
) -> tuple[list[Layer], list[OrderReport]]:  # fmt: skip
    """``layers`` in the best order found within ``limits`` (None: as they come), some joined to regions, and what the
    search did. Layers on the CPU keep their places: all before them come before them."""
    ordered, reports = list[Layer](), list[OrderReport]()
    run: list[Layer] = []
    for layer in [*layers, None]:
        if layer is None or isinstance(layer, HostLayer):
            joined, report = _joined(graph, run, params, engines, limits)
            ordered += joined
            reports += [report] if report else []
            run = []
            ordered += [layer] if layer is not None else []
        else:
            run.append(layer)
    return ordered, reports


def dissolved(layers: Sequence[Layer], region: Layer) -> list[Layer]:
    """``layers`` with the members of ``region`` one by one."""
    at = layers.index(region)
    assert isinstance(region, Region)
    return [*layers[:at], *region.members, *layers[at + 1 :]]


def _joined(
    graph: ir.Graph, run: Sequence[Layer], params: SocParams, engines: int, limits: SearchLimits | None
) -> tuple[list[Layer], OrderReport | None]:  # fmt: skip
    if len(run) < 2:
        return list(run), None
    flow = layer_flow(graph, run)
    number = {layer: i for i, layer in enumerate(run)}
    roots, inputs = graph.roots(), {port.tensor for port in graph.inputs}
    times = [layer_times(graph, layer, params, engines) for layer in run]
    rules = RegionRules(
        run, times, engines,
        [frozenset(number[reader] for reader in flow.successors(layer)) for layer in run],
        frozenset(i for i, layer in enumerate(run) if {roots[name] for name in layer.inputs} & inputs),
        params.lv2_bytes // 8 // engines,
        [-(-graph.tensors[layer.output].nhwc[3] // params.out_channels) for layer in run],
    )  # fmt: skip
    whole = _order_graph(graph, run, times, flow)
    order, report = whole.source, None
    if limits is not None:
        names = {node.name: i for i, node in enumerate(whole.operators)}

        def price_of(piece: OrderGraph) -> RegionPrice:
            return RegionPrice(rules, [names[node.name] for node in piece.operators], piece, params)

        def bound_of(piece: OrderGraph) -> LowerBound:
            busy = sum(times[names[node.name]].busy for node in piece.operators)
            return LowerBound(float(np.max(busy)), False)

        report = order_model(whole, price_of, bound_of, limits)
        order = report.order
    cuts = RegionPrice(rules, list(whole.source), whole, params).cut(order)[1]
    groups = [[run[i] for i in order[begin:end]] for begin, end in zip(cuts, [*cuts[1:], len(order)], strict=True)]
    return [Region.of(graph, group) if len(group) > 1 else group[0] for group in groups], report


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
