"""ConvTranspose: with strides (sh, sw) it is sh * sw convolutions, whose results are every sh-th row and every sw-th
column of the image."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx

from compiler.frontend.draft import Draft, Value, attributes, operator
from compiler.frontend.ops import conv, interleave
from compiler.frontend.problems import Unsupported
from compiler.frontend.requantise import requantise
from compiler.frontend.values import Quant, Quantisation, Shape
from compiler.ir import Conv

_SIDE_BY_SIDE = 32  #: channels of neighbouring columns that one convolution makes whatever zero taps that takes
_MOST_PHASES = 1 << 12  #: places in a stride, of rows times columns
_TAPS = 1.25  #: by how much more of the array than without them is worth it with more channels


@dataclass(frozen=True)
class _Phase:
    """The indices ``r``, ``r + s``, ... of an axis behind a stride ``s``. Number i of them is the sum over ``taps``
    (offset, index in the kernel) of what the tap has times what the input has at i + offset."""

    taps: tuple[tuple[int, int], ...]

    @property
    def reach(self) -> tuple[int, int]:
        """Return the first and the last offset; 0 and 0 where no tap reaches."""
        offsets = [offset for offset, _ in self.taps] or [0]
        return min(offsets), max(offsets)


def phases(kernel: int, stride: int, pad: int, dilation: int) -> list[_Phase]:
    """Return what each of ``stride`` neighbouring indices sees of the input, behind ``pad`` that is cut off in
    front."""
    return [
        _Phase(tuple(
            ((place + pad - tap * dilation) // stride, tap)
            for tap in range(kernel) if (place + pad - tap * dilation) % stride == 0
        ))
        for place in range(stride)
    ]  # fmt: skip


@dataclass(frozen=True)
class _Span:
    """The offsets ``first`` to ``last`` that a convolution of ``size`` inputs sees, and zeros around the input."""

    first: int
    last: int
    before: int
    behind: int

    @classmethod
    def of(cls, seen: Sequence[_Phase], size: int, count: int) -> "_Span":
        """Return the span that ``count`` results of the phases ``seen`` have in common. It begins at the input's first
        element or in front of it, and ends behind its last: what is too much has taps of zero."""
        first = min(0, *(phase.reach[0] for phase in seen))
        last = max(size - count, *(phase.reach[1] for phase in seen))
        return cls(first, last, -first, count - 1 + last - (size - 1))

    @property
    def length(self) -> int:
        """Return how many offsets that are."""
        return self.last - self.first + 1


@dataclass(frozen=True, kw_only=True)
class Transposed(conv.Accumulated):
    """A transposed convolution: ``weights`` are (O, kh, kw, I / groups), ``window`` is that of its attributes."""

    def emit(self, draft: Draft, target: Quantisation, name: str) -> Quant:
        """Return one ``ir.Conv`` for the columns of each row in turn, or one for each column too."""
        x, window, shape = self.x, self.window, self.base_shape
        if x.padding and x.padding.value != draft.quantisation(x.tensor).zero_point % 256:
            x = draft.dense(x)
        padding = x.padding.pads if x.padding else (0, 0, 0, 0)
        x = x.inner
        source = draft.image(x)
        _, height, width, _ = draft.graph.tensors[source].nhwc
        (sh, sw), (top, left) = window.strides, window.pads[:2]
        size = (1, *shape[2:]) if len(shape) == 3 else shape[2:]
        # What surrounds the input moves the result: offsets count from the input as it is in memory.
        kernels = [
            _shifted(phases(window.kernel[axis], step, pad, window.dilations[axis]), before)
            for axis, step, pad, before in ((0, sh, top, padding[0]), (1, sw, left, padding[1]))
        ]
        counts = -(-size[0] // sh), -(-size[1] // sw)
        rows = []
        for row in kernels[0]:
            down = _Span.of([row], height, counts[0])
            groups = [kernels[1]] if self._side_by_side(kernels[1], width, counts[1]) else [[one] for one in kernels[1]]
            made = []
            for columns in groups:
                across = _Span.of(columns, width, counts[1])
                data = np.concatenate([self._part(row, down, column, across) for column in columns])
                made.append(self._convolution(draft, source, target, data, (down, across), counts))
            rows.append(interleave.joined(draft, self.node, made, -1))
        return interleave.interleaved(draft, self.node, rows, sw, target, name, shape)

    def _side_by_side(self, columns: list[_Phase], width: int, count: int) -> bool:
        """Return whether one convolution makes all columns, each with its own channels: it sees what any of them
        sees."""
        if self.groups > 1:
            return False
        alone = sum(_Span.of([column], width, count).length for column in columns)
        together = _Span.of(columns, width, count).length * len(columns)
        return self.channels * len(columns) <= _SIDE_BY_SIDE or together <= _TAPS * alone

    def _part(self, row: _Phase, down: _Span, column: _Phase, across: _Span) -> npt.NDArray:
        """Return the weights of one row and one column in turn, in the spans of a convolution."""
        outs, _, _, depth = self.weights.shape
        found = np.full((outs, down.length, across.length, depth), self.weight_zero_point, self.weights.dtype)
        for y, i in row.taps:
            for x, j in column.taps:
                found[:, y - down.first, x - across.first] = self.weights[:, i, j]
        return found

    def _convolution(
        self, draft: Draft, source: str, target: Quantisation, weights: npt.NDArray, spans: tuple[_Span, _Span],
        counts: tuple[int, int],
    ) -> str:  # fmt: skip
        """Return the IR tensor that a convolution of ``source`` makes."""
        down, across = spans
        times, before = len(weights) // self.channels, draft.graph.tensors[source]
        size = (before.nhwc[0], *counts) if len(before.shape) == 4 else (before.nhwc[0], counts[1])
        made = interleave.inner(draft, f"{self.node}:part", (*size, len(weights)), target)
        how = requantise(self.scale, target, self.low, self.high)
        if how.scale.size > 1:
            how = dataclasses.replace(how, scale=np.tile(how.scale, times))
        draft.add(
            Conv(
                self.node, [source], made, nodes=[self.node], weights=np.ascontiguousarray(weights),
                weight_zero_point=self.weight_zero_point, bias=np.tile(self.integer_bias, times), requantise=how,
                pads=(down.before, across.before, down.behind, across.behind), groups=self.groups,
            )
        )  # fmt: skip
        return made


def _shifted(found: list[_Phase], before: int) -> list[_Phase]:
    return [_Phase(tuple((offset - before, tap) for offset, tap in phase.taps)) for phase in found]


@operator("ConvTranspose")
def conv_transpose(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """ConvTranspose of a dequantised image with dequantised constant weights (I, O / groups, kh, kw)."""
    x, weights = draft.real(node.input[0]), conv.weights_of(draft, node.input[1])
    size = conv.image_size(
        x, f"{len(x.shape) - 2}-dimensional transposed convolution; the accelerator has one and two dimensions"
    )
    given, line = attributes(node), len(x.shape) == 3
    groups = given.get("group", 1)
    data = weights.data[:, :, None, :] if line else weights.data
    inputs, outs, *kernel = data.shape
    if x.shape[1] != inputs or inputs % groups:
        raise Unsupported(f"{x.shape[1]} input channels do not fit weights {weights.shape} in {groups} groups")
    scale = conv.channel_scale(weights, 1)
    if scale.size > 1:
        scale = np.tile(scale, groups)
    window, shape = _window(node, (kernel[0], kernel[1]), size, line)
    # (groups, I / groups, O / groups, kh, kw) to (groups, O / groups, kh, kw, I / groups)
    ordered = data.reshape(groups, inputs // groups, outs, *kernel).transpose(0, 2, 3, 4, 1)
    bias = draft.constant(node, 2, "bias")
    full: Shape = (x.shape[0], groups * outs, *(shape[1:] if line else shape))
    return [Transposed(
        shape=full, node=node.name, roots=(x.quant.tensor,), x=x.quant, matrix=False,
        weights=ordered.reshape(groups * outs, *kernel, inputs // groups),
        weight_zero_point=conv.single_zero_point(weights),
        scale=(np.float32(x.quantisation.scale) * scale).astype(np.float32), bias=conv.NO_BIAS[0],
        real_bias=conv.NO_BIAS[1] if bias is None else bias.reshape(-1).astype(np.float64), window=window,
        groups=groups,
    )]  # fmt: skip


def _window(
    node: onnx.NodeProto, kernel: tuple[int, int], size: tuple[int, int], line: bool
) -> tuple[conv.Window, tuple[int, int]]:
    """Return the window of a node on images of ``size``, whose pads are cut off the result, and the size of that."""
    given, rank = attributes(node), 1 if line else 2
    lead = [1] * (2 - rank)  # a line is an image of one row
    strides, dilations = ([*lead, *given.get(name, [1] * rank)] for name in ("strides", "dilations"))
    more = [*(0 for _ in lead), *given.get("output_padding", [0] * rank)]
    wanted, auto = given.get("output_shape"), given.get("auto_pad", "NOTSET")
    ends = list(given.get("pads", [0] * 2 * rank))
    pads = [*(0 for _ in lead), *ends[:rank], *(0 for _ in lead), *ends[rank:]]
    found = []
    for axis in range(2):
        whole = strides[axis] * (size[axis] - 1) + more[axis] + (kernel[axis] - 1) * dilations[axis] + 1
        if auto == "VALID":
            pads[axis], pads[axis + 2] = 0, 0
        elif (wanted or auto.startswith("SAME")) and axis >= 2 - rank:
            extent = [*lead, *wanted[-rank:]][axis] if wanted else size[axis] * strides[axis]
            cut = max(0, whole - extent)
            less, rest = cut // 2, cut - cut // 2
            pads[axis], pads[axis + 2] = (less, rest) if auto == "SAME_UPPER" else (rest, less)
            whole = extent + cut
        found.append(whole - pads[axis] - pads[axis + 2])
    if strides[0] * strides[1] > _MOST_PHASES:
        raise Unsupported(f"strides {strides[-rank:]}; the accelerator takes {_MOST_PHASES} places in a stride at most")
    if min(found) < 1 or min(pads) < 0:
        raise Unsupported(f"its pads {pads} leave {found} of an image")
    window = conv.Window(kernel, (strides[0], strides[1]), (pads[0], pads[1], pads[2], pads[3]), tuple(dilations))
    return window, (found[0], found[1])
