"""Attention of a float model as single operators, before it is quantised: inside the node nothing says in which 8-bit
steps the accelerator could store scores and products. The same for RotaryEmbedding."""

import math

import numpy as np
import numpy.typing as npt
import onnx

from compiler.quantise.plain_rotation import why_no_rotation, write_rotation
from compiler.quantise.written_nodes import NodeWriter, rewritten

_MASKED = -1e4  #: a float mask from here on downwards leaves nothing of an exponential
_OPEN = "its shapes are not known: give sizes of dynamic dimensions"
_LOWEST = -1e30  #: what a masked score is until its range is known, see :mod:`compiler.quantise.fitting_masks`


def plain_attention(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model whose shapes are inferred without nodes Attention and RotaryEmbedding of opset 23, where nothing
    of :func:`why_whole` is against it. A mask is Where with a constant condition. Past keys and values are Concat with
    those of the token, so their number may be open. Heads of keys and values are repeated for the queries that share
    them, as PyTorch does."""
    return rewritten(model, _write, "Attention", "RotaryEmbedding")


def _write(writer: NodeWriter) -> None:
    if why_whole(writer) is None:
        (_attention if writer.node.op_type == "Attention" else write_rotation)(writer)


def why_whole(writer: NodeWriter) -> str | None:
    """Return why a node Attention or RotaryEmbedding cannot be written out, to complete a sentence; None if it can."""
    shapes = [writer.known.shape(name) or () for name in writer.node.input[:3] if name]
    if writer.node.op_type == "RotaryEmbedding":
        return _OPEN if min(shapes[0], default=0) < 1 else why_no_rotation(writer)
    axes = [range(len(shape)) if index == 0 else _known_axes(shape) for index, shape in enumerate(shapes)]
    if any(min((shape[at] for at in each), default=0) < 1 for shape, each in zip(shapes, axes, strict=True)):
        return _OPEN
    if any(writer.node.output[3:]):
        return "it gives its scores out"
    if writer.input(6):
        return "it has lengths of keys"
    if writer.input(3) and writer.input(3) not in writer.known.constants:
        return "its mask is computed"
    heads = _Heads(writer)
    if heads.rows[1] < 1 or writer.input(4) or writer.input(5) or any(writer.node.output[1:3]):
        return _why_not_one_token(writer, heads)
    return None if heads.keeps_all() else "its mask leaves a query no key"


def _known_axes(shape: tuple[int, ...]) -> list[int]:
    """Return the axes of keys or values that are not their rows, whose number may be open."""
    return [axis for axis in range(len(shape)) if axis != len(shape) - 2]


def _why_not_one_token(writer: NodeWriter, heads: "_Heads") -> str | None:
    """Return why Attention over past keys and values, in the node or in front, is not that of one token."""
    pasts = [writer.input(index) for index in (4, 5)]
    if any(pasts) != all(pasts):
        return "it has past keys or past values, and both are wanted"
    if any(writer.node.output[1:3]) and not any(pasts):
        return "it has present keys and values, and no past ones"
    if heads.rows[0] != 1 or (any(pasts) and heads.new != 1):
        return "it has past keys and values, and more than one token"
    if writer.input(3):
        return "it has a mask beside past keys and values, and one token needs none"
    return None if any(pasts) or not heads.causal else "it is causal, and the number of its keys is open"


class _Heads:
    """Sizes of an Attention: ``queries`` heads share ``keys`` heads; both of ``rows``, -1 where that is open."""

    def __init__(self, writer: NodeWriter) -> None:
        given, shapes = writer.given, [writer.known.shape(name) or () for name in writer.node.input[:3]]
        self.joined = len(shapes[0]) == 3
        self.batch = shapes[0][0]
        self.past = bool(writer.input(4))
        self.new = shapes[1][-2]  #: rows of keys beside past ones
        self.rows = shapes[0][-2], -1 if self.past else self.new
        self.queries = given["q_num_heads"] if self.joined else shapes[0][1]
        self.keys = given["kv_num_heads"] if self.joined else shapes[1][1]
        counts = (self.queries, self.keys, self.keys) if self.joined else (1, 1, 1)
        self.widths = [shape[-1] // count for shape, count in zip(shapes, counts, strict=True)]
        self.scale = given.get("scale") or 1 / math.sqrt(self.widths[0])
        self.softcap = given.get("softcap", 0.0)
        self.mask = writer.known.constants.get(writer.input(3)) if writer.input(3) else None
        self.causal = bool(given.get("is_causal", 0)) and not self.past  # one token reads all keys

    def kept(self) -> npt.NDArray[np.bool_] | None:
        """Return which scores count, (..., queries, keys); None if all do."""
        kept = np.tri(*self.rows, dtype=bool) if self.causal else None
        if self.mask is not None and (self.mask.dtype == bool or (self.mask <= _MASKED).any()):
            own = self.mask if self.mask.dtype == bool else self.mask > _MASKED
            kept = own if kept is None else kept & own
        return None if kept is None or kept.all() else kept

    def keeps_all(self) -> bool:
        """Return whether each query has a key that counts."""
        kept = self.kept()
        return kept is None or bool(kept.any(axis=-1).all())

    def added(self) -> npt.NDArray[np.float32] | None:
        """Return what a mask adds to scores that count; None if that is nothing."""
        if self.mask is None or self.mask.dtype == bool:
            return None
        added = np.where(self.mask > _MASKED, self.mask, 0).astype(np.float32)
        return added if added.any() else None


def _attention(writer: NodeWriter) -> None:
    heads, op = _Heads(writer), writer.op
    query, key, value = (_apart(writer, heads, index) for index in range(3))
    scores = op("MatMul", query, key)
    if heads.softcap:
        scores = op("Div", scores, writer.const(heads.softcap))
        scores = op("Mul", op("Tanh", scores), writer.const(heads.softcap))
    added, kept = heads.added(), heads.kept()
    if added is not None:
        scores = op("Add", scores, writer.const(added))
    if kept is not None:
        scores = op("Where", writer.const(kept, np.bool_), scores, writer.const(_LOWEST))
    mixed = op("MatMul", op("Softmax", scores, axis=-1), value)
    if heads.joined:
        mixed = op("Transpose", mixed, perm=(0, 2, 1, 3))
        mixed = writer.reshape(mixed, heads.batch, heads.rows[0], heads.queries * heads.widths[2])
    writer.result(mixed)


def _apart(writer: NodeWriter, heads: _Heads, index: int) -> str:
    """Return scaled queries, keys or values (batch, heads, rows, width), keys turned: (batch, heads, width, rows)."""
    name, op, joined, of_query = writer.node.input[index], writer.op, heads.joined, index == 0
    rows, width, count = heads.rows[not of_query], heads.widths[index], heads.queries if of_query else heads.keys
    if of_query:
        name = op("Mul", name, writer.const(heads.scale))
    if joined:
        name = writer.reshape(name, heads.batch, rows if of_query else heads.new, count, width)
    if heads.past and not of_query:
        name, joined = op("Transpose", name, perm=(0, 2, 1, 3)) if joined else name, False
        name = op("Concat", writer.input(index + 3), name, axis=2)
        if present := "".join(writer.node.output[index : index + 1]):
            name = writer.named(name, present)
    if (shared := heads.queries // count) > 1:
        axis = 3 if joined else 2
        name = op("Unsqueeze", name, writer.const([axis], np.int64))
        each = [heads.batch, rows, count, shared, width] if joined else [heads.batch, count, shared, rows, width]
        name = op("Expand", name, writer.const(np.maximum(each, 1), np.int64))  # 1 leaves rows as they are
        name = writer.reshape(name, *each[: axis - 1], heads.queries, *each[axis + 1 :])
    if joined:
        return op("Transpose", name, perm=(0, 2, 3, 1) if index == 1 else (0, 2, 1, 3))
    return op("Transpose", name, perm=(0, 1, 3, 2)) if index == 1 else name
