"""Elements that come several times along an axis, and any choice of indices: copies, without arithmetic."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from compiler.frontend.draft import Draft
from compiler.frontend.ops.move import own_axes
from compiler.frontend.problems import Unsupported
from compiler.frontend.values import Quant, TensorLayout
from compiler.ir import Concat, Repeat, Slice

MOST_PARTS = 64  #: slices that one axis is put together from
_LARGEST_FACTOR = 16


@dataclass(frozen=True)
class _Progression:
    """Indices ``(first + step * i) // factor`` for i from 0 to ``count``: those of an axis on which each comes
    ``factor`` times, ``step`` apart."""

    factor: int
    first: int
    step: int
    count: int

    @property
    def indices(self) -> list[int]:
        """Return all of them."""
        return [(self.first + self.step * i) // self.factor for i in range(self.count)]


def repeated(draft: Draft, label: str, node: str, quant: Quant, factors: Sequence[int]) -> Quant:
    """Return ``quant`` with each index of ONNX axis i ``factors[i]`` times, called after ``label``."""
    if all(factor == 1 for factor in factors):
        return quant
    quant = aligned(draft, quant)
    shape = tuple(size * factor for size, factor in zip(quant.shape, factors, strict=True))
    layout = TensorLayout(shape, quant.layout.perm)
    made = draft.new_inner(label, layout, draft.quantisation(quant.tensor))
    draft.add(Repeat(node, [quant.tensor], made.tensor, factors=tuple(factors[axis] for axis in layout.perm)))
    return made


def chosen(draft: Draft, label: str, node: str, quant: Quant, axis: int, indices: Sequence[int]) -> Quant:
    """Return the ``indices`` of ONNX ``axis`` of ``quant``: a slice, or one of repeated indices, or several slices one
    after the other. Raises :class:`Unsupported` where those are too many."""
    if list(indices) == list(range(quant.shape[axis])):
        return quant
    quant = aligned(draft, quant)
    whole, parts = _progression(quant.shape[axis], indices), _parts(indices)
    if whole and whole.factor <= len(parts):  # fewer slices move less
        parts = [whole]
    if len(parts) > MOST_PARTS:
        raise Unsupported(
            f"{len(indices)} indices in {len(parts)} stretches along axis {axis}; the accelerator takes {MOST_PARTS} "
            "at most: choose indices in order"
        )
    made = [_taken(draft, label, node, quant, axis, part) for part in parts]
    if len(made) == 1:
        return made[0]
    layout = _layout(quant, axis, len(indices))
    joined = draft.new_inner(label, layout, draft.quantisation(quant.tensor))
    axis = layout.perm.index(axis)
    draft.add(Concat(node, [part.tensor for part in made], joined.tensor, axis=axis))
    return joined


def _progression(extent: int, indices: Sequence[int]) -> _Progression | None:
    """Return the progression that ``indices`` of an axis of ``extent`` are, with the fewest repetitions; None if they
    are none."""
    first, count = indices[0], len(indices)
    whole = _Progression(max(1, count // extent), 0, 1, count)
    if count % extent == 0 and whole.indices == list(indices):
        return whole
    for factor in range(1, _LARGEST_FACTOR + 1):
        step = round((indices[-1] - first) * factor / max(count - 1, 1))
        for steps, offset in itertools.product(range(max(step - 1, 1), step + 2), range(factor)):
            found = _Progression(factor, first * factor + offset, steps, count)
            if found.indices == list(indices):
                return found
    return None


def _parts(indices: Sequence[int]) -> list[_Progression]:
    """Return ``indices`` as stretches that step forwards evenly."""
    parts, begin = list[_Progression](), 0
    while begin < len(indices):
        end = begin + 1
        step = indices[end] - indices[begin] if end < len(indices) else 1
        while step > 0 and end < len(indices) and indices[end] - indices[end - 1] == step:
            end += 1
        parts.append(_Progression(1, indices[begin], max(step, 1), end - begin))
        begin = end
    return parts


def _taken(draft: Draft, label: str, node: str, quant: Quant, axis: int, part: _Progression) -> Quant:
    """Return the indices of one progression along ``axis``."""
    quant = repeated(draft, label, node, quant, [part.factor if i == axis else 1 for i in range(len(quant.shape))])
    if part.count == quant.shape[axis]:
        return quant
    layout = _layout(quant, axis, part.count)
    made = draft.new_inner(label, layout, draft.quantisation(quant.tensor))
    place = layout.perm.index(axis)
    draft.add(Slice(node, [quant.tensor], made.tensor, axis=place, first=part.first, step=part.step))
    return made


def _layout(quant: Quant, axis: int, count: int) -> TensorLayout:
    return TensorLayout((*quant.shape[:axis], count, *quant.shape[axis + 1 :]), quant.layout.perm)


def aligned(draft: Draft, quant: Quant) -> Quant:
    """Return ``quant`` in memory in some order of its own axes."""
    quant = draft.dense(quant)
    layout = own_axes(quant) or TensorLayout.default(quant.shape)
    return Quant(draft.relayout(quant, layout), quant.shape, layout, quant.dtype)
