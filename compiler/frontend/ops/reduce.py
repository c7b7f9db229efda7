"""Maxima, minima, means and sums over axes: pools over an image whose height and width are the axes that go."""

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx

from compiler.frontend.draft import Draft, Pending, Value, attributes, operator
from compiler.frontend.ops import move, pointwise, quantise, written_norm
from compiler.frontend.problems import Unsupported
from compiler.frontend.requantise import requantise
from compiler.frontend.values import Quant, Quantisation, Real, TensorLayout
from compiler.ir import Pool, Requantisation, Tensor

Pair = tuple[int, int]

_LONGEST = 255  #: of a window of the vector unit
_LARGEST_SUM = 1 << 14  #: elements

_KINDS = {"ReduceMax": "max", "ReduceMin": "min", "ReduceMean": "avg", "ReduceSum": "sum"}


@dataclass(frozen=True, kw_only=True)
class Reduced(Pending):
    """All of an image ``x`` (N, C, H, W) or (N, C, L) in one pixel."""

    kind: str
    x: Real

    def emit(self, draft: Draft, target: Quantisation, name: str) -> Quant:
        """Return one ``ir.Pool``; several, each of the one before, where its window would be too long for a maximum."""
        source, params, shape = draft.image(self.x.quant), self.x.quantisation, self.base_shape
        *first, last = self._windows(source, draft)
        for number, window in enumerate(first):
            source = self._part(draft, f"{name}:{number}", source, window)
        made = draft.new_tensor(name, shape, TensorLayout.image(shape), target)
        how = requantise(params.scale, target, self.low, self.high)
        if self.kind in ("max", "min") and params != target and params.dtype == target.dtype:
            table = pointwise.requantisation_table(params, target).view(target.dtype)  # as QuantizeLinear rounds
            table = np.clip(table, *target.clamp(self.low, self.high)).astype(target.dtype).view(np.uint8)
            how = Requantisation(np.ones(1, np.float32), params.zero_point, *params.limits, table)
        self._add(draft, source, made.tensor, last, (0, 0), how)
        return made

    def _windows(self, source: str, draft: Draft) -> Iterator[Pair]:
        """Yield the windows, whose strides are their own size, that lead from the image to one pixel."""
        _, height, width, _ = draft.graph.tensors[source].nhwc
        while self.kind in ("max", "min") and max(height, width) > _LONGEST:
            window = tuple(1 if size == 1 else min(_LONGEST, math.ceil(math.sqrt(size))) for size in (height, width))
            yield window[0], window[1]
            height, width = math.ceil(height / window[0]), math.ceil(width / window[1])
        yield height, width

    def _part(self, draft: Draft, name: str, source: str, window: Pair) -> str:
        """Return the maxima or minima of windows of ``source``, stored as it is; the last ones may reach beyond it."""
        x = draft.graph.tensors[source]
        n, height, width, channels = x.nhwc
        size = tuple(math.ceil(extent / step) for extent, step in zip((height, width), window, strict=True))
        made = Tensor(draft.unique(name), (n, *size, channels), x.dtype, x.scale, x.zero_point)
        draft.graph.tensors[made.name] = made
        params = draft.quantisation(source)
        keep = requantise(params.scale, params, -np.inf, np.inf)
        beyond = (size[0] * window[0] - height, size[1] * window[1] - width)
        self._add(draft, source, made.name, window, beyond, keep)
        return made.name

    def _add(
        self, draft: Draft, source: str, made: str, window: Pair, beyond: Pair, how: Requantisation
    ) -> None:  # fmt: skip
        pads = (0, 0, *beyond)
        draft.add(
            Pool(self.node, [source], made, kind_=self.kind, kernel=window, strides=window, pads=pads, requantise=how)
        )


@operator(*_KINDS)
def reduce(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return what a tensor has over some of its axes; a mean may begin a layer normalisation that is written out."""
    value, kind = draft.value(node.input[0]), _KINDS[node.op_type]
    if isinstance(value, Quant) and kind in ("max", "min"):
        params = draft.quantisation(value.tensor)
        found = over_axes(draft, node, Real(value, params, node.input[0]), kind)
        return [found.quant if isinstance(found, Real) else quantise.quantised(draft, found, params, node)]
    inner = written_norm.begun_with_squares(draft, node, value) if kind == "avg" else None
    if inner is not None:
        return [inner]
    x = draft.real(node.input[0])
    inner = written_norm.begun(draft, node, x) if kind == "avg" else None
    return [inner or over_axes(draft, node, x, kind)]


def _window(count: int) -> Pair:
    """Return height and width of a window of ``count`` elements, as nearly square as there is one."""
    height = next(size for size in range(math.isqrt(count), 0, -1) if count % size == 0)
    return height, count // height


def over_axes(draft: Draft, node: onnx.NodeProto, x: Real, kind: str) -> Real | Pending:
    """Return what ``x`` has over the axes that ``node`` names; itself, in another shape, if those have one element."""
    given, rank = attributes(node), len(x.shape)
    axes = written_norm.reduced_axes(draft, node, rank)
    if not axes and not given.get("noop_with_empty_axes", 0):
        axes = list(range(rank))
    kept = [axis for axis in range(rank) if axis not in axes]
    shape = tuple(1 if axis in axes else x.shape[axis] for axis in range(rank))
    if not given.get("keepdims", 1):
        shape = tuple(x.shape[axis] for axis in kept)
    if shape == x.shape or all(x.shape[axis] == 1 for axis in axes):
        return dataclasses.replace(x, quant=move.reshape_all(draft, x.quant, (("reshape", shape),)))
    images = x.shape[0] if kept[:1] == [0] and len(kept) > 1 else 1
    channels = math.prod(x.shape[axis] for axis in kept) // images
    sizes = tuple(x.shape[axis] for axis in axes)
    if len(sizes) > 2 or max(sizes) > _LONGEST:
        sizes = _window(math.prod(sizes))
    if kind in ("avg", "sum") and (max(sizes) > _LONGEST or math.prod(sizes) > _LARGEST_SUM):
        raise Unsupported(
            f"it adds {math.prod(sizes)} elements; the accelerator adds {_LARGEST_SUM} at most, in windows of at most "
            f"{_LONGEST} by {_LONGEST}"
        )
    steps = (("transpose", (*kept, *axes)), ("reshape", (images, channels, *sizes)))
    x = dataclasses.replace(x, quant=move.reshape_all(draft, x.quant, steps))
    pixel = (images, channels, *(1,) * len(sizes))
    found = Reduced(shape=pixel, node=node.name, roots=(x.quant.tensor,), kind=kind, x=x)
    return dataclasses.replace(found, shape=shape, reshapes=(("reshape", shape),))
