"""The compiler's intermediate representation: a graph of quantised tensors, and the operators the accelerator runs."""

from compiler.ir.graph import (
    CompileError,
    GoldenRule,
    Graph,
    NumberRange,
    Operation,
    Port,
    Requantisation,
    Tensor,
    TensorValue,
)
from compiler.ir.moves import Concat, Host, Pad, Permute, Repeat, Reshape, Shuffle, Slice
from compiler.ir.products import Blend, Conv, Pool, Product, maximum_steps, spanned
from compiler.ir.steps import Append, Lookup, StateLoad
from compiler.ir.vector import BINARY, Eltwise, LayerNorm, RmsNorm, Slope, Softmax, Table

__all__ = [
    "BINARY",
    "Append",
    "Blend",
    "CompileError",
    "Concat",
    "Conv",
    "Eltwise",
    "GoldenRule",
    "Graph",
    "Host",
    "LayerNorm",
    "Lookup",
    "NumberRange",
    "Operation",
    "Pad",
    "Permute",
    "Pool",
    "Port",
    "Product",
    "Repeat",
    "Requantisation",
    "Reshape",
    "RmsNorm",
    "Shuffle",
    "Slice",
    "Slope",
    "Softmax",
    "StateLoad",
    "Table",
    "Tensor",
    "TensorValue",
    "maximum_steps",
    "spanned",
]  # fmt: skip
