"""Pad: constant padding of an image exists on paper until something reads it; all other padding is a concatenation."""

import dataclasses

import numpy as np
import onnx

from compiler.frontend.draft import Draft, Value, attributes, operator
from compiler.frontend.ops.move import own_axes, requantised
from compiler.frontend.problems import Unsupported
from compiler.frontend.values import NHWC, Padding, Quant, Quantisation, Real, TensorLayout
from compiler.ir import Concat, Pad, Slice

Ends = tuple[int, int]  #: elements in front of an axis and behind it


@operator("Pad")
def pad(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return a tensor with more around it; a convolution or pool behind it takes zeros around an image over."""
    value = draft.value(node.input[0])
    if not isinstance(value, Real | Quant):
        value = draft.real(node.input[0])
    quant = value.quant if isinstance(value, Real) else value
    ends, given = _ends(draft, node, len(quant.shape)), attributes(node)
    mode = given.get("mode", "constant")
    constant = draft.constant(node, 2, "value") if mode == "constant" else None
    amount = float(given.get("value", 0.0) if constant is None else constant.reshape(-1)[0])
    image = len(ends) == 4 and not any((*ends[0], *ends[1])) and min(min(each) for each in ends) >= 0
    if isinstance(value, Real):
        params = value.quantisation
        raw = params.stored(amount)
        held = float(params.scale) * (raw - params.zero_point)
        exact = abs(held - amount) <= 1e-4 * float(params.scale) or mode != "constant"
        if not exact and not (image and _stored_next(draft, node)):
            raise Unsupported(f"its value {amount:g} is not a multiple of the scale; quantise the padded tensor")
    else:
        raw = int(amount)
    if image and mode == "constant":
        (top, bottom), (left, right) = ends[2:]
        quant = _padded(draft, quant, (top, left, bottom, right), raw, amount)
    else:
        quant = _extended(draft, node, quant, ends, mode, raw)
    return [dataclasses.replace(value, quant=quant) if isinstance(value, Real) else quant]


def _stored_next(draft: Draft, node: onnx.NodeProto) -> bool:
    readers = draft.source.consumers.get(node.output[0], [])
    return bool(readers) and all(reader.op_type == "QuantizeLinear" for reader in readers)


def _ends(draft: Draft, node: onnx.NodeProto, rank: int) -> list[Ends]:
    """Return what a Pad adds to each axis of a tensor of ``rank``."""
    wanted = draft.constant(node, 1, "pads")
    pads = list(attributes(node).get("pads", ())) if wanted is None else [int(p) for p in wanted.reshape(-1)]
    axes, found = draft.constant(node, 3, "axes"), [(0, 0)] * rank
    for index, axis in enumerate(range(rank) if axes is None else axes.reshape(-1)):
        found[int(axis) % rank] = pads[index], pads[index + len(pads) // 2]
    return found


def _extended(draft: Draft, node: onnx.NodeProto, quant: Quant, ends: list[Ends], mode: str, raw: int) -> Quant:
    """Return ``quant`` with more at the ends of its axes, or less, one axis after the other."""
    quant = draft.dense(quant)
    layout = own_axes(quant) or TensorLayout.default(quant.shape)
    quant = Quant(draft.relayout(quant, layout), quant.shape, layout, quant.dtype)
    for axis, (before, after) in enumerate(ends):
        extent = quant.shape[axis]
        if min(before, after) < 0:
            first, end = max(-before, 0), extent - max(-after, 0)
            if mode != "constant" or end <= first:
                raise Unsupported(f"pads {before} and {after} of an axis of {extent} in mode {mode!r}")
            quant = _stretch(draft, node, quant, axis, first, end - first)
            before, after = max(before, 0), max(after, 0)
        if before or after:
            front, back = (
                _beside(draft, node, quant, axis, count, mode, raw, end) for end, count in ((0, before), (1, after))
            )
            quant = _joined(draft, node, axis, [*front, quant, *back])
    return quant


def _beside(
    draft: Draft, node: onnx.NodeProto, quant: Quant, axis: int, count: int, mode: str, raw: int, end: int
) -> list[Quant]:  # fmt: skip
    """Return the ``count`` indices that stand in front of an axis (``end`` 0) or behind it (1), in order."""
    extent, params = quant.shape[axis], draft.quantisation(quant.tensor)
    if not count:
        return []
    if mode == "constant":
        shape = (*quant.shape[:axis], count, *quant.shape[axis + 1 :])
        layout = TensorLayout(shape, quant.layout.perm)
        data = np.full(layout.physical, raw % 256, np.uint8).view(params.dtype)
        return [Quant(draft.new_constant(f"{node.output[0]}:around", data, params), shape, layout, params.dtype)]
    if mode == "wrap" and count <= extent:
        return [_stretch(draft, node, quant, axis, 0 if end else extent - count, count)]
    if mode == "edge":
        return [_stretch(draft, node, quant, axis, (extent - 1) * end, 1)] * count
    if mode == "reflect" and count < extent:
        found = range(extent - 2, extent - 2 - count, -1) if end else range(count, 0, -1)
        return [_stretch(draft, node, quant, axis, index, 1) for index in found]
    raise Unsupported(f"{count} elements around an axis of {extent} in mode {mode!r}")


def _stretch(draft: Draft, node: onnx.NodeProto, quant: Quant, axis: int, first: int, count: int) -> Quant:
    shape = (*quant.shape[:axis], count, *quant.shape[axis + 1 :])
    layout = TensorLayout(shape, quant.layout.perm)
    made = draft.new_inner(f"{node.output[0]}:part", layout, draft.quantisation(quant.tensor))
    draft.add(Slice(node.name, [quant.tensor], made.tensor, axis=layout.perm.index(axis), first=first))
    return made


def _joined(draft: Draft, node: onnx.NodeProto, axis: int, parts: list[Quant]) -> Quant:
    whole = next(part for part in parts if draft.graph.tensors[part.tensor].data is None)
    shape = list(whole.shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    layout = TensorLayout(tuple(shape), whole.layout.perm)
    made = draft.new_inner(f"{node.output[0]}:padded", layout, draft.quantisation(whole.tensor))
    draft.add(Concat(node.name, [part.tensor for part in parts], made.tensor, axis=layout.perm.index(axis)))
    return made


def _padded(draft: Draft, quant: Quant, pads: tuple[int, int, int, int], raw: int, amount: float) -> Quant:
    if not any(pads):
        return quant
    quant = draft.dense(quant)
    if quant.layout.view != quant.shape:
        layout = TensorLayout(quant.shape, NHWC)
        quant = dataclasses.replace(quant, tensor=draft.relayout(quant, layout), layout=layout)
    n, c, h, w = quant.shape
    shape = (n, c, h + pads[0] + pads[2], w + pads[1] + pads[3])
    return dataclasses.replace(quant, shape=shape, padding=Padding(pads, raw % 256, amount))


def padded_as(draft: Draft, value: Real, target: Quantisation, name: str, node: str) -> Quant:
    """Return a padded tensor stored with other parameters as the ONNX tensor ``name``. What it is padded with need not
    be a multiple of its first scale."""
    quant, padding = value.quant, value.quant.padding
    assert padding is not None
    source = requantised(draft, draft.image(quant.inner), value.quantisation, target)
    made = draft.new_tensor(name, quant.shape, TensorLayout(quant.shape, NHWC), target)
    draft.add(Pad(node, [source], made.tensor, pads=padding.pads, value=target.stored(padding.amount) % 256))
    return made
