"""Transformer encoders shaped like published ones, of any length and number of layers, with seeded weights.

They are written as exporters write them: a fully connected layer is a MatMul and an Add, heads are split and joined by
Reshape and Transpose, scores are divided by √(head size). Reshapes name no length.
"""

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.workloads.layers import Shape

INPUT, MASK, OUTPUT = "tokens", "mask", "encoded"
OPSET = 20  #: the first with Gelu
IR_VERSION = 10
EPSILON = 1e-5
MASKED = -20.0  #: what a mask adds to scores of keys that are none; 8 bits have steps of 0.08 with it
CLASSES = 1000
SCORE_GAIN = 1.5  #: of queries and keys: some keys weigh much more than others

Inputs = dict[str, npt.NDArray[np.float32]]


@dataclass(frozen=True)
class Encoder:
    """Sizes of an encoder. Its input is ``tokens`` [1, length, width], embedded already, or [1, patches, features] with
    ``features``: then the embedding, a class token and positions come first, and ``length`` counts the class token.
    Its output is [1, length, width], or [1, 1000] with ``classified``.
    """

    name: str
    length: int
    width: int
    heads: int
    hidden: int  #: features between the two products of a feed-forward network
    layers: int
    masked: bool = False  #: a second input, ``mask`` [1, 1, 1, length], is added to the scores
    norm_first: bool = False  #: normalise what a block reads, as a ViT does, rather than what it gives, as BERT does
    erf: bool = False  #: Gelu as the chain of operators around Erf that older operator sets need
    classified: bool = False  #: end with the mean of all tokens, or the class token, and a fully connected layer
    features: int = 0

    @property
    def in_shape(self) -> Shape:
        """Return the shape of ``tokens``."""
        return (1, self.length - 1, self.features) if self.features else (1, self.length, self.width)

    @property
    def macs(self) -> int:
        """Return the multiply-accumulates of one inference."""
        tokens, width = self.length, self.width
        layer = tokens * width * (4 * width + 2 * self.hidden + 2 * tokens)
        embedding = (tokens - 1) * self.features * width
        return self.layers * layer + embedding + (width * CLASSES if self.classified else 0)

    def problem(self) -> str | None:
        """Return what is wrong with the sizes, if anything."""
        return "sizes must be at least 1" if min(self.length, self.layers) < 1 else None


ENCODERS: dict[str, Encoder] = {
    encoder.name: encoder
    for encoder in (
        Encoder("bert_base", length=128, width=768, heads=12, hidden=3072, layers=12),
        Encoder("distilbert", length=256, width=768, heads=12, hidden=3072, layers=6),
        Encoder("bert_tiny", length=128, width=128, heads=2, hidden=512, layers=2),
        Encoder("vit_tiny", 197, width=192, heads=3, hidden=768, layers=12, norm_first=True, classified=True),
        Encoder("vit_tiny_patches", 197, 192, 3, 768, 12, norm_first=True, classified=True, features=768),
    )
}
_NAME = re.compile(
    rf"(?P<base>{'|'.join(ENCODERS)})(_(?P<layers>\d+)x(?P<length>\d+))?(?P<masked>_masked)?(?P<erf>_erf)?"
)


def parse(name: str) -> Encoder | None:
    """Return the encoder that a workload's name stands for, such as ``bert_base``, ``bert_base_1x384`` (one layer, 384
    tokens) or ``bert_tiny_2x64_masked_erf``; None for other names."""
    match = _NAME.fullmatch(name)
    if not match:
        return None
    base = ENCODERS[match["base"]]
    layers, length = int(match["layers"] or base.layers), int(match["length"] or base.length)
    masked, erf = bool(match["masked"]), bool(match["erf"])
    return replace(base, name=name, layers=layers, length=length, masked=masked, erf=erf)


def inputs(encoder: Encoder, seed: int | tuple[int, ...]) -> Inputs:
    """Tokens with the spectrum of embedded ones, normalised; a mask leaves a random part at the end out."""
    rng = np.random.default_rng(seed)
    feeds = {INPUT: rng.standard_normal(encoder.in_shape, np.float32)}
    if encoder.masked:
        keys = np.arange(encoder.length)
        kept = int(rng.integers((encoder.length + 1) // 2, encoder.length + 1))
        feeds[MASK] = np.where(keys < kept, 0, MASKED).astype(np.float32).reshape(1, 1, 1, -1)
    return feeds


def float_model(encoder: Encoder, seed: int) -> onnx.ModelProto:
    """Return the encoder with float32 inputs and output, and weights from ``seed``; checked, with all shapes
    inferred."""
    graph = _EncoderGraph(encoder, np.random.default_rng(seed))
    x = graph.embedded() if encoder.features else INPUT
    for layer in range(encoder.layers):
        x = graph.layer(f"layer{layer}", x)
    if encoder.norm_first:
        x = graph.norm("norm", x)
    if encoder.classified:
        x = graph.classified(x)
    shape = [1, CLASSES] if encoder.classified else [1, encoder.length, encoder.width]
    graph.node("Identity", OUTPUT, x)
    feeds = [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, encoder.in_shape)]
    if encoder.masked:
        feeds.append(helper.make_tensor_value_info(MASK, TensorProto.FLOAT, [1, 1, 1, encoder.length]))
    result = helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, shape)
    proto = helper.make_graph(graph.nodes, encoder.name, feeds, [result], graph.constants)
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    model.producer_name = "caesura benchmarks"
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    onnx.checker.check_model(model)
    return model


class _EncoderGraph:
    """Nodes in order, each named after its result, and constants. Methods return the name of their result."""

    def __init__(self, encoder: Encoder, rng: np.random.Generator) -> None:
        self.encoder, self.rng = encoder, rng
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def node(self, op_type: str, name: str, *sources: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op_type, sources, [name], name, **attributes))
        return name

    def constant(self, name: str, value: npt.ArrayLike, dtype: npt.DTypeLike = np.float32) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def layer(self, name: str, x: str) -> str:
        """Attention and feed-forward network, each with a sum and a normalisation: [1, L, D] → [1, L, D]."""
        for kind, block in (("attention", self.attention), ("ffn", self.feed_forward)):
            inner = self.norm(f"{name}.{kind}.norm", x) if self.encoder.norm_first else x
            x = self.node("Add", f"{name}.{kind}.sum", x, block(f"{name}.{kind}", inner))
            if not self.encoder.norm_first:
                x = self.norm(f"{name}.{kind}.norm", x)
        return x

    def attention(self, name: str, x: str) -> str:
        width, size = self.encoder.width, self.encoder.width // self.encoder.heads
        query = self.heads(self.dense(f"{name}.query", x, width, width, SCORE_GAIN), (0, 2, 1, 3))
        key = self.heads(self.dense(f"{name}.key", x, width, width, SCORE_GAIN), (0, 2, 3, 1))
        value = self.heads(self.dense(f"{name}.value", x, width, width), (0, 2, 1, 3))
        scores = self.node("MatMul", f"{name}.products", query, key)
        scores = self.node("Div", f"{name}.scores", scores, self.constant(f"{name}.root", size**0.5))
        if self.encoder.masked:
            scores = self.node("Add", f"{name}.masked", scores, MASK)
        weights = self.node("Softmax", f"{name}.weights", scores, axis=-1)
        mixed = self.node("MatMul", f"{name}.mixed", weights, value)
        mixed = self.node("Transpose", f"{name}.turned", mixed, perm=[0, 2, 1, 3])
        shape = self.constant(f"{name}.joined.shape", [0, -1, width], np.int64)
        return self.dense(f"{name}.output", self.node("Reshape", f"{name}.joined", mixed, shape), width, width)

    def heads(self, x: str, perm: tuple[int, ...]) -> str:
        """[1, L, D] split into [1, L, heads, D / heads] and transposed."""
        heads, width = self.encoder.heads, self.encoder.width
        shape = self.constant(f"{x}.split.shape", [0, -1, heads, width // heads], np.int64)
        return self.node("Transpose", f"{x}.heads", self.node("Reshape", f"{x}.split", x, shape), perm=perm)

    def feed_forward(self, name: str, x: str) -> str:
        x = self.dense(f"{name}.expand", x, self.encoder.width, self.encoder.hidden)
        return self.dense(f"{name}.contract", self.gelu(name, x), self.encoder.hidden, self.encoder.width)

    def gelu(self, name: str, x: str) -> str:
        if not self.encoder.erf:
            return self.node("Gelu", f"{name}.gelu", x)
        scaled = self.node("Div", f"{name}.scaled", x, self.constant(f"{name}.sqrt2", 2**0.5))
        curve = self.node("Erf", f"{name}.erf", scaled)
        curve = self.node("Add", f"{name}.raised", curve, self.constant(f"{name}.one", 1.0))
        product = self.node("Mul", f"{name}.product", x, curve)
        return self.node("Mul", f"{name}.gelu", product, self.constant(f"{name}.half", 0.5))

    def dense(self, name: str, x: str, inputs: int, outputs: int, gain: float = 1.0) -> str:
        """Scales differ between the outputs, which is what per-channel quantisation is for."""
        spread = gain * self.rng.uniform(0.5, 1.5, outputs) / np.sqrt(inputs)
        weight = self.constant(f"{name}.weight", self.rng.standard_normal((inputs, outputs), np.float32) * spread)
        bias = self.constant(f"{name}.bias", self.rng.normal(0, 0.1, outputs))
        return self.node("Add", name, self.node("MatMul", f"{name}.product", x, weight), bias)

    def norm(self, name: str, x: str) -> str:
        width = self.encoder.width
        scale = self.constant(f"{name}.scale", self.rng.normal(1, 0.2, width))
        bias = self.constant(f"{name}.bias", self.rng.normal(0, 0.2, width))
        return self.node("LayerNormalization", name, x, scale, bias, axis=-1, epsilon=EPSILON)

    def embedded(self) -> str:
        """[1, patches, features] → [1, patches + 1, D]: behind a class token, and with positions."""
        length, width = self.encoder.length, self.encoder.width
        x = self.dense("patches", INPUT, self.encoder.features, width)
        x = self.node("Concat", "joined", self.constant("class_token", self.rng.normal(size=(1, 1, width))), x, axis=1)
        positions = self.constant("positions", self.rng.normal(0, 0.5, (1, length, width)))
        return self.node("Add", "embedded", x, positions)

    def classified(self, x: str) -> str:
        """[1, L, D] → [1, 1000], by the class token if there is one, else by the mean of all tokens."""
        width = self.encoder.width
        if self.encoder.features:
            x = self.node("Gather", "class", x, self.constant("first", 0, np.int64), axis=1)
        else:
            x = self.node("GlobalAveragePool", "mean", self.node("Transpose", "channels", x, perm=[0, 2, 1]))
            x = self.node("Flatten", "flat", x, axis=1)
        return self.dense("logits", x, width, CLASSES)
