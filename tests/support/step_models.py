"""Decoders of one token with their past as inputs, in float: as PyTorch exports a Llama-shaped model, in single
operators, and in the operators of opset 23. They can be run token by token."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from compiler import quantise
from tests.support.decoder_nets import angles
from tests.support.onnx_models import Net

PAST = "past"  #: the dynamic dimension


@dataclass(frozen=True)
class StepNet:
    """Sizes of a decoder, and how it is written."""

    operators: bool = False  #: RMSNormalization, RotaryEmbedding, Attention of opset 23
    width: int = 32
    heads: int = 4
    key_heads: int = 2
    layers: int = 2
    vocabulary: int = 64
    wide: int = 64  #: of the two products of SwiGLU
    longest: int = 64  #: rows of the tables of cosines and sines
    position: str = "rows"  #: its input is [1, 1]; or one: [1]; or none: there is none, and no rotation
    rotated: bool = True  #: or learned positions are added to the embedding
    inside: bool = True  #: Attention takes the past; or Concat in front of it does
    joined: bool = True  #: Attention and RotaryEmbedding take [1, 1, heads * head]; or heads apart
    shapes: str = "constant"  #: of Expand and Reshape; or computed: from Shape of the present
    biased: bool = False  #: queries, keys and values
    seed: int = 0

    @property
    def head(self) -> int:
        """Return the width of a head."""
        return self.width // self.heads

    @property
    def states(self) -> list[tuple[str, str]]:
        """Return (past input, present output) of all layers, keys before values."""
        kinds = [(layer, kind) for layer in range(self.layers) for kind in ("key", "value")]
        return [(f"past_key_values.{layer}.{kind}", f"present.{layer}.{kind}") for layer, kind in kinds]

    def tokens(self, samples: int, length: int, seed: int = 1) -> np.ndarray:
        """Return token ids (samples, length)."""
        return np.random.default_rng(seed).integers(0, self.vocabulary, (samples, length))


def step_model(net: StepNet = StepNet()) -> onnx.ModelProto:
    """Return the float model of ``net``: ``input_ids``, ``position_ids``, pasts to ``logits``, presents."""
    return _Maker(net).model()


def quantised_step_model(net: StepNet, path: Path, samples: int = 3, length: int = 12) -> onnx.ModelProto:
    """Write the 8-bit form of the model of ``net`` to ``path``, with ranges from random tokens; return it."""
    model = step_model(net)
    sequences = [[feed_of(net, token, at) for at, token in enumerate(one)] for one in net.tokens(samples, length)]
    quantise.quantise(quantise.prepared(model), quantise.StepFeeds(model, sequences), path)
    return onnx.load(path)


def run_steps(
    model: onnx.ModelProto, net: StepNet, tokens: Iterable[int], *, as_written: bool = False
) -> Iterator[dict[str, np.ndarray]]:
    """Yield the outputs of each step of a model, float or quantised, over one sequence; presents become pasts."""
    sequence = [feed_of(net, token, at) for at, token in enumerate(tokens)]
    yield from (found for _, found in quantise.StepModel(model, as_written=as_written).steps(sequence))


def feed_of(net: StepNet, token: int, at: int) -> dict[str, np.ndarray]:
    """Return the inputs of the step at a position, without pasts."""
    feed = {"input_ids": np.array([[token]], np.int64)}
    if net.position != "none":
        feed["position_ids"] = np.array([at] if net.position == "one" else [[at]], np.int64)
    return feed


class _Maker:
    def __init__(self, net: StepNet) -> None:
        self.of, self.net = net, Net(23 if net.operators else 17, net.seed)
        self.presents = list[str]()

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes) -> str:
        return self.net.node(kind, inputs, outputs, **attributes)

    def ints(self, *values: int) -> str:
        return self.net.const(values, np.int64)

    def normal(self, deviation: float, *shape: int) -> str:
        return self.net.const(self.net.rng.normal(0, deviation, shape), np.float32)

    def model(self) -> onnx.ModelProto:
        of, op = self.of, self.op
        ids = self.net.input((1, 1), "int64", "input_ids")
        if of.position != "none":
            at = self.net.input((1,) if of.position == "one" else (1, 1), "int64", "position_ids")
            self.at = op("Unsqueeze", at, self.ints(0)) if of.position == "one" else at
        for name, _ in of.states:
            self.net.input((1, of.key_heads, PAST, of.head), "float32", name)
        x = op("Gather", self.normal(0.5, of.vocabulary, of.width), ids)
        if of.position != "none" and not of.rotated:
            x = op("Add", x, op("Gather", self.normal(0.2, of.longest, of.width), self.at))
        self._tables()
        for layer in range(of.layers):
            mixed = self._attention(self._norm(x), *(name for name, _ in of.states[2 * layer : 2 * layer + 2]))
            x = op("Add", x, self._dense(mixed, of.width, gain=(2 * of.layers) ** -0.5))
            inner = self._norm(x)
            gate, up = self._dense(inner, of.wide), self._dense(inner, of.wide)
            opened = op("Mul", op("Mul", gate, op("Sigmoid", gate)), up)
            x = op("Add", x, self._dense(opened, of.width, of.wide, gain=(2 * of.layers) ** -0.5))
        logits = self._dense(self._norm(x), of.vocabulary, gain=2.0)
        return self._made({logits: "logits"} | dict(zip(self.presents, (one for _, one in of.states), strict=True)))

    def _made(self, outputs: dict[str, str]) -> onnx.ModelProto:
        of, nodes = self.of, self.net.nodes
        for node in nodes:
            for names in (node.input, node.output):
                names[:] = [outputs.get(name, name) for name in names]
        shape = (1, of.key_heads, f"{PAST} + 1", of.head)
        infos = [
            helper.make_tensor_value_info(
                name, TensorProto.FLOAT, (1, 1, of.vocabulary) if name == "logits" else shape
            )
            for name in outputs.values()
        ]  # fmt: skip
        graph = helper.make_graph(nodes, "step", self.net.inputs, infos, self.net.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.net.opset)], ir_version=10)
        onnx.checker.check_model(model)
        return model

    def _dense(self, x: str, to: int, width: int = 0, gain: float = 1.0) -> str:
        width = width or self.of.width
        return self.op("MatMul", x, self.normal(gain * width**-0.5, width, to))

    def _projected(self, x: str, heads: int) -> str:
        x = self._dense(x, heads * self.of.head)
        return self.op("Add", x, self.normal(0.5, heads * self.of.head)) if self.of.biased else x

    def _norm(self, x: str) -> str:
        op, number = self.op, self.net.const
        gain = number(self.net.rng.uniform(0.5, 1.5, self.of.width), np.float32)
        if self.of.operators:
            return op("RMSNormalization", x, gain)
        mean = op("ReduceMean", op("Pow", x, number(2, np.float32)), axes=[-1], keepdims=1)
        root = op("Sqrt", op("Add", mean, number(1e-5, np.float32)))
        return op("Mul", gain, op("Mul", x, op("Div", number(1, np.float32), root)))

    def _tables(self) -> None:
        """Rows of cosines and sines at the position, or the tables for RotaryEmbedding."""
        of, op = self.of, self.op
        if of.position == "none" or not of.rotated:
            return
        tables = angles(of.longest, of.head)
        if of.operators:
            self.tables = [*(self.net.const(table) for table in tables), self.at]
            return
        rows = [op("Gather", self.net.const(np.concatenate([table, table], -1)), self.at) for table in tables]
        self.tables = [op("Unsqueeze", row, self.ints(1)) for row in rows]

    def _attention(self, x: str, *pasts: str) -> str:
        of = self.of
        query, key, value = (self._projected(x, heads) for heads in (of.heads, of.key_heads, of.key_heads))
        if not (of.operators and of.inside and of.joined):
            query, key, value = self._apart(query, of.heads), *(self._apart(one, of.key_heads) for one in (key, value))
        if of.position != "none" and of.rotated:
            query, key = self._rotated(query, of.heads), self._rotated(key, of.key_heads)
        if of.operators and of.inside:
            heads = {"q_num_heads": of.heads, "kv_num_heads": of.key_heads} if of.joined else {}
            mixed = self.op("Attention", query, key, value, "", *pasts, outputs=3, **heads)
            self.presents += self.net.nodes[-1].output[1:]
            return mixed if of.joined else self._together(mixed)
        presents = [self.op("Concat", past, new, axis=2) for past, new in zip(pasts, (key, value), strict=True)]
        self.presents += presents
        if of.operators:
            return self._together(self.op("Attention", query, *presents))
        key, value = (self._shared(one) for one in presents)
        scores = self.op("MatMul", query, self.op("Transpose", key, perm=[0, 1, 3, 2]))
        weights = self.op("Softmax", self.op("Mul", scores, self.net.const(of.head**-0.5, np.float32)), axis=-1)
        return self._together(self.op("MatMul", weights, value))

    def _apart(self, x: str, heads: int) -> str:
        return self.op("Transpose", self.op("Reshape", x, self.ints(1, 1, heads, self.of.head)), perm=[0, 2, 1, 3])

    def _together(self, x: str) -> str:
        return self.op("Reshape", self.op("Transpose", x, perm=[0, 2, 1, 3]), self.ints(1, 1, self.of.width))

    def _rotated(self, x: str, heads: int) -> str:
        op, half = self.op, self.of.head // 2
        if self.of.operators:
            joined = self.of.inside and self.of.joined
            return op("RotaryEmbedding", x, *self.tables, **({"num_heads": heads} if joined else {}))
        first = op("Slice", x, self.ints(0), self.ints(half), self.ints(3), self.ints(1))
        second = op("Slice", x, self.ints(half), self.ints((1 << 63) - 1), self.ints(3), self.ints(1))
        turned = op("Concat", op("Neg", second), first, axis=-1)
        return op("Add", op("Mul", x, self.tables[0]), op("Mul", turned, self.tables[1]))

    def _shared(self, x: str) -> str:
        """Heads of keys or values, each as often as queries share it."""
        of, op = self.of, self.op
        each = of.heads // of.key_heads
        if each == 1:
            return x
        if of.shapes == "constant":
            expanded = op("Expand", op("Unsqueeze", x, self.ints(2)), self.ints(1, of.key_heads, each, 1, of.head))
            return op("Reshape", expanded, self.ints(1, of.heads, -1, of.head))
        rows = op("Unsqueeze", op("Gather", op("Shape", x), self.net.const(2, np.int64)), self.ints(0))
        sizes = op("Concat", self.ints(1, of.key_heads, each), rows, self.ints(of.head), axis=0)
        expanded = op("Expand", op("Unsqueeze", x, self.ints(2)), sizes)
        return op("Reshape", expanded, op("Concat", self.ints(1, of.heads), rows, self.ints(of.head), axis=0))
