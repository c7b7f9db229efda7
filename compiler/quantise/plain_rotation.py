"""RotaryEmbedding of a float model as single operators, before it is quantised, see
:mod:`compiler.quantise.plain_attention`."""

import numpy as np
import numpy.typing as npt

from compiler.quantise.written_nodes import NodeWriter


def why_no_rotation(writer: NodeWriter) -> str | None:
    """Return why a node RotaryEmbedding whose shape is known cannot be written out; None if it can."""
    if any(writer.input(index) not in writer.known.constants for index in (1, 2)):
        return "its cosines or sines are computed; give constant tables, and positions"
    return None


def write_rotation(writer: NodeWriter) -> None:
    """``x * cos + other * sin``, where ``other`` has the halves of x, or what stands at even and odd places, exchanged,
    and the sines of the first of them are negative. Positions that are no constants are looked up in tables of both."""
    given, shape, op = writer.given, writer.known.shapes[writer.node.input[0]], writer.op
    cos, sin = (writer.known.constants[writer.node.input[index]] for index in (1, 2))
    positions = writer.known.constants.get(writer.input(3))
    if positions is not None:
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
    rows = bool(writer.input(3)) and positions is None
    by_same = op("Mul", name, _factor(writer, same, axis, rows))
    name = op("Add", by_same, op("Mul", other, _factor(writer, signed, axis, rows)))
    if rest:
        name = op("Concat", name, *rest, axis=-1)
    if joined:
        name = writer.reshape(name, *shape)
    writer.result(name)


def _factor(writer: NodeWriter, table: npt.NDArray[np.float32], axis: int, rows: bool) -> str:
    """Return cosines or sines for all heads: a constant, or ``rows`` of it at positions that are known at run time."""
    if not rows:
        return writer.const(np.expand_dims(table, axis))
    taken = writer.op("Gather", writer.const(table), writer.input(3))
    return writer.op("Unsqueeze", taken, writer.const([axis], np.int64))
