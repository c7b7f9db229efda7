"""What may be a region, which engine computes which member of it, and how long it takes."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from compiler import ir
from compiler.plan.layers.layer import (
    ConvLayer,
    HostLayer,
    Layer,
    LoadLayer,
    ProductLayer,
    SoftmaxLayer,
    WindowLayer,
)
from compiler.plan.layers.region_share import Share, region_shares
from compiler.plan.layers.step import parameters_of
from compiler.plan.plan import Place
from compiler.plan.regions.region_places import parts_of, place_parts
from compiler.plan.regions.region_work import MemberWork, PartWay, PartWork, RegionWork
from compiler.plan.regions.units import LD1, MAC, ST1, VEC, LayerTimes
from hw.contract.formats import PARAMETERS
from hw.contract.params import SocParams
from sim.cost import LAYER_TO_LOAD, LAYER_TO_RESULT, RegionMember, moved, side_by_side_cycles

_ATTENTION = 1 << 18  #: cycles that a region with products of computed matrices may take, whatever the network
_ANY = 1 << 62  #: bytes, more than there are
_LOOKED_AT = 3  #: ways to compute a region that are looked at more closely, at most
_ALL_TILES = 1 << 20  #: more than a layer has
_CLOSE = 1.25  #: times the quick estimate of the best places, up to which others are looked at more closely


@dataclass(frozen=True)
class RegionRules:
    """What may be a region on ``engines``, of ``layers`` with their times."""

    layers: Sequence[Layer]
    times: Sequence[LayerTimes]  #: if all engines share the layer
    alone: Sequence[LayerTimes]  #: if one engine computes all of it
    engines: int
    readers: Sequence[frozenset[int]]  #: by layer the numbers of those that read its result
    outside: frozenset[int]  #: layers that read inputs of the model, of which one can stay in LV2
    tensors: Sequence[Mapping[str, int]]  #: by layer bytes of the tensors that it reads and writes
    room: int  #: bytes of LV2 that tensors of an order may take
    memory: int  #: bytes of it for the tensors of a region
    window: int  #: bytes of weights that a job may have
    params: SocParams
    longest: float  #: cycles of MAC or VEC of a region: schedulers and pauses between jobs want more than one
    at_once: frozenset[int] = frozenset()  #: layers of rows of which an engine has one tile: it waits for all it reads
    one_of_several: bool = False  #: whether a region runs on one engine beside others, as in placed models
    _parts: dict[tuple[int, ...], PartWork] = field(default_factory=dict, compare=False, repr=False)
    _allowed: dict[tuple[int, ...], bool] = field(default_factory=dict, compare=False, repr=False)
    _known: dict[tuple[int, ...], RegionWork] = field(default_factory=dict, compare=False, repr=False)

    def passing(self, names: Collection[str]) -> "RegionRules":
        """Return the same where tensors of these ``names`` lie in DRAM: a region needs no bytes of LV2 for them."""
        left = [{name: size for name, size in one.items() if name not in names} for one in self.tensors]
        return replace(self, tensors=left, _allowed={})

    def possible(self, members: Sequence[int]) -> bool:
        """Return whether layers of these numbers, in whatever order, may be one region."""
        key = tuple(sorted(members))
        if key not in self._allowed:
            self._allowed[key] = self._possible(key)
        return self._allowed[key]

    def _possible(self, members: tuple[int, ...]) -> bool:
        layers = [self.layers[number] for number in members]
        if any(isinstance(layer, HostLayer | LoadLayer) for layer in layers):
            return False
        if not any(_keeps_arrays_busy(layer) for layer in layers):
            return False
        if len(self.outside.intersection(members)) > 1 or len(parameters_of(layers)) > PARAMETERS:
            return False
        attention = any(isinstance(layer, ProductLayer) for layer in layers)
        units = [self.times[number].units for number in members]
        longest = max(self.longest, _ATTENTION * attention, *map(max, units))
        if max(map(sum, zip(*units, strict=True))) > longest:
            return False
        return self._fits(members) and math.isfinite(self._work(members).least)

    def _fits(self, members: Sequence[int]) -> bool:
        """Return whether a region keeps on chip what its members would each by themselves: all that they read and write
        is there at a time."""
        sizes = {name: size for number in members for name, size in self.tensors[number].items()}
        largest = max(sum(self.tensors[number].values()) for number in members)
        return sum(sizes.values()) <= max(self.memory, largest)

    def least(self, members: Sequence[int]) -> float:
        """Return a lower bound of the cycles of :meth:`placed` that is quickly found: the busiest unit."""
        most = self._work(members).least
        return most + LAYER_TO_LOAD if most else 0.0

    def quick_placed(self, members: Sequence[int], shared: bool) -> tuple[float, tuple[Place, ...]]:
        """Return an estimate of :meth:`placed` that is quickly found, for a search: the busiest unit and a little of
        the others, as if no layer waited for another."""
        work = self._work(members)
        quick, way = min(work.near(1.0, shared), default=(math.inf, -1))
        return quick + (LAYER_TO_RESULT if quick else 0.0), self._places(members, work, way)

    def placed(self, members: Sequence[int], shared: bool) -> tuple[float, tuple[Place, ...]]:
        """Return the least cycles of layers side by side, or of one, and where each member is computed then;
        ``shared``: engines share all of them. Infinite if they cannot."""
        work = self._work(members)
        best = math.inf, -1
        for _, way in sorted(work.near(_CLOSE, shared))[:_LOOKED_AT]:
            # Otherwise it takes longer in any schedule.
            if work.busiest(way) + work.again(way) + LAYER_TO_LOAD <= best[0]:
                best = min(best, (self._cycles(members, work, way), way))
        cycles, way = best
        return cycles, self._places(members, work, way)

    def _places(self, members: Sequence[int], work: RegionWork, way: int) -> tuple[Place, ...]:
        found = work.members(way) if way >= 0 else {}
        return tuple(found[number][0] if number in found else Share.ANY for number in members)

    def _cycles(self, members: Sequence[int], work: RegionWork, way: int) -> float:
        found = work.members(way)
        if not any(busy.any() for _, busy in found.values()):
            return 0.0
        held = {  # engines that have to do with the same members take equally long
            tuple(number for number in members if number in found and _concerns(found[number][0], engine))
            for engine in range(self.engines)
        }
        longest = max(self._side_by_side([(number, found[number][1]) for number in mine]) for mine in held)
        return longest + work.again(way) + LAYER_TO_LOAD

    def _side_by_side(self, held: Sequence[tuple[int, npt.NDArray[np.float64]]]) -> float:
        """Return the cycles of an engine that has so much to do of these layers."""
        if self.one_of_several:
            return self._on_its_own(held)
        at, found = {number: i for i, (number, _) in enumerate(held)}, []
        for number, busy in held:
            reads = tuple(i for maker, i in at.items() if i < at[number] and number in self.readers[maker])
            layer = self.layers[number]
            around = int(isinstance(layer, ConvLayer | WindowLayer) and max(layer.kernel) > 1)
            around = _ALL_TILES if number in self.at_once else around
            mac, vec, ld1, st1 = (float(busy[unit]) for unit in (MAC, VEC, LD1, ST1))
            found.append(RegionMember((ld1, mac, vec, st1), reads, around))
        return side_by_side_cycles(found) if found else 0.0

    def _on_its_own(self, held: Sequence[tuple[int, npt.NDArray[np.float64]]]) -> float:
        """Return likewise the cycles in a placed model, where any layers can follow each other: those without work hand
        on what they read, and readers of maxima over windows, which are made for few channels at a time, wait for
        all."""
        makers, found, maxima = dict[int, frozenset[int]](), list[RegionMember](), set[int]()
        for number, busy in held:
            layer = self.layers[number]
            reads = frozenset[int]().union(*(made for maker, made in makers.items() if number in self.readers[maker]))
            makers[number] = frozenset({len(found)}) if busy.any() else reads
            if busy.any():
                maxima |= makers[number] if isinstance(layer, WindowLayer) else frozenset()
                around = int(isinstance(layer, ConvLayer | WindowLayer) and max(layer.kernel) > 1)
                mac, vec, ld1, st1 = (float(busy[unit]) for unit in (MAC, VEC, LD1, ST1))
                beyond = _ALL_TILES if maxima & reads else around
                found.append(RegionMember((ld1, mac, vec, st1), tuple(sorted(reads)), beyond))
        return side_by_side_cycles(found) if found else 0.0

    def _work(self, members: Sequence[int]) -> RegionWork:
        """Return what there is to do, for each way in which engines may compute the members, in whatever order."""
        key = tuple(sorted(members))
        if key not in self._known:
            self._known[key] = self._all_ways(key)
        return self._known[key]

    def _all_ways(self, members: tuple[int, ...]) -> RegionWork:
        if len(members) == 1 or self.engines == 1:
            part = PartWork([self._shared(dict.fromkeys(members, Share.ANY))], self.engines)
            return RegionWork([part], place_parts([0.0], [1], 1), self.window if len(members) > 1 else _ANY)
        edges, idle = self._flow(members)
        groups = [tuple(members[place] for place in part) for part in parts_of(len(members), edges, idle)]
        parts = [self._part(group) for group in groups]
        work = [float(part.units[-1].max()) for part in parts]
        found = place_parts(work, [len(part.ways) - self.engines for part in parts], self.engines)
        return RegionWork(parts, found, self.window)

    def _part(self, members: tuple[int, ...]) -> PartWork:
        if members not in self._parts:
            edges, idle = self._flow(members)
            ways = [self._shared(shares) for shares in self._shares(members, edges, idle)]
            ways += [self._on_one(members, engine) for engine in range(self.engines)]
            self._parts[members] = PartWork(ways, self.engines)
        return self._parts[members]

    def _flow(self, members: Sequence[int]) -> tuple[list[tuple[int, int]], list[int]]:
        """By their places, which members read which, and those that nobody computes."""
        edges = [
            (at, place)
            for place, reader in enumerate(members)
            for at, maker in enumerate(members[:place])
            if reader in self.readers[maker]
        ]
        return edges, [place for place, number in enumerate(members) if not any(self.times[number].units)]

    def _shares(
        self, members: Sequence[int], edges: Sequence[tuple[int, int]], idle: Sequence[int]
    ) -> list[dict[int, Share]]:
        """Return the ways in which engines can share a part, all different."""
        found: list[dict[int, Share]] = []
        for either in (Share.CHANNELS, Share.ROWS):
            shares = region_shares([self.layers[number] for number in members], edges, idle, either)
            if shares is not None and (split := dict(zip(members, shares, strict=True))) not in found:
                found.append(split)
        return found

    def _shared(self, shares: Mapping[int, Share]) -> PartWay:
        found, weights, once = dict[int, MemberWork](), 0, 0
        for number, share in shares.items():
            one = self.times[number]
            found[number] = share, _busy(one, share)
            weights += one.all_weights if share is Share.ROWS else one.weight_bytes
            once += one.weight_bytes
        again = moved((weights - once) * self.engines, self.params)
        return PartWay(found, [weights] * self.engines, again)

    def _on_one(self, members: Sequence[int], engine: int) -> PartWay:
        weights = [0] * self.engines
        weights[engine] = sum(self.alone[number].weight_bytes for number in members)
        return PartWay({number: (engine, self.alone[number].busy) for number in members}, weights)


def rows_at_once(graph: ir.Graph, layer: Layer, params: SocParams, engines: int) -> bool:
    """Return whether each of ``engines`` computes its rows of ``layer``, a function of rows of matrices, as one
    tile."""
    if not isinstance(layer, ProductLayer | SoftmaxLayer):
        return False
    images, _, rows, _ = graph.tensors[layer.output].nhwc
    matrices = images * (layer.heads if isinstance(layer, ProductLayer) and layer.joined[2] else 1)
    return matrices * rows <= engines * (params.lv0_acc_rows // 2)


def region_bytes(graph: ir.Graph, layer: Layer, roots: Mapping[str, str]) -> dict[str, int]:
    """By tensor the bytes that ``layer`` reads and writes. Of heads side by side, those that take part; weights of a
    softmax take the place of its scores."""
    names = layer.inputs if isinstance(layer, SoftmaxLayer) else (*layer.inputs, *layer.outputs)
    found = {roots[name]: graph.tensors[roots[name]].size for name in names}
    if isinstance(layer, ProductLayer) and layer.heads < layer.all_heads:
        for name, joined in zip(layer.inputs, layer.joined, strict=False):
            if joined:
                size = graph.tensors[roots[name]].size * layer.heads // layer.all_heads
                found.pop(roots[name], None)  # both operands may be one tensor
                found[f"{roots[name]}, heads from {layer.first}"] = size
    return found


def _keeps_arrays_busy(layer: Layer) -> bool:
    return isinstance(layer, ProductLayer) or (isinstance(layer, ConvLayer) and not layer.depthwise)


def _concerns(place: Place, engine: int) -> bool:
    return isinstance(place, Share) or place == engine


def _busy(one: LayerTimes, share: Share) -> npt.NDArray[np.float64]:
    busy = {Share.ANY: one.busy, Share.CHANNELS: one.by_channels, Share.ROWS: one.by_rows, Share.MATRICES: one.busy}
    return busy[share]
