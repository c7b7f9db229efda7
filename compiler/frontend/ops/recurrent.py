"""LSTM, GRU and RNN are refused: their cells compute in float inside the node.
:mod:`compiler.quantise.unrolled_cells` makes single operators of them before a model is quantised; where it cannot,
what a float model has of them amid its products is found."""

import onnx

from compiler.frontend.draft import Draft, Value, operator
from compiler.frontend.float_ends import reached
from compiler.frontend.problems import NodeProblem, Unsupported
from compiler.frontend.source import OnnxSource
from compiler.quantise.unrolled_cells import RECURRENT, why_rolled

_PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
_REASON = (
    "its cells compute in float inside the node; caesura quantise of the float model unrolls them where the number of "
    "steps is known, as MatMul, Add, Sigmoid and Tanh"
)


@operator(*RECURRENT)
def recurrent(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Refused: nothing says in which 8-bit steps the accelerator could store states and gates."""
    raise Unsupported(_REASON)


def recurrent_amid(source: OnnxSource) -> list[NodeProblem]:
    """Return the recurrent nodes of a float model that cannot be unrolled and have products before and behind them:
    once those are quantised, they stand amid the network and are refused."""
    nodes = list(source.model.graph.node)
    behind = reached(nodes, _multiplies, lambda node: node.input, lambda node: node.output)
    before = reached(nodes[::-1], _multiplies, lambda node: node.output, lambda node: node.input)
    return [
        NodeProblem(node.name, node.op_type, f"its cells cannot be unrolled: {why_rolled(source.model, node)}")
        for node in nodes
        if node.op_type in RECURRENT
        and any(name in source.producers and source.producers[name].name in behind for name in node.input)
        and any(reader.name in before for name in node.output for reader in source.consumers.get(name, []))
    ]


def _multiplies(node: onnx.NodeProto) -> bool:
    return node.op_type in _PRODUCTS
