"""Whole decoders for one token with its past: embedding, root mean square norms, rotary positions, attention of grouped
queries over a cache of keys and values, SwiGLU, and the product with the vocabulary; QDQ models with seeded weights.

The past is an input, to which a Concat adds the token's own keys and values: what comes out is the past of the next
token. A step reads every weight and all of the cache once.
"""

import re
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

from benchmarks.workloads.decoders import DECODERS, STEPS, DecoderShape, ProductChain
from benchmarks.workloads.layers import Shape

IDS, POSITION, PAST = "ids", "position", "past"
OPSET, IR_VERSION = 23, 10
_THETA = 10000.0  #: base of the rotary positions
_KINDS = ("key", "value")


@dataclass(frozen=True)
class DecoderStep:
    """One token of ``decoder`` that attends to ``context`` of them, itself included."""

    name: str
    decoder: DecoderShape
    context: int

    @property
    def head(self) -> int:
        """Return the features of a head."""
        return self.decoder.width // self.decoder.heads

    @property
    def keys(self) -> int:
        """Return the features of all heads of keys."""
        return self.head * self.decoder.key_heads

    @property
    def states(self) -> list[str]:
        """Return what is kept of each layer, keys before values."""
        return [f"layer{layer}.{kind}" for layer in range(self.decoder.layers) for kind in _KINDS]

    @property
    def cache(self) -> int:
        """Return the bytes of keys and values that a step reads."""
        return 2 * self.decoder.layers * self.context * self.keys

    @property
    def macs(self) -> int:
        """Return the multiply-accumulates of one inference."""
        return self.decoder.macs + 2 * self.decoder.layers * self.context * self.decoder.width

    def problem(self) -> str | None:
        """Return what is wrong with the sizes, if anything."""
        return self.decoder.problem() or ("the context must have two tokens" if self.context < 2 else None)


_NAMES = {name.removeprefix("linear_"): decoder for name, decoder in DECODERS.items()}
_NAMES["gpt2_block"] = DecoderShape("gpt2_block", 256, 4, 4, 1024, layers=1, vocabulary=512, head=False, gated=False)
_NAME = re.compile(
    rf"(?P<base>{'|'.join(_NAMES)})(_(?P<layers>\d+)(?P<head>_head)?)?(?P<int4>_int4)?_context(?P<context>\d+)"
)


def parse(name: str) -> DecoderStep | None:
    """Return the step that a workload's name stands for, such as ``stories15m_context256``, or
    ``stories15m_2_head_context256`` with two layers; None for other names."""
    match = _NAME.fullmatch(name)
    if not match:
        return None
    decoder = _NAMES[match["base"]]
    if match["layers"]:
        decoder = replace(decoder, layers=int(match["layers"]), head=bool(match["head"]))
    return DecoderStep(name, replace(decoder, int4=bool(match["int4"])), int(match["context"]))


def inputs(step: DecoderStep, seed: int | tuple[int, ...]) -> dict[str, npt.NDArray]:
    """Return a token, its position, and a past of normal distribution."""
    rng, last = np.random.default_rng(seed), step.context - 1
    shape = (1, step.decoder.key_heads, last, step.head)
    given: dict[str, npt.NDArray] = {
        IDS: rng.integers(0, step.decoder.vocabulary, (1, 1)),
        POSITION: np.array([[last]]),
    }
    return given | {f"{PAST}.{name}": rng.standard_normal(shape, np.float32) for name in step.states}


def model(step: DecoderStep, seed: int) -> onnx.ModelProto:
    """Return the checked QDQ model, whose dynamic dimension ``PAST`` is the rows of the past."""
    chain, decoder = _StepChain(np.random.default_rng(seed), step), step.decoder
    x = chain.embedded()
    for layer in range(decoder.layers):
        x = chain.step_layer(f"layer{layer}", x)
    last = x
    if decoder.head:
        last = chain.product("logits", chain.norm("normal", x), decoder.width, decoder.vocabulary)
    result = chain.real_output(last, "result")
    width = decoder.vocabulary if decoder.head else decoder.width

    def info(name: str, *shape: int | str, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, shape)

    given = [info(name, 1, 1, kind=TensorProto.INT64) for name in (IDS, POSITION)]
    given += [info(f"{PAST}.{name}", 1, decoder.key_heads, PAST, step.head) for name in step.states]
    made = [
        info(result, 1, 1, width),
        *(info(name, 1, decoder.key_heads, f"{PAST} + 1", step.head) for name in step.states),
    ]
    graph = helper.make_graph(chain.nodes, step.name, given, made, chain.constants)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    proto.producer_name = "caesura benchmarks"
    onnx.checker.check_model(proto)
    return proto


class _StepChain(ProductChain):
    """Adds what lies between the products."""

    def __init__(self, rng: np.random.Generator, step: DecoderStep) -> None:
        super().__init__(rng, step.decoder.int4)
        self._step = step
        if not step.decoder.gated:  # as GPT-2, which adds a row for each position to the embedding
            return
        angles = np.outer(np.arange(step.context), _THETA ** (-np.arange(0, step.head, 2) / step.head))
        tables = {"cos": np.cos(angles), "sin": np.sin(angles)}
        self._turns = [self.row(name, POSITION, step.context, step.head, np.tile(t, 2)) for name, t in tables.items()]

    def row(self, name: str, number: str, rows: int, width: int, real: npt.NDArray | None = None) -> str:
        """The row of a table [rows, width] that an input says: [1, 1, width]."""
        stored = np.rint((self.rng.standard_normal((rows, width)) if real is None else real * 127 / STEPS) * STEPS)
        self._constant(f"{name}.table", np.clip(stored, -127, 127), np.int8)
        self.tensors[name] = 1 / STEPS if real is None else 1 / 127
        return self._node("Gather", name, f"{name}.table", number)

    def embedded(self) -> str:
        """Return the embedding of the token, with that of its position where heads are not turned by that."""
        decoder = self._step.decoder
        x = self.row("embedded", IDS, decoder.vocabulary, decoder.width)
        if decoder.gated:
            return x
        return self.sum("placed", x, self.row("place", POSITION, self._step.context, decoder.width))

    def step_layer(self, name: str, x: str) -> str:
        """One layer: [1, 1, width] → [1, 1, width]."""
        decoder, sizes = self._step.decoder, self._step.decoder.products
        inner = self.norm(f"{name}.before", x)
        made = {one: self.product(f"{name}.new_{one}", inner, *sizes[one]) for one in _KINDS}
        scaled = self.product(f"{name}.new_query", inner, *sizes["query"], deviation=self._step.head**-0.5)
        query = self._turned(f"{name}.query", scaled, decoder.heads)
        key = self._turned(f"{name}.turned", made["key"], decoder.key_heads)
        value = self._apart(f"{name}.value.apart", self._real(made["value"]), decoder.key_heads)
        keys = self._kept(f"{name}.key", self._real(key))
        values = self._kept(f"{name}.value", value)
        mixed = self._attention(f"{name}.mixed", query, keys, values)
        x = self.sum(f"{name}.attended", x, self.product(f"{name}.output", mixed, *sizes["output"]))
        inner = self.norm(f"{name}.behind", x)
        up = self.product(f"{name}.up", inner, *sizes["up"])
        if decoder.gated:
            inner = self.swiglu(f"{name}.inner", self.product(f"{name}.gate", inner, *sizes["gate"]), up)
        else:
            inner = self._stored(f"{name}.inner", self._node("Gelu", f"{name}.gelu", self._real(up)), 1 / STEPS)
        return self.sum(f"{name}.result", x, self.product(f"{name}.down", inner, *sizes["down"]))

    def norm(self, name: str, x: str) -> str:
        gain, kind = f"{name}.gain", "RMSNormalization" if self._step.decoder.gated else "LayerNormalization"
        self._constant(gain, self.rng.uniform(0.5, 1.0, self._step.decoder.width), np.float32)
        return self._stored(name, self._node(kind, f"{name}.real", self._real(x), gain, axis=-1), 1 / STEPS)

    def real_output(self, x: str, name: str) -> str:
        self._declared(x)
        return self._node("DequantizeLinear", name, x, *self._quantisation(x))

    def _apart(self, name: str, real: str, heads: int) -> str:
        """[1, 1, heads * head] → [1, heads, 1, head]."""
        shaped = self._shaped(f"{name}.shaped", real, (1, 1, heads, self._step.head))
        return self._node("Transpose", name, shaped, perm=[0, 2, 1, 3])

    def _shaped(self, name: str, real: str, shape: Shape) -> str:
        self._constant(f"{name}.shape", shape, np.int64)
        return self._node("Reshape", name, real, f"{name}.shape")

    def _turned(self, name: str, x: str, heads: int) -> str:
        """Return ``x`` with heads apart, the halves of each turned by the angles of the position."""
        size, parts = self._step.head, list[str]()
        x = self._stored(f"{name}.apart", self._apart(f"{name}.apart.real", self._real(x), heads), self.tensors[x])
        if not self._step.decoder.gated:
            return x
        for part, (low, high) in enumerate(((size // 2, size), (0, size // 2))):
            bounds = {"starts": low, "ends": high, "axes": 3}
            for one, bound in bounds.items():
                self._constant(f"{name}.{part}.{one}", [bound], np.int64)
            parts.append(self._node("Slice", f"{name}.{part}", self._real(x), *(f"{name}.{part}.{b}" for b in bounds)))
        parts[0] = self._node("Neg", f"{name}.less", parts[0])
        parts[0] = self._real(self._stored(f"{name}.less.stored", parts[0], self.tensors[x]))
        other = self._stored(
            f"{name}.other", self._node("Concat", f"{name}.other.real", *parts, axis=3), self.tensors[x]
        )
        sides = [
            self._stored(side, self._node("Mul", f"{side}.real", self._real(one), self._real(turn)), self.tensors[x])
            for side, one, turn in zip((f"{name}.along", f"{name}.across"), (x, other), self._turns, strict=True)
        ]
        total = self._node("Add", f"{name}.sum", *map(self._real, sides))
        return self._stored(f"{name}.turned", total, self.tensors[x])

    def _kept(self, name: str, new: str) -> str:
        """Return the real values of the past with ``new`` behind it, which also come out as ``name``."""
        step, past = 1 / STEPS, f"{PAST}.{name}"
        kept = self._real(self._stored(f"{name}.past", past, step))
        whole = self._node("Concat", f"{name}.whole", kept, self._real(self._stored(f"{name}.row", new, step)), axis=2)
        return self.real_output(self._stored(f"{name}.kept", whole, step), name)

    def _attention(self, name: str, query: str, keys: str, values: str) -> str:
        decoder = self._step.decoder
        shared = [self._shared(f"{name}.{kind}", one) for kind, one in zip(_KINDS, (keys, values), strict=True)]
        turned = self._node("Transpose", f"{name}.turned", shared[0], perm=[0, 1, 3, 2])
        product = self._node("MatMul", f"{name}.products", self._real(query), turned)
        scores = self._stored(f"{name}.scores", product, 1 / STEPS)
        weights = self._node("Softmax", f"{name}.softmax", self._real(scores), axis=-1)
        weights = self._stored(f"{name}.weights", weights, 1 / 256, -128)
        mixed = self._stored(
            f"{name}.heads", self._node("MatMul", f"{name}.sums", self._real(weights), shared[1]), 1 / STEPS / 4
        )
        joined = self._node("Transpose", f"{name}.joined", self._real(mixed), perm=[0, 2, 1, 3])
        return self._stored(name, self._shaped(f"{name}.flat", joined, (1, 1, decoder.width)), self.tensors[mixed])

    def _shared(self, name: str, x: str) -> str:
        """Return each head of keys or values once for every query head of its group."""
        step, decoder = self._step, self._step.decoder
        if decoder.heads == decoder.key_heads:
            return x
        self._constant(f"{name}.axis", [2], np.int64)
        self._constant(f"{name}.group", [1, 1, decoder.heads // decoder.key_heads, 1, 1], np.int64)
        one = self._node("Unsqueeze", f"{name}.one", x, f"{name}.axis")
        wide = self._node("Expand", f"{name}.wide", one, f"{name}.group")
        return self._shaped(f"{name}.shared", wide, (1, decoder.heads, -1, step.head))
