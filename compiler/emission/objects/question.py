"""What is asked about a step: all that its object is made from and nothing else, so equal ones have equal objects.

A question knows neither names nor the rest of the model. Its tensors are called by numbers, it stands at place 1 of a
model (0 if it is the first), and of the placement it has the tensors that it touches and the buffers of LV2 that are
alive meanwhile. So steps of one shape at the same addresses ask the same, apart from their weights.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from compiler.emission.kernels.registry import KernelContext
from compiler.emission.objects.content import digest_of
from compiler.emission.objects.private_staging import PrivateStaging
from compiler.emission.preempt.points import PointLimits
from compiler.ir import Operation
from compiler.plan.layers.layer import ConvLayer, FilledRow, Layer, MoveLayer, SoftmaxLayer
from compiler.plan.layers.step import ModelStep, parameters_of
from compiler.plan.memory.tensor_placement import TensorBuffer, TensorPlacement
from compiler.plan.plan import JobPlan
from compiler.plan.regions.layer_order import Chain
from compiler.plan.tiles import AnyTiles
from hw.contract.isa import Segment
from hw.image import ParameterInfo

_NOBODY = Operation("", [], "")
#: Fields of layers that say which elements meet, and how.
_GEOMETRY = (
    "pieces", "op_code", "kernel", "strides", "pads", "dilations", "groups", "depthwise", "uniform", "pe_channels",
    "broadcast", "raw", "heads", "joined", "transposed", "centred",
)  # fmt: skip


@dataclass(frozen=True)
class Question:
    """Is a ``step`` without names, with what kernels see of the rest. ``limits``: of the points that are to be chosen;
    ``private``: where staging lies in a placed model."""

    step: ModelStep
    context: KernelContext
    limits: PointLimits | None
    private: PrivateStaging | None

    @classmethod
    def of(cls, step: ModelStep, context: KernelContext, limits: PointLimits | None) -> "Question":
        """Return the question about ``step``, which kernels would see in ``context`` under its own names."""
        placement, number, budget = context.placement, context.number, context.budget
        private = PrivateStaging(placement, budget, context.params.lv1_word) if budget.placed else None
        names = {name: f"t{i}" for i, name in enumerate(dict.fromkeys(_touched(step, placement)))}
        place = min(number, 1)
        given = parameters_of(step.members)
        numbers = {name: f"n{i}" for i, name in enumerate(dict.fromkeys(one.name for one in given))}
        unnamed = {one: replace(one, name=numbers[one.name]) for one in given}
        members = tuple(_renamed(member, names, unnamed) for member in step.members)
        seen = replace(context, number=place, placement=_seen(names, number, place, placement, members))
        step = replace(step, members=members, inputs=[names[name] for name in step.inputs])
        return cls(step, seen, limits if step.jobs is None else None, private)

    @cached_property
    def key(self) -> str:
        """Return the digest of all of it but what convolutions multiply, add and clip by."""
        return digest_of((self._content, self.limits, self.step.tiles, self.step.jobs))

    def answered(self, tiles: Sequence[AnyTiles], jobs: Sequence[JobPlan]) -> str:
        """Return the key of this question with ``tiles`` and ``jobs`` decided."""
        return digest_of((self._content, None, tiles, jobs))

    @cached_property
    def likeness(self) -> str:
        """Return a digest of what members do, how large their tensors are and in which memory, and who computes them,
        without numbers and addresses: of two regions with the same, neither should be worth more than the other."""
        seen = self.context.placement

        def about(name: str) -> tuple[Any, ...]:
            return (name, seen.tensors[name].shape, seen.by_tensor[name].segment) if name in seen.tensors else ()

        members = [
            (type(one).__name__, one.kind, _geometry(one), *map(about, (*one.inputs, *one.outputs)))
            for one in self.step.members
        ]
        return digest_of((members, self.step.places, self.limits))

    @cached_property
    def _content(self) -> str:
        """Return a digest of all that is not to be decided."""
        unread, first = set[str](), self.step.members[0]
        if len(self.step.members) == 1 and isinstance(first, ConvLayer):
            unread.add(first.output)
            if first.addition:
                unread.add(first.addition.own)
                if first.addition.constant is not None:
                    unread.add(first.addition.other)
        seen = self.context.placement.tensors
        tensors = {name: replace(seen[name], zero_point=0) if name in unread else seen[name] for name in seen}
        context = replace(self.context, placement=replace(self.context.placement, tensors=tensors))
        step = replace(self.step, tiles=None, jobs=None)
        return digest_of((step, context, self.private))

    def conv(self, output: str) -> ConvLayer:
        """Return the convolution that makes tensor ``output``."""
        return next(m for m in self.step.members if isinstance(m, ConvLayer) and m.output == output)


def _geometry(layer: Layer) -> list[Any]:
    """Return what ``layer`` computes, as far as its time depends on it."""
    weights = layer.weights.shape if isinstance(layer, ConvLayer) else ()
    added = layer.addition.broadcast if isinstance(layer, ConvLayer) and layer.addition else None
    return [weights, added, *(getattr(layer, name, None) for name in _GEOMETRY)]


def _touched(step: ModelStep, placement: TensorPlacement) -> Iterator[str]:
    """Yield the names of the tensors of a step, and of those that they lie in."""
    for member in step.members:
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
    yield from step.inputs


def _seen(
    names: dict[str, str], number: int, place: int, placement: TensorPlacement, members: Sequence[Layer]
) -> TensorPlacement:  # fmt: skip
    """Return what a layer sees of ``placement``; buffers keep their order, in which live ranges are listed. Parameters
    are those of ``members``, which jobs carry."""
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
    return TensorPlacement(tensors, by_tensor, inside, {}, 0, b"", exports, Chain(), tuple(parameters_of(members)))


def _renamed(layer: Layer, names: dict[str, str], unnamed: dict[ParameterInfo, ParameterInfo]) -> Layer:
    """``layer`` without its operator, its tensors called by ``names``, its parameters ``unnamed``."""
    changed: dict[str, Any] = {}
    if isinstance(layer, ConvLayer):  # the scale is not used, those of the areas are
        changed["requantise"] = replace(layer.requantise, scale=np.zeros(0, np.float32))
        if (added := layer.addition) is not None:
            op = replace(added.op, name="", inputs=[], output="", nodes=[])
            changed["addition"] = replace(added, op=op, own=names[added.own], other=names[added.other])
    if isinstance(layer, MoveLayer):
        changed["copies"] = [
            replace(
                copy, src=names[copy.src], dst=names.get(copy.dst, ""),
                more_start=copy.more_start and unnamed[copy.more_start],
                more_offset=copy.more_offset and unnamed[copy.more_offset],
            ) for copy in layer.copies
        ]  # fmt: skip
    if isinstance(layer, SoftmaxLayer) and (row := layer.filled):
        changed["filled"] = FilledRow(unnamed[row.vectors], unnamed[row.last], unnamed[row.end])
    inputs = [names[name] for name in layer.inputs]
    return replace(layer, op=_NOBODY, inputs=inputs, output=names[layer.output], **changed)
