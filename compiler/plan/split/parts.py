"""A run of operators becomes several on parts of an image, or on some of the frames, one part after the other.

Frames are cut by ``frames.py`` and channels by ``channels.py``; what follows is about parts of an image.

Every part computes what its share of the last result needs of each tensor, rows under the edges of kernels included:
two neighbours both compute those. So a part is done with when it ends, and of the inner tensors no more is on chip than
one part's. Of tensors that come from outside of the run a part reads slices, and what it makes of the result is joined
to the others': both in place (``memory/sharing.py``).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from compiler import ir
from compiler.plan.layers.origin import even_pieces
from compiler.plan.order.dimensions import (
    CHANNELS,
    FRAMES,
    HEIGHT,
    RULES,
    WIDTH,
    Box4,
    Dimension,
    OperandNeed,
    SlidingWindow,
)
from compiler.plan.plan import ImageCut
from compiler.plan.split.channels import channel_parts
from compiler.plan.split.frames import frame_parts, frames_apart, outermost, without_first_reshapes

_KINDS: dict[type[ir.Operation], str] = {
    ir.Conv: "conv", ir.Pool: "pool", ir.Eltwise: "elementwise", ir.Table: "elementwise", ir.Concat: "concat",
    ir.LayerNorm: "elementwise", ir.RmsNorm: "elementwise", ir.Reshape: "elementwise",
}  # fmt: skip


def can_be_cut(graph: ir.Graph, op: ir.Operation) -> bool:
    """Return whether ``op`` makes images of as many images, and can be cut into these and each along height and width.
    A matrix is an image with one row, whose pixels are the rows of the matrix; a reshape from one form of it to another
    makes nothing."""
    if type(op) not in _KINDS:
        return False
    tensors = [graph.tensors[name] for name in (*op.inputs, op.output)]
    if any(not 2 <= len(tensor.shape) <= 4 for tensor in tensors):
        return False
    if any(tensor.nhwc[0] != (tensors[-1].nhwc[0] if tensor.data is None else 1) for tensor in tensors):
        return False
    if any(tensor.data is not None and max(tensor.nhwc[1:3]) > 1 for tensor in tensors):
        return False
    if isinstance(op, ir.Reshape):
        x, y = tensors
        return (x.nhwc, x.dtype, x.scale, x.zero_point) == (y.nhwc, y.dtype, y.scale, y.zero_point)
    return not isinstance(op, ir.Concat) or op.axis % len(tensors[0].shape) == len(tensors[0].shape) - 1


def frames_of(graph: ir.Graph, run: Sequence[ir.Operation]) -> int:
    """Return into how many frames ``run`` can be cut: the images that its operators make, if all of them can be cut
    into parts of an image, too; else as many as all keep apart."""
    if all(can_be_cut(graph, op) for op in run):
        return graph.tensors[run[-1].output].nhwc[0]
    return frames_apart(graph, run)


def can_end_cut(op: ir.Operation) -> bool:
    """Return whether the parts of ``op``, which can be cut, are tensors of their own: those of a reshape are not."""
    return not isinstance(op, ir.Reshape)


def cut(graph: ir.Graph, wanted: ImageCut) -> ir.Graph | None:
    """``graph`` with the operators of ``wanted`` in parts; None if one of them would see nothing but padding."""
    split = _cut(graph, wanted)
    if wanted.within:
        side, pieces = wanted.within
        for number in range(wanted.pieces):
            names = frozenset(name + _suffix(number) for name in wanted.operators)
            split = split and _cut(split, ImageCut(names, side, pieces))
    return split


def _suffix(number: int) -> str:
    return f"/part{number}"


def _cut(graph: ir.Graph, wanted: ImageCut) -> ir.Graph | None:
    run = [op for op in graph.ops if op.name in wanted.operators]
    last, split = run[-1], replace(graph, tensors=dict(graph.tensors))
    axis = _axis(graph.tensors[last.output].shape, wanted.dimension)
    found: tuple[list[ir.Operation], list[str]] | None
    if wanted.dimension is CHANNELS:
        found = channel_parts(split, run, wanted.pieces)
    elif wanted.dimension is FRAMES:
        frames, axis = frames_of(graph, run), outermost(graph.tensors[last.output].shape)[0]
        run = without_first_reshapes(run)
        found = frame_parts(split, run, frames, wanted.pieces)
    else:
        found = _image_parts(split, run, wanted.dimension, wanted.pieces)
    if found is None:
        return None
    made, parts = found
    joined = ir.Concat(f"{last.name}/joined", parts, last.output, axis=axis)
    place = graph.ops.index(last)
    ahead, behind = ([op for op in ops if op not in run] for ops in (graph.ops[:place], graph.ops[place:]))
    split.ops = [*ahead, *made, joined, *behind]
    for op in run[:-1]:
        del split.tensors[op.output]
    return split


def _image_parts(
    graph: ir.Graph, run: Sequence[ir.Operation], dimension: Dimension, pieces: int
) -> tuple[list[ir.Operation], list[str]] | None:
    """Return ``run`` in ``pieces`` along ``dimension``, whose tensors are added to ``graph``, and what each part of the
    last operator makes; None if one would see nothing but padding."""
    whole, made, parts = whole_box(graph, run[-1].output), list[ir.Operation](), list[str]()
    computed: dict[str, int] = {}
    for number, bounds in enumerate(even_pieces(whole[dimension][1], pieces)):
        box = tuple(bounds if one is dimension else whole[one] for one in Dimension)
        part = _Part(graph, run, number, dimension)
        if not part.add(box, computed):
            return None
        made += part.ops
        parts.append(part.ops[-1].output)
    return made, parts


def with_cuts(graph: ir.Graph, cuts: Iterable[ImageCut]) -> ir.Graph:
    """Return ``graph`` with operators split, but for cuts in which one would see nothing but padding."""
    for one in cuts:
        graph = cut(graph, one) or graph
    return graph


def whole_box(graph: ir.Graph, name: str) -> Box4:
    """Return the box of a whole tensor."""
    n, h, w, c = graph.tensors[name].nhwc
    return ((0, n), (0, c), (0, h), (0, w))


def needed_boxes(
    graph: ir.Graph, run: Sequence[ir.Operation], box: Box4, dimension: Dimension
) -> dict[str, Box4] | None:  # fmt: skip
    """By tensor that ``run`` reads or makes, the stretch of it along ``dimension`` that ``box`` of the last result
    needs; None if an operator would see nothing but padding."""
    needed = {run[-1].output: box}
    for op in reversed(run):
        for number, name in enumerate(op.inputs):
            need = _need(graph, op, number, needed[op.output], dimension)
            if need[dimension][0] >= need[dimension][1]:
                return None
            needed[name] = _hull(needed[name], need) if name in needed else need
    return needed


def _need(graph: ir.Graph, op: ir.Operation, number: int, box: Box4, dimension: Dimension) -> Box4:
    """Return what ``op`` needs of an operand for ``box`` of its result: a stretch of all that the operand is."""
    source, result = (whole_box(graph, name) for name in (op.inputs[number], op.output))
    extents = [tuple(end for _, end in whole) for whole in (source, result)]
    need = OperandNeed(extents[0], extents[1], _window(op), 1, number, 0)  # type: ignore[arg-type]
    stretch = _stretch(_KINDS[type(op)], need, box, dimension)
    return tuple(stretch if one is dimension else source[one] for one in Dimension)


@lru_cache(maxsize=1 << 14)
def _stretch(kind: str, need: OperandNeed, box: Box4, dimension: Dimension) -> tuple[int, int]:
    return RULES[kind].needs(need, box)[dimension]


class _Part:
    """One part: its ``ops``, whose tensors are added to ``graph``."""

    def __init__(self, graph: ir.Graph, run: Sequence[ir.Operation], number: int, dimension: Dimension) -> None:
        self._graph, self._run, self._suffix, self._dimension = graph, run, _suffix(number), dimension
        self.ops: list[ir.Operation] = []
        self._boxes: dict[str, Box4] = {}
        self._names: dict[tuple[str, Box4], str] = {}

    def add(self, box: Box4, computed: dict[str, int]) -> bool:
        """Add all operators for ``box`` of the last result; ``computed``: by tensor where the parts so far end, which
        is noted. False if an operator would see nothing but padding."""
        needed = needed_boxes(self._graph, self._run, box, self._dimension)
        if needed is None:
            return False
        self._boxes = {op.output: needed[op.output] for op in self._run}
        for op in self._run:
            self._add(op, computed)
        return True

    def _add(self, op: ir.Operation, computed: dict[str, int]) -> None:
        box = self._boxes[op.output]
        needs = [_need(self._graph, op, number, box, self._dimension) for number in range(len(op.inputs))]
        inputs = [self._operand(name, need) for name, need in zip(op.inputs, needs, strict=True)]
        if isinstance(op, ir.Reshape):
            self._names[op.output, box] = inputs[0]
            return
        changed: dict[str, Any] = {"name": op.name + self._suffix, "inputs": inputs}
        if isinstance(op, ir.Conv | ir.Pool):
            changed["pads"] = self._pads(op, box, needs[0])
        if isinstance(op, ir.Conv):
            first, end = box[self._dimension]
            again = max(0, min(end, computed.get(op.output, 0)) - first)
            changed["repeated"] = op.repeated + again * _pixels(box) // (end - first)
        computed[op.output] = box[self._dimension][1]
        self.ops.append(replace(op, output=self._tensor(op.output, box), **changed))

    def _pads(self, op: ir.Conv | ir.Pool, box: Box4, need: Box4) -> tuple[int, ...]:
        """Return the padding around ``need`` of the input, for ``box`` of the result."""
        window, axis, pads = _window(op), self._dimension - HEIGHT, list(op.pads)
        first, end = box[self._dimension]
        low, high = need[self._dimension]
        begins = first * window.strides[axis] - window.pads[axis]
        ends = (end - 1) * window.strides[axis] - window.pads[axis] + window.kernel[axis]
        pads[axis], pads[axis + 2] = low - begins, max(0, ends - high)
        return tuple(pads)

    def _operand(self, name: str, need: Box4) -> str:
        """Return the name of ``need`` of a tensor: the part of it that was made, all of it, or a slice of either."""
        held = self._boxes.get(name, whole_box(self._graph, name))
        if (name, need) not in self._names and need == held:
            return name
        if (name, need) not in self._names:
            source, start = self._names.get((name, held), name), need[self._dimension][0] - held[self._dimension][0]
            shape = self._graph.tensors[source].shape
            target, axis = self._tensor(name, need, shape), _axis(shape, self._dimension)
            self.ops.append(ir.Slice(target, [source], target, axis=axis, first=start))
        return self._names[name, need]

    def _tensor(self, name: str, box: Box4, like: Sequence[int] = ()) -> str:
        """Return a tensor for ``box`` of ``name``, with as many axes as the shape ``like`` has, or as that has."""
        whole, (first, end) = self._graph.tensors[name], box[self._dimension]
        new = f"{name}{self._suffix}" if name in self._boxes else f"{name}/{first}to{end}{self._suffix}"
        if self._boxes.get(name, box) != box:
            new = f"{new}/{first}to{end}"
        while new in self._graph.tensors:  # another cut reads the same rows
            new += "/again"
        frames, height, width = (stop - start for start, stop in (box[FRAMES], box[HEIGHT], box[WIDTH]))
        lead = ((frames, height) if len(like or whole.shape) == 4 else (frames,))[: len(like or whole.shape) - 2]
        shape = (*lead, width, whole.shape[-1])
        self._graph.tensors[new] = replace(whole, name=new, shape=shape, onnx_name="", view=(), perm=())
        self._names[name, box] = new
        return new


def _axis(shape: Sequence[int], dimension: Dimension) -> int:
    """Return the axis of a tensor of ``shape`` that is ``dimension`` of its images."""
    return len(shape) - {FRAMES: 4, HEIGHT: 3, WIDTH: 2, CHANNELS: 1}[dimension]


def _window(op: ir.Operation) -> SlidingWindow:
    """Return the window of a convolution or a pool, with what dilation adds."""
    if isinstance(op, ir.Conv):
        _, height, width, _ = op.weights.shape
        return SlidingWindow(ir.spanned((height, width), op.dilations), op.strides, op.pads[:2])
    if isinstance(op, ir.Pool):
        return SlidingWindow(op.span, op.strides, op.pads[:2])
    return SlidingWindow()


def _hull(one: Box4, other: Box4) -> Box4:
    return tuple((min(a[0], b[0]), max(a[1], b[1])) for a, b in zip(one, other, strict=True))


def _pixels(box: Box4) -> int:
    rows, columns = (end - first for first, end in (box[HEIGHT], box[WIDTH]))
    return rows * columns
