"""Attention and RotaryEmbedding of a float model as single operators, before it is quantised: inside the nodes nothing
says in which 8-bit steps the accelerator could store scores and products."""

import math

import numpy as np
import numpy.typing as npt
import onnx

from compiler.quantise.written_nodes import NodeWriter, rewritten

_MASKED = -1e4  #: a float mask from here on downwards leaves nothing of an exponential
_LOWEST = -1e30  #: what a masked score is until its range is known, see :mod:`compiler.quantise.fitting_masks`


def plain_attention(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model whose shapes are inferred without nodes Attention and RotaryEmbedding of opset 23, where nothing
    of :func:`why_whole` is against it. A mask is Where with a constant condition. Heads of keys and values are repeated
    for the queries that share them, as PyTorch does."""
    return rewritten(model, _write, "Attention", "RotaryEmbedding")


def _write(writer: NodeWriter) -> None:
    if why_whole(writer) is None:
        (_attention if writer.node.op_type == "Attention" else _rotation)(writer)


def why_whole(writer: NodeWriter) -> str | None:
    """Return why a node Attention or RotaryEmbedding cannot be written out, to complete a sentence; None if it can."""
    shapes, names = writer.known.shapes, [name for name in writer.node.input[:3] if name]
    if any(name not in shapes or min(shapes[name], default=0) < 1 for name in names):
        return "its shapes are not known: give sizes of dynamic dimensions"
    if writer.node.op_type == "RotaryEmbedding":
        if any(name not in writer.known.constants for name in filter(None, writer.node.input[1:])):
            return "its cosines, sines or positions are computed"
        return None
    if any(writer.input(index) for index in (4, 5)) or any(writer.node.output[1:3]):
        return "it has past or present keys and values"
    if any(writer.node.output[3:]):
        return "it gives its scores out"
    if writer.input(6):
        return "it has lengths of keys"
    if writer.input(3) and writer.input(3) not in writer.known.constants:
        return "its mask is computed"
    return None if _Heads(writer).keeps_all() else "its mask leaves a query no key"


class _Heads:
    """Sizes of an Attention: ``queries`` heads share ``keys`` heads; both of ``rows``."""

    def __init__(self, writer: NodeWriter) -> None:
        given, shapes = writer.given, [writer.known.shapes[name] for name in writer.node.input[:3]]
        self.joined = len(shapes[0]) == 3
        self.batch = shapes[0][0]
        axis = 1 if self.joined else 2
        self.rows = shapes[0][axis], shapes[1][axis]
        self.queries = given["q_num_heads"] if self.joined else shapes[0][1]
        self.keys = given["kv_num_heads"] if self.joined else shapes[1][1]
        counts = (self.queries, self.keys, self.keys) if self.joined else (1, 1, 1)
        self.widths = [shape[-1] // count for shape, count in zip(shapes, counts, strict=True)]
        self.scale = given.get("scale") or 1 / math.sqrt(self.widths[0])
        self.softcap = given.get("softcap", 0.0)
        self.mask = writer.known.constants.get(writer.input(3)) if writer.input(3) else None
        self.causal = bool(given.get("is_causal", 0))

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
    name, op, of_query = writer.node.input[index], writer.op, index == 0
    rows, width, count = heads.rows[not of_query], heads.widths[index], heads.queries if of_query else heads.keys
    shared = heads.queries // count
    if of_query:
        name = op("Mul", name, writer.const(heads.scale))
    if heads.joined:
        name = writer.reshape(name, heads.batch, rows, count, width)
    if shared > 1:
        axis = 3 if heads.joined else 2
        name = op("Unsqueeze", name, writer.const([axis], np.int64))
        each = [heads.batch, rows, count, shared, width] if heads.joined else [heads.batch, count, shared, rows, width]
        name = op("Expand", name, writer.const(each, np.int64))
        name = writer.reshape(name, *each[: axis - 1], heads.queries, *each[axis + 1 :])
    if heads.joined:
        return op("Transpose", name, perm=(0, 2, 3, 1) if index == 1 else (0, 2, 1, 3))
    return op("Transpose", name, perm=(0, 1, 3, 2)) if index == 1 else name


def _rotation(writer: NodeWriter) -> None:
    """``x * cos + other * sin``, where ``other`` has the halves of x, or what stands at even and odd places, exchanged,
    and the sines of the first of them are negative."""
    given, shape, op = writer.given, writer.known.shapes[writer.node.input[0]], writer.op
    cos, sin = (writer.known.constants[writer.node.input[index]] for index in (1, 2))
    if writer.input(3):
        positions = writer.known.constants[writer.input(3)]
        cos, sin = cos[positions], sin[positions]  # (batch, rows, half)
    name, joined, interleaved = writer.node.input[0], len(shape) == 3, bool(given.get("interleaved", 0))
    if joined:
        heads = given["num_heads"]
        name = writer.reshape(name, shape[0], shape[1], heads, shape[2] // heads)
    width = shape[-1] // heads if joined else shape[-1]
    turned = given.get("rotary_embedding_dim", 0) or width
    rest = []
    if turned < width:
        name, *rest = writer.parts(name, [turned, width - turned], -1)
    whole = (*((shape[0], shape[1], heads) if joined else shape[:3]), turned)
    paired = (-sin, sin), (cos, cos)
    signed, same = (
        np.stack(pair, axis=-1).reshape(*cos.shape[:-1], -1) if interleaved else np.concatenate(pair, axis=-1)
        for pair in paired
    )
    axis = 2 if joined else 1
    pairs = writer.reshape(name, *whole[:-1], turned // 2, 2) if interleaved else name
    first, second = writer.split(pairs, 2, 1 if interleaved else turned // 2, axis=-1)
    other = op("Concat", second, first, axis=-1)
    if interleaved:
        other = writer.reshape(other, *whole)
    by_same = op("Mul", name, writer.const(np.expand_dims(same, axis)))
    name = op("Add", by_same, op("Mul", other, writer.const(np.expand_dims(signed, axis))))
    if rest:
        name = op("Concat", name, *rest, axis=-1)
    if joined:
        name = writer.reshape(name, *shape)
    writer.result(name)
