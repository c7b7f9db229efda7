"""The linear layers of published decoders for one token: chains of int8 row x int8 or int4 matrix, as QDQ models with
seeded weights.

What lies between the products is left out: attention (the query stands for what it would give; key and value, which a
decoder keeps, are outputs) and norms (whose factors are in the weights). The sums of the residual stream and SwiGLU are
there. A step reads every weight once and multiplies it once, so DRAM is what bounds it.
"""

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.workloads import qdq
from benchmarks.workloads.layers import Shape

INPUT = "token"
OPSET, OPSET_INT4, IR_VERSION = 17, 21, 10
INT4 = helper.tensor_dtype_to_np_dtype(TensorProto.INT4)
STEPS = 30  #: of int8 to a standard deviation: four of them fit
_WEIGHT_STEPS, _INT4_STEPS = 32, 2.5  #: likewise of the weights of a channel


@dataclass(frozen=True)
class DecoderShape:
    """Sizes of a decoder as Llama's are: ``heads`` query heads that share ``key_heads`` heads of keys and values, an
    mlp of ``hidden`` features with a gate, or as GPT-2's are, if not ``gated``. Its input is one embedded token
    [1, width]. ``head``: the product with the vocabulary follows; then the output is [1, vocabulary]. ``int4``: so the
    weights are, which are int8 otherwise."""

    name: str
    width: int
    heads: int
    key_heads: int
    hidden: int
    layers: int
    vocabulary: int
    head: bool = True
    gated: bool = True
    int4: bool = False

    @property
    def in_shape(self) -> Shape:
        """Return the shape of the input."""
        return (1, self.width)

    @property
    def products(self) -> dict[str, tuple[int, int]]:
        """Return inputs and outputs of every product of a layer, by name."""
        width, keys, hidden = self.width, self.width // self.heads * self.key_heads, self.hidden
        found = {
            "query": (width, width), "key": (width, keys), "value": (width, keys), "output": (width, width),
            "gate": (width, hidden), "up": (width, hidden), "down": (hidden, width),
        }  # fmt: skip
        return found if self.gated else {name: sizes for name, sizes in found.items() if name != "gate"}

    @property
    def macs(self) -> int:
        """Return the multiply-accumulates of one inference, as many as there are weights."""
        layer = sum(inputs * outputs for inputs, outputs in self.products.values())
        return self.layers * layer + self.head * self.width * self.vocabulary

    @property
    def weight_bytes(self) -> int:
        """Return the bytes of all weights, packed."""
        return self.macs // 2 if self.int4 else self.macs

    def problem(self) -> str | None:
        """Return what is wrong with the sizes, if anything."""
        return "there must be a layer" if self.layers < 1 else None


DECODERS: dict[str, DecoderShape] = {
    decoder.name: decoder
    for decoder in (
        DecoderShape("linear_stories15m", 288, heads=6, key_heads=6, hidden=768, layers=6, vocabulary=32000),
        DecoderShape("linear_stories42m", 512, heads=8, key_heads=8, hidden=1376, layers=8, vocabulary=32000),
        DecoderShape("linear_smollm2_135m", 576, heads=9, key_heads=3, hidden=1536, layers=30, vocabulary=49152),
    )
}
_NAME = re.compile(rf"(?P<base>{'|'.join(DECODERS)})(_(?P<layers>\d+)(?P<head>_head)?)?(?P<int4>_int4)?")


def parse(name: str) -> DecoderShape | None:
    """Return the decoder that a workload's name stands for, such as ``linear_stories15m`` (all of it),
    ``linear_stories15m_2`` (two layers) or ``linear_stories15m_2_head``, each with ``_int4`` behind it or not; None for
    other names."""
    match = _NAME.fullmatch(name)
    if not match:
        return None
    base = replace(DECODERS[match["base"]], name=name, int4=bool(match["int4"]))
    if not match["layers"]:
        return base
    return replace(base, layers=int(match["layers"]), head=bool(match["head"]))


def model(decoder: DecoderShape, seed: int) -> onnx.ModelProto:
    """Return the checked QDQ model, weights per channel and symmetric. Nearly nothing saturates for inputs as
    :func:`qdq.activations` makes them."""
    chain = ProductChain(np.random.default_rng(seed), decoder.int4)
    chain.tensors[INPUT] = 1 / STEPS
    x = INPUT
    for layer in range(decoder.layers):
        x = chain.layer(f"layer{layer}", x, decoder)
    outputs = [f"layer{layer}.{name}" for layer in range(decoder.layers) for name in ("key", "value")]
    outputs.append(chain.product("logits", x, decoder.width, decoder.vocabulary) if decoder.head else x)
    sizes = {port: decoder.products[port.split(".")[1]][1] for port in outputs[:-1]}
    sizes[outputs[-1]] = decoder.vocabulary if decoder.head else decoder.width
    graph = helper.make_graph(
        chain.nodes, decoder.name, [helper.make_tensor_value_info(INPUT, TensorProto.INT8, decoder.in_shape)],
        [helper.make_tensor_value_info(port, TensorProto.INT8, (1, size)) for port, size in sizes.items()],
        chain.constants,
    )  # fmt: skip
    opset = helper.make_opsetid("", OPSET_INT4 if decoder.int4 else OPSET)
    made = helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)
    made.producer_name = "caesura benchmarks"
    onnx.checker.check_model(made, full_check=True)
    return made


def inputs(decoder: DecoderShape, seed: int | tuple[int, ...]) -> dict[str, npt.NDArray[np.int8]]:
    """Return one token as int8, uniform."""
    return {INPUT: qdq.activations(decoder.in_shape, seed)}


class ProductChain:
    """Nodes in order and constants. ``tensors``: the steps of the int8 tensors so far; all zero points are 0. Methods
    return the name of the int8 tensor that they make. ``int4``: so weights are."""

    def __init__(self, rng: np.random.Generator, int4: bool) -> None:
        self.rng = rng
        self._weights: npt.DTypeLike = INT4 if int4 else np.int8
        self._most = 7 if int4 else 127
        self._steps = _INT4_STEPS if int4 else _WEIGHT_STEPS
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.tensors: dict[str, float] = {}
        self._known = set[str]()

    def layer(self, name: str, x: str, decoder: DecoderShape) -> str:
        """One layer: [1, width] → [1, width]."""
        sizes = decoder.products
        made = {one: self.product(f"{name}.{one}", x, *sizes[one]) for one in ("query", "key", "value")}
        x = self.sum(f"{name}.attended", x, self.product(f"{name}.output", made["query"], *sizes["output"]))
        gate, up = (self.product(f"{name}.{one}", x, *sizes[one]) for one in ("gate", "up"))
        inner = self.swiglu(f"{name}.inner", gate, up)
        return self.sum(f"{name}.result", x, self.product(f"{name}.down", inner, *sizes["down"]))

    def product(self, name: str, x: str, inputs: int, outputs: int, deviation: float = 1.0) -> str:
        """Its result has a standard deviation of about ``deviation``, whatever that of ``x``."""
        weights = np.rint(self.rng.standard_normal((inputs, outputs)) * self._steps).clip(-self._most, self._most)
        scale = self._steps * np.sqrt(inputs) * self.tensors[x] * STEPS
        spread = deviation * self.rng.uniform(0.5, 1.0, outputs) / scale
        weight = f"{name}.weight"
        self._constant(weight, weights, self._weights)
        self._constant(f"{weight}.scale", spread, np.float32)
        self._constant(f"{weight}.zero_point", np.zeros(outputs), self._weights)
        self._node("DequantizeLinear", f"{weight}.real", weight, f"{weight}.scale", f"{weight}.zero_point", axis=1)
        return self._stored(
            name, self._node("MatMul", f"{name}.real", self._real(x), f"{weight}.real"), deviation / STEPS
        )

    def sum(self, name: str, a: str, b: str) -> str:
        step = float(np.hypot(self.tensors[a], self.tensors[b]))
        return self._stored(name, self._node("Add", f"{name}.real", self._real(a), self._real(b)), step)

    def swiglu(self, name: str, gate: str, up: str) -> str:
        curve = self._stored(f"{name}.curve", self._node("Sigmoid", f"{name}.sigmoid", self._real(gate)), 1 / 127)
        product = self._node("Mul", f"{name}.silu.real", self._real(gate), self._real(curve))
        silu = self._stored(f"{name}.silu", product, self.tensors[gate])
        product = self._node("Mul", f"{name}.real", self._real(silu), self._real(up))
        return self._stored(name, product, self.tensors[gate])

    def _constant(self, name: str, value: npt.ArrayLike, dtype: npt.DTypeLike) -> None:
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))

    def _node(self, op_type: str, name: str, *sources: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op_type, sources, [name], f"{name}.{op_type}", **attributes))
        return name

    def _quantisation(self, name: str) -> tuple[str, str]:
        return f"{name}.scale", f"{name}.zero_point"

    def _declared(self, name: str, zero: int = 0) -> None:
        scale, zero_point = self._quantisation(name)
        if scale not in self._known:
            self._known.add(scale)
            self._constant(scale, self.tensors[name], np.float32)
            self._constant(zero_point, zero, np.int8)

    def _stored(self, name: str, real: str, step: float, zero: int = 0) -> str:
        self.tensors[name] = step
        self._declared(name, zero)
        return self._node("QuantizeLinear", name, real, *self._quantisation(name))

    def _real(self, x: str) -> str:
        """Return the real values of an int8 tensor, for one reader."""
        self._declared(x)
        reader = f"{x}.dequantised{len(self.nodes)}"
        return self._node("DequantizeLinear", reader, x, *self._quantisation(x))
