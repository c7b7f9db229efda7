"""Linear interpolation to a whole multiple of an image's size: each place in a multiple is a weighted mean of
neighbouring pixels, and pixels beyond the edge count as those at it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx

from compiler.frontend.draft import Draft, Pending
from compiler.frontend.ops import conv, interleave
from compiler.frontend.problems import Unsupported
from compiler.frontend.requantise import requantise
from compiler.frontend.values import Quant, Quantisation, Real
from compiler.ir import Blend

_LARGEST = 255  #: weight
_NEAR = 1e-4  #: to which the weights that onnxruntime gives are precise


@dataclass(frozen=True)
class _Mix:
    """Neighbours of a pixel from ``first`` on, with these weights."""

    first: int
    weights: tuple[int, ...]

    @property
    def pads(self) -> tuple[int, int]:
        """Return what a window at every pixel sees in front of an axis and behind it."""
        return max(0, -self.first), max(0, self.first + len(self.weights) - 1)


_ALONE = _Mix(0, (1,))


@dataclass(frozen=True, kw_only=True)
class Blended(Pending):
    """Image ``x``, of which every pixel becomes ``rows`` by ``columns`` mixtures of its neighbours."""

    x: Real
    rows: tuple[_Mix, ...]
    columns: tuple[_Mix, ...]

    def emit(self, draft: Draft, target: Quantisation, name: str) -> Quant:
        """Return one ``ir.Blend`` for each mixture."""
        source, shape = draft.image(self.x.quant), self.base_shape
        before = draft.graph.tensors[source]
        how = requantise(self.x.quantisation.scale, target, self.low, self.high)
        lines = []
        for row in self.rows:
            parts = []
            for column in self.columns:
                made = interleave.inner(draft, f"{self.node}:part", before.shape, target)
                (top, bottom), (left, right) = (mix.pads for mix in (row, column))
                draft.add(
                    Blend(
                        self.node, [source], made, nodes=[self.node], rows=row.weights, columns=column.weights,
                        pads=(top, left, bottom, right), requantise=how,
                    )
                )  # fmt: skip
                parts.append(made)
            lines.append(interleave.joined(draft, self.node, parts, -1))
        return interleave.interleaved(draft, self.node, lines, len(self.columns), target, name, shape)


def blended(node: onnx.NodeProto, x: Real, matrices: dict[int, npt.NDArray[np.float32]]) -> Blended:
    """Return the pending image that ``matrices`` make of ``x``, one for each axis that changes."""
    conv.image_size(x, f"linear interpolation of a tensor of rank {len(x.shape)}; the accelerator has images")
    if any(axis < 2 for axis in matrices):
        raise Unsupported("linear interpolation between images or channels; transpose around it")
    found = {axis: _mixtures(matrix) for axis, matrix in matrices.items()}
    rows = found.get(2, (_ALONE,)) if len(x.shape) == 4 else (_ALONE,)
    columns = found.get(len(x.shape) - 1, (_ALONE,))
    largest = max(max(mix.weights) for mix in rows) * max(max(mix.weights) for mix in columns)
    if largest > _LARGEST:
        raise Unsupported(
            f"factors {len(rows)} by {len(columns)} need weights up to {largest}; the accelerator has {_LARGEST}: "
            "resize in two steps, with a quantisation between them"
        )
    shape = tuple(size * len(found.get(axis, (_ALONE,))) for axis, size in enumerate(x.shape))
    return Blended(shape=shape, node=node.name, roots=(x.quant.tensor,), x=x, rows=rows, columns=columns)


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
    whole = next((n for n in range(1, _LARGEST + 1) if np.abs(weights * n - np.rint(weights * n)).max() < 4 * _NEAR), 0)
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
