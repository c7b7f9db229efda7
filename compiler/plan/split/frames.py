"""A run of operators becomes several, each on some of the frames, if it keeps frames apart.

Frames are equal slices of a tensor along its outermost axis: all it holds of the first frame comes first, then all of
the second. An operator keeps them apart if a frame of its result takes the same frame of each operand and nothing else.
So part after part can compute some frames of all that a run makes, whatever its tensors look like: images, matrices of
all frames one below the other, or a matrix for each head of each frame.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from compiler import ir
from compiler.plan.layers.origin import even_pieces

_Rule = Callable[[Any, Sequence[ir.Tensor], ir.Tensor], int]


def outermost(shape: Sequence[int]) -> tuple[int, int]:
    """Return the first axis of more than one element and its extent; an extent of 1 if there is none but the last,
    which no operator is cut along."""
    axis = next((number for number, extent in enumerate(shape[:-1]) if extent > 1), 0)
    return axis, shape[axis] if len(shape) > 1 else 1


def frames_apart(graph: ir.Graph, ops: Iterable[ir.Operation]) -> int:
    """Return into how many frames at most all tensors of ``ops`` can be cut, which each of them keeps apart; 1 if there
    are none."""
    return math.gcd(*(_frames(graph, op) for op in ops))


def _frames(graph: ir.Graph, op: ir.Operation) -> int:
    rule = next((_RULES[kind] for kind in type(op).__mro__ if kind in _RULES), None)
    if rule is None:
        return 1
    inputs, output = [graph.tensors[name] for name in op.inputs], graph.tensors[op.output]
    if not isinstance(op, ir.Eltwise | ir.Concat) and any(one.data is not None for one in inputs):
        return 1
    extents = [outermost(one.shape)[1] for one in (*inputs, output) if not _is_for_all(one)]
    return math.gcd(rule(op, inputs, output), *extents)


def _is_for_all(tensor: ir.Tensor) -> bool:
    """Return whether ``tensor`` is a constant that is the same for each pixel of each frame."""
    return tensor.data is not None and tensor.nhwc[:3] == (1, 1, 1)


def _of_any_rows(op: ir.Operation, inputs: Sequence[ir.Tensor], output: ir.Tensor) -> int:
    """Any rows of pixels stand for themselves, or all bytes stay where they are. An operand that is one pixel for all
    of an image, or a number for all rows, has an outermost axis that says so."""
    return 0


def _of_images(op: ir.Operation, inputs: Sequence[ir.Tensor], output: ir.Tensor) -> int:
    return output.nhwc[0]


def _of_convolution(op: ir.Conv, inputs: Sequence[ir.Tensor], output: ir.Tensor) -> int:
    pointwise = op.weights.shape[1:3] == (1, 1) and op.strides == (1, 1) and not any(op.pads)
    return 0 if pointwise else output.nhwc[0]


def _of_permutation(op: ir.Permute, inputs: Sequence[ir.Tensor], output: ir.Tensor) -> int:
    """The outermost axis stays the outermost."""
    before, after = outermost(inputs[0].shape)[0], outermost(output.shape)[0]
    return 0 if op.perm[after] == before else 1


def _behind_frames(op: ir.Concat | ir.Slice, inputs: Sequence[ir.Tensor], output: ir.Tensor) -> int:
    """It joins or takes along an axis within frames."""
    axes = [outermost(one.shape)[0] for one in (*inputs, output)]
    return 0 if max(axes) == min(axes) < op.axis % len(output.shape) else 1


def _of_repetition(op: ir.Repeat, inputs: Sequence[ir.Tensor], output: ir.Tensor) -> int:
    """Nothing is repeated around the frames."""
    return 0 if math.prod(op.factors[: outermost(inputs[0].shape)[0]]) == 1 else 1


def _of_product(op: ir.Product, inputs: Sequence[ir.Tensor], output: ir.Tensor) -> int:
    """The matrices of an image's heads stay together, unless no operand has them side by side."""
    if op.of:
        return 1
    return output.shape[0] // (1 if op.joined[2] or not any(op.joined) else op.heads)


#: By type of operator, with those that are derived from it, into how many frames it allows its tensors to be cut, by
#: itself: 0 if all that matters is the extents of their outermost axes. Others are in no cut.
_RULES: dict[type[ir.Operation], _Rule] = {
    ir.Conv: _of_convolution, ir.Pool: _of_images, ir.Pad: _of_images, ir.Shuffle: _of_images, ir.Eltwise: _of_any_rows,
    ir.Table: _of_any_rows, ir.Slope: _of_any_rows, ir.LayerNorm: _of_any_rows, ir.RmsNorm: _of_any_rows,
    ir.Reshape: _of_any_rows, ir.Softmax: _of_any_rows, ir.Permute: _of_permutation, ir.Concat: _behind_frames,
    ir.Slice: _behind_frames, ir.Repeat: _of_repetition, ir.Product: _of_product,
}  # fmt: skip


def without_first_reshapes(run: Sequence[ir.Operation]) -> list[ir.Operation]:
    """Return ``run`` without reshapes of what comes from outside of it: they need not be cut, and slices of what they
    make are read in place."""
    inner, kept = set[str](), list[ir.Operation]()
    for op in run:
        if not isinstance(op, ir.Reshape) or op.inputs[0] in inner:
            inner.add(op.output)
            kept.append(op)
    return kept


def frame_parts(
    graph: ir.Graph, run: Sequence[ir.Operation], frames: int, pieces: int
) -> tuple[list[ir.Operation], list[str]]:  # fmt: skip
    """Return ``run`` in ``pieces`` of the ``frames`` that its operators keep apart, whose tensors are added to
    ``graph``, and what each part of the last operator makes."""
    made, parts = list[ir.Operation](), list[str]()
    for number, bounds in enumerate(even_pieces(frames, pieces)):
        part = _Part(graph, f"/part{number}", frames, bounds)
        for op in run:
            part.add(op)
        made += part.ops
        parts.append(part.ops[-1].output)
    return made, parts


class _Part:
    """Some of the frames: its ``ops``, whose tensors are added to ``graph``."""

    def __init__(self, graph: ir.Graph, suffix: str, frames: int, bounds: tuple[int, int]) -> None:
        self._graph, self._suffix, self._frames, self._bounds = graph, suffix, frames, bounds
        self.ops: list[ir.Operation] = []
        self._names: dict[str, str] = {}

    def add(self, op: ir.Operation) -> None:
        """Add ``op``, whose operands are those of the part."""
        inputs = [self._operand(name) for name in op.inputs]
        output = self._tensor(op.output, f"{op.output}{self._suffix}")
        part = replace(op, name=f"{op.name}{self._suffix}", inputs=inputs, output=output)
        matrices = self._graph.tensors[output].shape[0]
        if isinstance(part, ir.Product) and not any(part.joined) and matrices % part.heads:
            part = replace(part, heads=matrices)  # some of an image's, each of which stands for itself
        self.ops.append(part)

    def _operand(self, name: str) -> str:
        """Return the name of the part of a tensor: what the part made, a slice, or a constant."""
        tensor = self._graph.tensors[name]
        if name in self._names or _is_for_all(tensor):
            return self._names.get(name, name)
        if tensor.data is not None:
            return self._constant(tensor)
        axis, first, _ = self._stretch(tensor)
        new = f"{name}/{self._bounds[0]}to{self._bounds[1]}{self._suffix}"
        while new in self._graph.tensors:  # another cut reads the same frames
            new += "/again"
        self._tensor(name, new)
        self.ops.append(ir.Slice(new, [name], new, axis=axis, first=first))
        return new

    def _constant(self, tensor: ir.Tensor) -> str:
        """Return a constant with the frames of the part; parts of as many that have the same share it."""
        assert tensor.data is not None
        axis, first, end = self._stretch(tensor)
        rows = tensor.data.reshape(tensor.shape[axis], -1)
        frames = rows.reshape(self._frames, -1)
        if (frames == frames[:1]).all():
            first, end = 0, end - first
        name, shape = f"{tensor.name}/{first}to{end}", (*tensor.shape[:axis], end - first, *tensor.shape[axis + 1 :])
        data = rows[first:end].reshape(shape).copy()
        self._graph.tensors[name] = replace(
            tensor, name=name, shape=shape, data=data, onnx_name="", view=(), perm=()
        )  # fmt: skip
        return name

    def _tensor(self, name: str, new: str) -> str:
        """Add the tensor ``new`` for the part of ``name``, and return its name."""
        whole = self._graph.tensors[name]
        axis, first, end = self._stretch(whole)
        shape = (*whole.shape[:axis], end - first, *whole.shape[axis + 1 :])
        self._graph.tensors[new] = replace(whole, name=new, shape=shape, onnx_name="", view=(), perm=())
        self._names[name] = new
        return new

    def _stretch(self, tensor: ir.Tensor) -> tuple[int, int, int]:
        """Return the outermost axis of a tensor, and first and end of the part along it."""
        axis, extent = outermost(tensor.shape)
        return axis, *(bound * extent // self._frames for bound in self._bounds)  # type: ignore[return-value]
