"""The operator Attention, which has no definition in 8 bits."""

import onnx

from compiler.frontend.draft import Draft, Value
from compiler.frontend.problems import Unsupported
from compiler.frontend.registry import operator


@operator("Attention")
def attention(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Refused: scores and weights of keys lie inside the node in float, and nothing says in which 8-bit steps the
    accelerator could store them."""
    raise Unsupported(
        "its scores and softmax are inside the node in float; export with opset 22 or earlier, so that they are MatMul "
        "and Softmax, and quantise that model"
    )
