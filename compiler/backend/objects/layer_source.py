"""What the object of a layer is made from, and nothing else: equal sources have equal objects.

A source knows neither names nor the rest of the model. Its tensors are called by numbers, it stands at place 1 of a
model (0 if it is the first), and of the placement it has the tensors that it touches and the buffers of LV2 that are
alive meanwhile. So layers of one shape at the same addresses have equal sources, apart
from their weights.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from compiler.backend.kernels.registry import KernelContext
from compiler.backend.layers.layer import ConvLayer, Layer, MoveLayer
from compiler.backend.layers.region import Region, members_of
from compiler.backend.memory.budget import Lv2Budget
from compiler.backend.memory.tensor_placement import TensorBuffer, TensorPlacement
from compiler.backend.objects.content import digest_of
from compiler.backend.objects.private_staging import PrivateStaging
from compiler.backend.order.layer_order import Chain
from compiler.backend.preempt.points import PointLimits
from compiler.ir import Operation
from compiler.plan.plan import JobPlan, StepPlan
from compiler.plan.tiles import AnyTiles
from hw.contract.isa import Segment
from hw.contract.params import SocParams

_NOBODY = Operation("", [], "")


@dataclass(frozen=True)
class LayerSource:
    """Is a layer without names, with what it sees of the placement and all that it is compiled for. ``longest``: cycles
    that an instruction should take at most (0: any); ``limits``: of the points that are to be chosen; ``private``:
    where staging lies in a placed model. ``tiles`` and ``jobs``: what is decided about them already. ``starts``:
    nothing is computed before it."""

    layer: Layer
    number: int
    placement: TensorPlacement
    budget: Lv2Budget
    params: SocParams
    longest: int
    limits: PointLimits | None
    private: PrivateStaging | None
    tiles: tuple[AnyTiles | None, ...] | None = None
    jobs: tuple[JobPlan, ...] | None = None
    starts: bool = False

    @classmethod
    def of(
        cls, layer: Layer, number: int, placement: TensorPlacement, budget: Lv2Budget, params: SocParams,
        limits: PointLimits | None, given: StepPlan | None = None, *, starts: bool = False,
    ) -> "LayerSource":  # fmt: skip
        """Return the source of ``layer``, which has ``number`` in its model; ``given`` is what is decided about it
        already."""
        private = PrivateStaging(placement, budget, params.lv1_word) if budget.placed else None
        place = min(number, 1)
        names = _names(layer, placement)
        seen = _seen(names, number, place, placement)
        longest = limits.longest if limits else 0
        tiles, jobs = (given.tiles, given.jobs) if given else (None, None)
        free = limits if jobs is None else None
        return cls(_renamed(layer, names), place, seen, budget, params, longest, free, private, tiles, jobs, starts)

    @property
    def context(self) -> KernelContext:
        """Return what kernels need to know."""
        return KernelContext(self.params, self.number, self.placement, self.budget, self.longest, starts=self.starts)

    @cached_property
    def key(self) -> str:
        """Return the digest of all of it but what convolutions multiply, add and clip by."""
        return digest_of((self._content, self.limits, self.tiles, self.jobs))

    def answered(self, tiles: Sequence[AnyTiles], jobs: Sequence[JobPlan]) -> str:
        """Return the key of this source with ``tiles`` and ``jobs`` decided."""
        return digest_of((self._content, None, tiles, jobs))

    @cached_property
    def _content(self) -> str:
        """Return a digest of all that is not to be decided."""
        unread = {self.layer.output} if isinstance(self.layer, ConvLayer) else set()
        if isinstance(self.layer, ConvLayer) and self.layer.addition:
            unread.add(self.layer.addition.own)
            if self.layer.addition.constant is not None:
                unread.add(self.layer.addition.other)
        seen = self.placement.tensors
        tensors = {name: replace(seen[name], zero_point=0) if name in unread else seen[name] for name in seen}
        placement = replace(self.placement, tensors=tensors)
        return digest_of(replace(self, placement=placement, limits=None, tiles=None, jobs=None))

    def conv(self, output: str) -> ConvLayer:
        """Return the convolution that makes tensor ``output``."""
        return next(m for m in members_of(self.layer) if isinstance(m, ConvLayer) and m.output == output)


def _touched(layer: Layer, placement: TensorPlacement) -> Iterator[str]:
    """Names of the tensors of a layer, and of those that they lie in."""
    for member in members_of(layer):
        names = [*member.inputs, *member.outputs]
        if isinstance(member, ConvLayer) and member.addition:
            names += [member.addition.own, member.addition.other]
        if isinstance(member, MoveLayer):
            names += [copy.src for copy in member.copies]
        for name in names:
            while name in placement.inside:
                yield name
                name = placement.inside[name][0]
            yield name
    yield from (*layer.inputs, *layer.outputs)


def _names(layer: Layer, placement: TensorPlacement) -> dict[str, str]:
    touched = dict.fromkeys(_touched(layer, placement))
    return {name: f"t{number}" for number, name in enumerate(touched)}


def _seen(names: dict[str, str], number: int, place: int, placement: TensorPlacement) -> TensorPlacement:
    """Return what a layer sees of ``placement``; buffers keep their order, in which live ranges are listed."""
    order, buffers = placement.order, dict[int, TensorBuffer]()
    by_tensor: dict[str, TensorBuffer] = {}
    for name, buffer in placement.by_tensor.items():
        on_chip = buffer.segment == Segment.LV2 and buffer.size
        alive = bool(on_chip and order.alive(buffer, number))
        if not alive and name not in names:
            continue
        if name not in names and id(buffer) in buffers:
            continue
        if id(buffer) not in buffers:
            users = {place, *([place - 1] if not order.first(buffer, number) else [])} if alive else {place + 2}
            if alive and not order.last(buffer, number):
                users.add(place + 1)
            buffers[id(buffer)] = replace(buffer, users=frozenset(users))
        by_tensor[names.get(name, f"b{len(by_tensor)}")] = buffers[id(buffer)]
    tensors = {
        new: replace(placement.tensors[old], name=new, scale=1.0, data=None, onnx_name="", perm=(), view=())
        for old, new in names.items()
        if old in placement.tensors
    }
    inside = {names[n]: (names[o[0]], o[1]) for n, o in placement.inside.items() if n in names}
    exports = {names[n]: at for n, at in placement.exports.items() if n in names}
    return TensorPlacement(tensors, by_tensor, inside, {}, 0, b"", exports, Chain())


def _renamed(layer: Layer, names: dict[str, str]) -> Layer:
    """``layer`` without its operator, its tensors called by ``names``."""
    changed: dict[str, Any] = {}
    if isinstance(layer, Region):
        changed["members"] = tuple(_renamed(member, names) for member in layer.members)
    if isinstance(layer, ConvLayer):  # the scale is not used, those of the areas are
        changed["requantise"] = replace(layer.requantise, scale=np.zeros(0, np.float32))
        if (added := layer.addition) is not None:
            op = replace(added.op, name="", inputs=[], output="", nodes=[])
            changed["addition"] = replace(added, op=op, own=names[added.own], other=names[added.other])
    if isinstance(layer, MoveLayer):
        changed["copies"] = [replace(copy, src=names[copy.src]) for copy in layer.copies]
    inputs = [names[name] for name in layer.inputs]
    return replace(layer, op=_NOBODY, inputs=inputs, output=names[layer.output], **changed)
