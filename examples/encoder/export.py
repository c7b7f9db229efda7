"""The trained encoder as ONNX, in float: one dynamic dimension, the length."""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from examples.encoder import network
from examples.encoder.tokens import FEATURES

OPSET = 20  #: the first with Gelu
IR_VERSION = 10
INPUT, OUTPUT, LENGTH = "tokens", "logits", "length"


def float_model(parameters: network.Parameters) -> onnx.ModelProto:
    """Build the float model: `tokens` float32 [1, length, 25] → `logits` float32 [1, 10].

    Behind the embedding, tensors are matrices [length, D]: fully connected layers are Gemm nodes, whose biases are
    quantised to 32 bits. Reshapes name no length, so that they hold for each.
    """
    graph = _Graph()
    x = graph.reshape("rows", graph.node("MatMul", "embed", INPUT, "embed.matrix"), (-1, network.WIDTH))
    for layer in range(network.LAYERS):
        x = _layer(graph, f"layer{layer}", x)
    x = graph.reshape("sequence", x, (1, -1, network.WIDTH))
    x = graph.node("GlobalAveragePool", "mean", graph.node("Transpose", "channels", x, perm=[0, 2, 1]))
    graph.dense("classify", graph.node("Flatten", "features", x, axis=1), OUTPUT)

    constants = graph.constants | parameters
    constants["embed.matrix"] = constants.pop("embed.weight").T
    proto = helper.make_graph(
        graph.nodes,
        "encoder",
        [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, [1, LENGTH, FEATURES])],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [1, network.CLASSES])],
        [numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    model.producer_name = "caesura examples/encoder"
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    onnx.checker.check_model(model, full_check=True)
    return model


def _layer(graph: "_Graph", name: str, x: str) -> str:
    """One encoder layer on a matrix [length, D]; returns its result."""
    query, key, value = (graph.dense(f"{name}.{each}", x) for each in network.PROJECTIONS)
    query, value = (graph.heads(each, (0, 2, 1, 3)) for each in (query, value))
    products = graph.node("MatMul", f"{name}.products", query, graph.heads(key, (0, 2, 3, 1)))
    weights = graph.node("Softmax", f"{name}.weights", products, axis=-1)
    mixed = graph.node("MatMul", f"{name}.mixed", weights, value)
    mixed = graph.node("Transpose", f"{name}.joined", mixed, perm=[0, 2, 1, 3])
    attended = graph.dense(f"{name}.output", graph.reshape(f"{name}.merged", mixed, (-1, network.WIDTH)))
    x = graph.norm(f"{name}.norm1", graph.node("Add", f"{name}.add1", x, attended))
    hidden = graph.node("Gelu", f"{name}.gelu", graph.dense(f"{name}.expand", x), approximate="tanh")
    added = graph.dense(f"{name}.contract", hidden)
    return graph.norm(f"{name}.norm2", graph.node("Add", f"{name}.add2", x, added))


class _Graph:
    """Nodes in order, each named after its result, and constants beside the parameters."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}

    def node(self, op_type: str, name: str, *inputs: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op_type, inputs, [name], name, **attributes))
        return name

    def reshape(self, name: str, x: str, shape: tuple[int, ...]) -> str:
        self.constants[f"{name}.shape"] = np.array(shape, np.int64)
        return self.node("Reshape", name, x, f"{name}.shape")

    def dense(self, name: str, x: str, result: str | None = None) -> str:
        """[L, inputs] → [L, outputs]."""
        self.nodes.append(
            helper.make_node("Gemm", [x, f"{name}.weight", f"{name}.bias"], [result or name], name, transB=1)
        )
        return result or name

    def norm(self, name: str, x: str) -> str:
        return self.node(
            "LayerNormalization", name, x, f"{name}.weight", f"{name}.bias", axis=-1, epsilon=network.EPSILON
        )

    def heads(self, x: str, perm: tuple[int, ...]) -> str:
        """[L, D] split into [1, L, heads, D / heads] and transposed."""
        split = self.reshape(f"{x}.split", x, (1, -1, network.HEADS, network.WIDTH // network.HEADS))
        return self.node("Transpose", f"{x}.heads", split, perm=perm)
