"""Expects how long layers take that have never run, from layers like them that have: the prediction from past runs, by
operator type and size, of **Idle-time layer scheduling**.

A compiler's estimate is wrong in ways that layers of one kind share. So what is learned is by how much: the ratio of
what was measured to what was estimated.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from hw.image import Image, LayerInfo
from sw.driver import Device
from sw.runtime.reference import Durations, measured, stored

_MOST = 500  #: layers that are remembered, the newest
_LONGEST = 200  #: characters of a kind that count
_NEAREST = 7  #: layers whose ratios are asked for theirs
_FARTHEST = 4.0  #: a ratio is taken to be at most this, or one divided by it
_SIZE = 0.5  #: how much sizes count beside operators
_PRIOR = 1  #: layers like it that were exactly as estimated, beside those that ran


@dataclass(frozen=True)
class MeasuredLayer:
    """Describes a layer that ran when its model had the device to itself. ``kind``: its operators, as ``conv+add``;
    ``bytes``: of its inputs, weights and outputs; ``engines``: that its model was compiled for."""

    kind: str
    macs: int
    bytes: int
    engines: int
    estimated: Durations
    measured: Durations

    @classmethod
    def all_of(cls, image: Image) -> "list[MeasuredLayer]":
        """Return the layers of ``image``, all of which were measured."""
        engines = engines_sharing(image)
        return [_described(each, engines, stored(each)) for each in image.meta.layers]


def engines_sharing(image: Image) -> int:
    """Return how many engines share a layer of ``image``."""
    return len({job.engine for job in image.meta.jobs})


def _described(layer: LayerInfo, engines: int, took: Durations) -> MeasuredLayer:
    size = layer.input_bytes + layer.weight_bytes + layer.output_bytes
    estimated = Durations(layer.estimated_load, layer.estimated_compute, layer.estimated_stream)
    return MeasuredLayer(layer.kind[:_LONGEST], layer.macs, size, engines, estimated, took)


class PastDurations:
    """Remembers layers that were measured, and expects durations of others by them. Two layers are alike as far as they
    share operators and are of one size: MACs, bytes, engines, and estimated durations.

    An estimate is multiplied by the median ratio of those most like it, which counts for less the fewer there are, and
    is bounded: images may claim anything of their layers.
    """

    def __init__(self) -> None:
        self._layers: deque[MeasuredLayer] = deque(maxlen=_MOST)
        self._table: _Table | None = None
        self._known: dict[MeasuredLayer, Durations] = {}

    def __len__(self) -> int:
        return len(self._layers)

    def add(self, layers: Iterable[MeasuredLayer]) -> None:
        """Remember those of ``layers`` that took time."""
        self._layers.extend(layer for layer in layers if layer.measured.compute)
        self._table = None
        self._known.clear()

    def of(self, image: Image) -> Callable[[LayerInfo], Durations]:
        """Return what gives the durations of a layer of ``image``, in cycles: as measured, or as expected until
        then."""
        if not self._layers or measured(image):
            return stored
        return partial(self._expected, engines=engines_sharing(image))

    def _expected(self, layer: LayerInfo, engines: int) -> Durations:
        if layer.measured_compute is not None:
            return stored(layer)
        asked = _described(layer, engines, Durations(0, 0, 0))
        if asked not in self._known:
            self._table = self._table or _Table(tuple(self._layers))
            self._known[asked] = self._table.expected(asked)
        return self._known[asked]


class _Table:
    """Holds measured layers as arrays."""

    def __init__(self, layers: Sequence[MeasuredLayer]) -> None:
        self._layers = layers

    @cached_property
    def _sizes(self) -> npt.NDArray[np.float64]:
        return np.array([_size(layer) for layer in self._layers])

    @cached_property
    def _ratios(self) -> npt.NDArray[np.float64]:
        """Logarithms of load, compute and stream of each layer against their estimates; NaN where one is 0."""
        times = np.array([(layer.estimated, layer.measured) for layer in self._layers], np.float64)
        times[times == 0] = np.nan
        limit = np.log(_FARTHEST)
        return np.clip(np.log(times[:, 1] / times[:, 0]), -limit, limit)

    @cached_property
    def _kinds(self) -> tuple[list[frozenset[str]], npt.NDArray[np.int_]]:
        """The operators of each kind of layer, and the numbers of the kinds of all."""
        numbers: dict[frozenset[str], int] = {}
        number = [numbers.setdefault(_operators(layer), len(numbers)) for layer in self._layers]
        return list(numbers), np.array(number)

    def expected(self, asked: MeasuredLayer) -> Durations:
        """Return the durations of ``asked``, by its estimates."""
        near = self._ratios[self._nearest(asked)]
        return Durations(*(round(time * _factor(near[:, what])) for what, time in enumerate(asked.estimated)))

    def _nearest(self, asked: MeasuredLayer) -> npt.NDArray[np.int_]:
        """Return the numbers of the layers that share operators with ``asked``, those most like it first, newer ones
        before older ones."""
        (kinds, number), mine = self._kinds, _operators(asked)
        shared = np.array([len(mine & its) / len(mine | its) for its in kinds])[number]
        apart = np.hypot.reduce(self._sizes - _size(asked), axis=1) + 1 - shared
        order = len(apart) - 1 - np.argsort(apart[::-1], kind="stable")
        return order[shared[order] > 0]


def _size(layer: MeasuredLayer) -> npt.NDArray[np.float64]:
    """Return logarithms, so that it counts how many times as large a layer is. The estimates tell whether memory access
    or compute holds it up."""
    return np.log1p((layer.macs, layer.bytes, layer.engines, *layer.estimated)) * _SIZE


def _operators(layer: MeasuredLayer) -> frozenset[str]:
    return frozenset(layer.kind.split("+"))


def _factor(ratios: npt.NDArray[np.float64]) -> float:
    known = ratios[~np.isnan(ratios)][:_NEAREST]
    if not len(known):
        return 1.0
    return float(np.exp(np.median(known) * len(known) / (len(known) + _PRIOR)))


_OF_DEVICES: WeakKeyDictionary[Device, dict[str | None, PastDurations]] = WeakKeyDictionary()


def past_of(device: Device, tenant: str | None = None) -> PastDurations:
    """Return what was measured on ``device`` of models of ``tenant``. One tenant's images say nothing to others: a
    wrong estimate in one of them would spoil what is expected of theirs."""
    return _OF_DEVICES.setdefault(device, {}).setdefault(tenant, PastDurations())
