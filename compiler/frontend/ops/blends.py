"""Linear interpolation to a whole multiple of an image's size: each place in a multiple is a weighted mean of
neighbouring pixels, and pixels beyond the edge count as those at it.

The places of a row are channels side by side, ``(N, H, W, places * C)``: one depthwise convolution computes them all,
from an image that has its channels as often, and stores whole rows. Where a product of weights exceeds 8 bits, the
image has several copies of each pixel, next to each other, and the weight is split among them.
"""

import dataclasses
import functools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx

from compiler.frontend.draft import Draft, Pending
from compiler.frontend.ops import conv, interleave, repeats
from compiler.frontend.problems import Unsupported
from compiler.frontend.requantise import requantise
from compiler.frontend.values import Quant, Quantisation, Real
from compiler.ir import Blend, Requantisation

_LARGEST = 255  #: weight
_LARGEST_SUM = 512  #: of the weights along an axis
_MOST_COPIES = 8  #: of a pixel along an axis
_NEAR = 1e-4  #: to which the weights that onnxruntime gives are precise
_MANY_CHANNELS = 64  #: of a pixel, from which on it takes less time to store it alone than to copy channels


@dataclass(frozen=True)
class _Mix:
    """Neighbours of a pixel from ``first`` on, with these weights."""

    first: int
    weights: tuple[int, ...]

    @property
    def end(self) -> int:
        """Return the first neighbour behind them."""
        return self.first + len(self.weights)

    def weight(self, offset: int) -> int:
        """Return the weight of the neighbour ``offset`` pixels on."""
        return self.weights[offset - self.first] if self.first <= offset < self.end else 0


_ALONE = _Mix(0, (1,))


@dataclass(frozen=True)
class _Axis:
    """An axis on which each pixel comes ``copies`` times, and a window there that holds what any of ``mixes`` needs."""

    mixes: tuple[_Mix, ...]
    copies: int

    @functools.cached_property
    def window(self) -> dict[int, int]:
        """Return how many copies of each neighbour are in the window: all, and at the ends as many as weights need."""
        offsets = range(min(0, *(mix.first for mix in self.mixes)), max(1, *(mix.end for mix in self.mixes)))
        most = [max(mix.weight(offset) for mix in self.mixes) for offset in offsets]
        shares = [self.copies] * len(most)
        for end in (0, -1):
            shares[end] = -(-self.copies * most[end] // max(most))
        return dict(zip(offsets, shares, strict=True))

    def indices(self, extent: int) -> list[int]:
        """Return what the windows slide over, ``copies`` apart, as indices of the copies of ``extent`` pixels."""
        front, last = (sum(share for offset, share in self.window.items() if offset * sign > 0) for sign in (-1, 1))
        end = extent * self.copies
        return [0] * front + list(range(end)) + [end - 1] * last


@dataclass(frozen=True, kw_only=True)
class Blended(Pending):
    """Image ``x``, of which every pixel becomes ``rows`` by ``columns`` mixtures of its neighbours."""

    x: Real
    rows: _Axis
    columns: _Axis

    def emit(self, draft: Draft, target: Quantisation, name: str) -> Quant:
        """Return one ``ir.Blend`` for each mixture of rows, or of rows and columns."""
        channels, mixes = self.x.shape[1], self.columns.mixes
        together = len(mixes) if channels < _MANY_CHANNELS else 1
        source = self._side_by_side(draft, self._surrounded(draft), together)
        how = requantise(self.x.quantisation.scale, target, self.low, self.high)
        lines = [
            interleave.joined(draft, self.node, [
                self._mixed(draft, source, row, mixes[first : first + together], target, how)
                for first in range(0, len(mixes), together)
            ], -1)
            for row in self.rows.mixes
        ]  # fmt: skip
        return interleave.interleaved(draft, self.node, lines, len(mixes), target, name, self.base_shape)

    def _surrounded(self, draft: Draft) -> str:
        """Return the image with its pixels copied, and those at its edges once more around it."""
        quant, label = self.x.quant, f"{self.node}:copies"
        axes = {len(quant.shape) - 1: self.columns} | ({2: self.rows} if len(quant.shape) == 4 else {})
        factors = [axes[axis].copies if axis in axes else 1 for axis in range(len(quant.shape))]
        quant = repeats.repeated(draft, label, self.node, draft.dense(quant), factors)
        for axis, along in axes.items():
            quant = repeats.chosen(draft, label, self.node, quant, axis, along.indices(self.x.shape[axis]))
        return draft.image(quant)

    def _side_by_side(self, draft: Draft, source: str, times: int) -> str:
        """Return an image with its channels ``times`` one after the other: a convolution, as copies of few bytes take
        longer."""
        if times == 1:
            return source
        before, params = draft.graph.tensors[source], draft.quantisation(source)
        channels = before.shape[-1]
        made = interleave.inner(draft, f"{self.node}:wide", (*before.shape[:-1], times * channels), params)
        weights = np.tile(np.eye(channels, dtype=np.uint8), (times, 1))[:, None, None]
        keep = Requantisation(np.ones(1, np.float32), params.zero_point, *params.limits)
        draft.add(Blend(self.node, [source], made, weights, 0, np.zeros(times * channels, np.int32), keep))
        return made

    def _mixed(
        self, draft: Draft, source: str, row: _Mix, columns: tuple[_Mix, ...], target: Quantisation, how: Requantisation
    ) -> str:  # fmt: skip
        """Return what ``row`` by each of ``columns`` makes of all pixels."""
        channels = self.x.shape[1]
        kernels = np.stack([_kernel(self.rows, row, self.columns, column) for column in columns])
        weights = np.repeat(kernels, channels, axis=0)[..., None]
        totals = weights.sum(axis=(1, 2, 3), dtype=np.float32)
        shape = (self.x.shape[0], *self.x.shape[2:], len(weights))
        made = interleave.inner(draft, f"{self.node}:part", shape, target)
        draft.add(
            Blend(
                self.node, [source], made, weights, 0, np.zeros(len(weights), np.int32),
                dataclasses.replace(how, scale=how.scale / totals),
                strides=(self.rows.copies, self.columns.copies), groups=len(weights), nodes=[self.node],
            )
        )  # fmt: skip
        return made


def _kernel(rows: _Axis, row: _Mix, columns: _Axis, column: _Mix) -> npt.NDArray[np.uint8]:
    """Return the weights in a window: each product is split evenly among the copies of a pixel."""
    return np.block([
        [_split(row.weight(i) * column.weight(j), (down, across)) for j, across in columns.window.items()]
        for i, down in rows.window.items()
    ])  # fmt: skip


def _split(weight: int, shape: tuple[int, int]) -> npt.NDArray[np.uint8]:
    copies = math.prod(shape)
    return ((weight + np.arange(copies)) // copies).astype(np.uint8).reshape(shape)


def blended(node: onnx.NodeProto, x: Real, matrices: dict[int, npt.NDArray[np.float32]]) -> Blended:
    """Return the pending image that ``matrices`` make of ``x``, one for each axis that changes."""
    conv.image_size(x, f"linear interpolation of a tensor of rank {len(x.shape)}; the accelerator has images")
    if any(axis < 2 for axis in matrices):
        raise Unsupported("linear interpolation between images or channels; transpose around it")
    found = {axis: _mixtures(matrix) for axis, matrix in matrices.items()}
    shape = tuple(size * len(found.get(axis, (_ALONE,))) for axis, size in enumerate(x.shape))
    rows = found.get(2, (_ALONE,)) if len(x.shape) == 4 else (_ALONE,)
    columns = found.get(len(x.shape) - 1, (_ALONE,))
    down, across = _copies(rows, columns)
    return Blended(
        shape=shape, node=node.name, roots=(x.quant.tensor,), x=x, rows=_Axis(rows, down),
        columns=_Axis(columns, across),
    )  # fmt: skip


def _copies(rows: tuple[_Mix, ...], columns: tuple[_Mix, ...]) -> tuple[int, int]:
    """Return how many copies of a row and of a column keep all weights within 8 bits; Unsupported if too many."""
    down, across = (max(max(mix.weights) for mix in mixes) for mixes in (rows, columns))
    fewest = -(-down * across // _LARGEST)
    if min(down, across) == 1:  # along one axis only
        return (fewest, 1) if across == 1 else (1, fewest)
    copies = 1 + math.isqrt(fewest - 1)
    if copies > _MOST_COPIES:
        raise Unsupported(
            f"factors {len(rows)} by {len(columns)} need weights up to {down * across}; the accelerator has "
            f"{_MOST_COPIES**2 * _LARGEST}: resize in two steps, with a quantisation between them"
        )
    return copies, copies


def _mixtures(matrix: npt.NDArray[np.float32]) -> tuple[_Mix, ...]:
    """Return the mixtures that ``matrix`` (pixels before, pixels behind) makes of each pixel; Unsupported if they
    differ from pixel to pixel by more than what an edge does."""
    before, behind = matrix.shape
    if behind % before == 0:
        found = [_mixture(matrix[:, place :: behind // before]) for place in range(behind // before)]
        if all(found):
            return tuple(mix for mix in found if mix)
    raise Unsupported(
        f"linear interpolation of {before} to {behind} pixels; the accelerator interpolates to whole multiples, with "
        "the same weights for all pixels: not where corners are aligned"
    )


def _mixture(matrix: npt.NDArray[np.float32]) -> _Mix | None:
    """Return the mixture that column q of ``matrix`` is of what surrounds pixel q; None if it is none."""
    extent, used = len(matrix), matrix > _NEAR
    full = int(used.sum(axis=0).argmax())  # a pixel at which no edge is near
    inside = np.flatnonzero(used[:, full])
    first, weights = int(inside[0]) - full, matrix[inside[0] : inside[-1] + 1, full].astype(np.float64)
    whole = next(
        (n for n in range(1, _LARGEST_SUM + 1) if np.abs(weights * n - np.rint(weights * n)).max() < 4 * _NEAR), 0
    )
    steps = np.rint(weights * whole).astype(int)
    if not whole or steps.min() < 1:
        return None
    wanted = np.zeros(matrix.shape)
    for q in range(extent):
        for place, weight in enumerate(steps.tolist(), start=q + first):
            if 0 <= place < extent:
                wanted[place, q] = weight
    wanted /= np.maximum(wanted.sum(axis=0), 1)
    return _Mix(first, tuple(steps.tolist())) if np.abs(wanted - matrix).max() < 2 * _NEAR else None
