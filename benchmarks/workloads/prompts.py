"""Layers of decoders over a whole prompt, in the operators of opset 23, quantised as ``caesura quantise`` does."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.workloads.decoders import DECODERS, DecoderShape
from benchmarks.workloads.layers import Shape

INPUT, OUTPUT = "x", "y"
_OPSET, _IR_VERSION = 23, 10
_THETA = 10000.0  #: base of the rotary positions


@dataclass(frozen=True)
class Prompt:
    """``tokens`` embedded tokens through the layers of ``decoder``, without the product with the vocabulary."""

    name: str
    decoder: DecoderShape
    tokens: int

    @property
    def in_shape(self) -> Shape:
        """Return the shape of the input."""
        return (1, self.tokens, self.decoder.width)

    @property
    def macs(self) -> int:
        """Return the multiply-accumulates of one inference."""
        layer = sum(inputs * outputs for inputs, outputs in self.decoder.products.values())
        return self.decoder.layers * self.tokens * (layer + 2 * self.tokens * self.decoder.width)

    def problem(self) -> str | None:
        """Return what is wrong with the sizes, if anything."""
        return self.decoder.problem() or ("there must be two tokens" if self.tokens < 2 else None)


_NAMES = {name.removeprefix("linear_"): decoder for name, decoder in DECODERS.items()}
_NAME = re.compile(rf"(?P<base>{'|'.join(_NAMES)})_(?P<layers>\d+)_prompt(?P<tokens>\d+)")


def parse(name: str) -> Prompt | None:
    """Return the prompt that a workload's name stands for, such as ``stories15m_1_prompt128``, one layer over 128
    tokens; None for other names."""
    match = _NAME.fullmatch(name)
    if not match:
        return None
    base, layers = _NAMES[match["base"]], int(match["layers"])
    return Prompt(name, DecoderShape(
        base.name, base.width, base.heads, base.key_heads, base.hidden, layers, base.vocabulary, head=False
    ), int(match["tokens"]))  # fmt: skip


def inputs(prompt: Prompt, seed: int | tuple[int, ...]) -> dict[str, npt.NDArray[np.float32]]:
    """Return embedded tokens of normal distribution."""
    return {INPUT: np.random.default_rng(seed).standard_normal(prompt.in_shape, np.float32)}


def float_model(prompt: Prompt, seed: int) -> onnx.ModelProto:
    """Return the checked float model, seeded weights."""
    made = _Layers(prompt, np.random.default_rng(seed))
    x = INPUT
    for layer in range(prompt.decoder.layers):
        x = made.layer(f"layer{layer}", x)
    made.nodes[-1].output[0] = OUTPUT
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, prompt.in_shape) for name in (INPUT, OUTPUT)]
    graph = helper.make_graph(made.nodes, prompt.name, ends[:1], ends[1:], made.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)
    model.producer_name = "caesura benchmarks"
    onnx.checker.check_model(model)
    return model


class _Layers:
    """Nodes in order and constants. Methods return the name of what they make."""

    def __init__(self, prompt: Prompt, rng: np.random.Generator) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._decoder, self._rng = prompt.decoder, rng
        head = prompt.decoder.width // prompt.decoder.heads
        angles = np.outer(np.arange(prompt.tokens), _THETA ** (-np.arange(0, head, 2) / head))
        tables = {"cos": np.cos(angles), "sin": np.sin(angles)}
        self._turns = [self._constant(name, table.astype(np.float32)) for name, table in tables.items()]
        self._turns.append(self._constant("places", np.arange(prompt.tokens)[None]))

    def layer(self, name: str, x: str) -> str:
        """One layer: (1, tokens, width) → (1, tokens, width)."""
        decoder = self._decoder
        inner = self._norm(f"{name}.before", x)
        query, key, value = (self._dense(f"{name}.{one}", inner, one) for one in ("query", "key", "value"))
        query = self._node("RotaryEmbedding", f"{name}.turned_query", query, *self._turns, num_heads=decoder.heads)
        key = self._node("RotaryEmbedding", f"{name}.turned_key", key, *self._turns, num_heads=decoder.key_heads)
        heads = {"q_num_heads": decoder.heads, "kv_num_heads": decoder.key_heads}
        mixed = self._node("Attention", f"{name}.mixed", query, key, value, is_causal=1, **heads)
        x = self._node("Add", f"{name}.attended", x, self._dense(f"{name}.output", mixed, "output"))
        inner = self._norm(f"{name}.behind", x)
        gate, up = (self._dense(f"{name}.{one}", inner, one) for one in ("gate", "up"))
        opened = self._node("Mul", f"{name}.silu", gate, self._node("Sigmoid", f"{name}.curve", gate))
        inner = self._node("Mul", f"{name}.inner", opened, up)
        return self._node("Add", f"{name}.result", x, self._dense(f"{name}.down", inner, "down"))

    def _norm(self, name: str, x: str) -> str:
        gain = self._rng.uniform(0.5, 1.5, self._decoder.width).astype(np.float32)
        return self._node("RMSNormalization", name, x, self._constant(f"{name}.gain", gain))

    def _dense(self, name: str, x: str, product: str) -> str:
        shape = self._decoder.products[product]
        weights = (self._rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)
        return self._node("MatMul", name, x, self._constant(f"{name}.weight", weights))

    def _constant(self, name: str, value: npt.NDArray) -> str:
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def _node(self, op_type: str, name: str, *sources: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op_type, sources, [name], f"{name}.{op_type}", **attributes))
        return name
