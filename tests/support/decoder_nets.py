"""A Llama-shaped block in float: RMS normalisation, rotated queries and keys, grouped queries, a causal mask, SwiGLU.

In the operators of opset 23, or in single operators as PyTorch exports them."""

from dataclasses import dataclass

import numpy as np
import onnx

from tests.support.onnx_models import Net
from tests.support.written_norms import Form, written

LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Block:
    """Sizes of a block, and how it is written."""

    opset: int = 23
    operators: bool = True  #: RMSNormalization, RotaryEmbedding, Attention
    masked: float = -LARGEST  #: what the mask adds
    scaled: str = "scores"  #: or both: queries and keys, by the root of the scale
    quotient: str = "reciprocal"  #: see :class:`tests.support.written_norms.Form`
    gate: str = "Sigmoid"  #: or Gelu
    older: bool = False  #: as GPT-2: see :func:`older_block`
    length: int = 16
    width: int = 64
    heads: int = 4
    key_heads: int = 2
    wide: int = 128

    @property
    def head(self) -> int:
        """Return the width of a head."""
        return self.width // self.heads

    def feed(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return random inputs."""
        return {"x": rng.normal(0, 1, (1, self.length, self.width)).astype(np.float32)}


def angles(length: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return cosines and sines, (length, width / 2)."""
    turns = np.arange(length)[:, None] * 10000.0 ** (-np.arange(0, width, 2) / width)
    return np.cos(turns).astype(np.float32), np.sin(turns).astype(np.float32)


def decoder_block(block: Block, seed: int = 0) -> onnx.ModelProto:
    """Return the model of a block; its input is ``x`` (1, length, width), its weights are random."""
    if block.older:
        return older_block(block, seed)
    make = _Maker(block, seed)
    x = make.net.input((1, block.length, block.width), "float32")
    inner = make.norm(x)
    widths = (block.width, *[block.key_heads * block.head] * 2)
    mixed = (make.attention if block.operators else make.written_attention)(*(make.dense(inner, to) for to in widths))
    x = make.op("Add", x, make.dense(mixed, block.width))
    inner = make.norm(x)
    gate, up = make.dense(inner, block.wide), make.dense(inner, block.wide)
    opened = make.op("Gelu", gate) if block.gate == "Gelu" else make.op("Mul", gate, make.op("Sigmoid", gate))
    down = make.dense(make.op("Mul", opened, up), block.width, block.wide)
    return make.net.model(make.op("Add", x, down), dtype="float32")


def older_block(block: Block, seed: int = 0) -> onnx.ModelProto:
    """Return the model of a block with layer normalisation, one projection that is split, a mask that is chosen, and a
    Gelu written out with Tanh."""
    make = _Maker(block, seed)
    net, op, width = make.net, make.op, block.width
    x = net.input((1, block.length, width), "float32")

    def norm(x: str) -> str:
        gain, shift = net.rng.uniform(0.5, 1.5, width), net.rng.normal(0, 0.1, width)
        return op("LayerNormalization", x, *(net.const(each, np.float32) for each in (gain, shift)))

    def dense(x: str, to: int, wide: int = width) -> str:
        return op("Add", make.dense(x, to, wide), net.const(net.rng.normal(0, 0.1, to), np.float32))

    def number(value: float) -> str:
        return net.const(value, np.float32)

    net.node("Split", [dense(norm(x), 3 * width), make.ints(*[width] * 3)], 3, axis=2)
    heads = [make.apart(name, block.heads) for name in net.nodes[-1].output]
    scores = op("MatMul", heads[0], op("Transpose", heads[1], perm=[0, 1, 3, 2]))
    scores = op("Div", scores, number(block.head**0.5))
    kept = net.const(np.tri(block.length, dtype=bool)[None, None])
    weights = op("Softmax", op("Where", kept, scores, number(block.masked)), axis=-1)
    mixed = op("Transpose", op("MatMul", weights, heads[2]), perm=[0, 2, 1, 3])
    x = op("Add", dense(op("Reshape", mixed, make.ints(1, block.length, width)), width), x)
    inner = dense(norm(x), block.wide)
    cubic = op("Add", inner, op("Mul", op("Pow", inner, number(3)), number(0.044715)))
    opened = op(
        "Mul", op("Mul", inner, number(0.5)), op("Add", op("Tanh", op("Mul", cubic, number(0.7978845))), number(1))
    )
    return net.model(op("Add", x, dense(opened, width, block.wide)), dtype="float32")


class _Maker:
    def __init__(self, block: Block, seed: int) -> None:
        self.block, self.net = block, Net(block.opset, seed)

    def op(self, kind: str, *inputs: str, **attributes) -> str:
        return self.net.node(kind, inputs, **attributes)

    def ints(self, *values: int) -> str:
        return self.net.const(values, np.int64)

    def dense(self, x: str, to: int, width: int = 0) -> str:
        width = width or self.block.width
        weights = self.net.rng.normal(0, width**-0.5, (width, to))
        return self.op("MatMul", x, self.net.const(weights, np.float32))

    def norm(self, x: str) -> str:
        gain = self.net.rng.uniform(0.5, 1.5, self.block.width)
        if self.block.operators:
            return self.op("RMSNormalization", x, self.net.const(gain, np.float32))
        form = Form(self.block.opset, quotient=self.block.quotient, centred=False)
        return written(self.net, x, form, 1e-5, gain)["y"]

    def attention(self, query: str, key: str, value: str) -> str:
        block = self.block
        tables = [self.net.const(table) for table in angles(block.length, block.head)]
        tables.append(self.net.const(np.arange(block.length)[None], np.int64))
        query = self.op("RotaryEmbedding", query, *tables, num_heads=block.heads)
        key = self.op("RotaryEmbedding", key, *tables, num_heads=block.key_heads)
        heads = {"q_num_heads": block.heads, "kv_num_heads": block.key_heads}
        return self.op("Attention", query, key, value, is_causal=1, **heads)

    def written_attention(self, query: str, key: str, value: str) -> str:
        block, op = self.block, self.op
        tables = [
            self.net.const(np.concatenate([table, table], -1)[None, None]) for table in angles(block.length, block.head)
        ]
        query = self._rotated(self.apart(query, block.heads), *tables)
        key = self._shared(self._rotated(self.apart(key, block.key_heads), *tables))
        value = self._shared(self.apart(value, block.key_heads))
        key = op("Transpose", key, perm=[0, 1, 3, 2])
        if block.scaled == "both":
            root = self.net.const(np.float32(block.head**-0.25))
            scores = op("MatMul", op("Mul", query, root), op("Mul", key, root))
        else:
            scores = op("Mul", op("MatMul", query, key), self.net.const(np.float32(block.head**-0.5)))
        mask = np.where(np.tri(block.length, dtype=bool), 0, block.masked).astype(np.float32)[None, None]
        weights = op("Softmax", op("Add", scores, self.net.const(mask)), axis=-1)
        mixed = op("Transpose", op("MatMul", weights, value), perm=[0, 2, 1, 3])
        return op("Reshape", mixed, self.ints(1, block.length, block.width))

    def apart(self, x: str, heads: int) -> str:
        split = self.op("Reshape", x, self.ints(1, self.block.length, heads, self.block.head))
        return self.op("Transpose", split, perm=[0, 2, 1, 3])

    def _rotated(self, x: str, cos: str, sin: str) -> str:
        half, op = self.block.head // 2, self.op
        first = op("Slice", x, self.ints(0), self.ints(half), self.ints(3), self.ints(1))
        second = op("Slice", x, self.ints(half), self.ints((1 << 63) - 1), self.ints(3), self.ints(1))
        turned = op("Concat", op("Neg", second), first, axis=-1)
        return op("Add", op("Mul", x, cos), op("Mul", turned, sin))

    def _shared(self, x: str) -> str:
        block, op = self.block, self.op
        shape = (1, block.key_heads, block.heads // block.key_heads, block.length, block.head)
        each = op("Expand", op("Unsqueeze", x, self.ints(2)), self.ints(*shape))
        return op("Reshape", each, self.ints(1, block.heads, block.length, block.head))
