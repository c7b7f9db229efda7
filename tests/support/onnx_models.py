"""Small quantised ONNX models, built node by node with explicit scales and seeded weights."""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from sim.host import session

_TYPES = {
    "int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "float32": TensorProto.FLOAT, "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
}  # fmt: skip


class Net:
    """A model under construction. Methods that add a node return the name of its (first) output."""

    def __init__(self, opset: int = 13, seed: int = 0):
        self.opset = opset
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self._count = 0

    def _name(self, base: str) -> str:
        self._count += 1
        return f"{base}/{self._count};:0"

    def input(self, shape, dtype: str = "int8", name: str = "x") -> str:
        self.inputs.append(helper.make_tensor_value_info(name, _TYPES[dtype], shape))
        return name

    def const(self, value, dtype=None, name: str | None = None) -> str:
        name = name or self._name("const")
        self.initializers.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def node(self, op: str, inputs, outputs: int = 1, domain: str = "", name: str | None = None, **attributes) -> str:
        names = [self._name(op) for _ in range(outputs)]
        label = self._name(op) if name is None else name
        self.nodes.append(helper.make_node(op, list(inputs), names, name=label, domain=domain, **attributes))
        return names[0]

    def dq(self, x: str, scale, zero_point=0, dtype: str = "int8", axis: int | None = None) -> str:
        more: dict[str, Any] = {} if axis is None else {"axis": axis}
        parameters = [self.const(scale, np.float32), self.const(zero_point, dtype)]
        return self.node("DequantizeLinear", [x, *parameters], **more)

    def q(self, x: str, scale, zero_point=0, dtype: str = "int8") -> str:
        return self.node("QuantizeLinear", [x, self.const(scale, np.float32), self.const(zero_point, dtype)])

    def array(self, shape, dtype: str = "int8", limit: int | None = None):
        info = np.iinfo(dtype)
        low, high = (info.min, info.max) if limit is None else (max(info.min, -limit), min(info.max, limit))
        return self.rng.integers(low, high + 1, shape).astype(dtype)

    def weights(self, shape, axis: int | None = 0, dtype: str = "int8", zero_point: int = 0) -> tuple[str, Any]:
        """Dequantised weights and their scale: per index of ``axis``, or one."""
        if axis is None:
            scale = np.float32(0.0123)
            return self.dq(self.const(self.array(shape, dtype)), scale, zero_point, dtype), scale
        scale = self.rng.uniform(0.002, 0.02, shape[axis]).astype(np.float32)
        zeros = np.full(shape[axis], zero_point)
        return self.dq(self.const(self.array(shape, dtype)), scale, zeros, dtype, axis), scale

    def bias(self, channels: int, scale) -> str:
        """Dequantised int32 bias."""
        scale = np.broadcast_to(np.asarray(scale, np.float32), channels)
        data = self.const(self.rng.integers(-2000, 2000, channels), np.int32)
        return self.dq(data, scale, np.zeros(channels, np.int32), "int32", 0)

    def conv(self, x: str, x_scale: float, shape, axis: int | None = 0, dtype: str = "int8", **attributes) -> str:
        """Conv of dequantised ``x`` with weights of OIHW ``shape`` and bias."""
        weights, scale = self.weights(shape, axis, dtype)
        bias = self.bias(shape[0], np.float32(x_scale) * scale)
        return self.node("Conv", [x, weights, bias], **attributes)

    def model(self, *outputs: str, dtype: str = "int8") -> onnx.ModelProto:
        """The model; onnxruntime says which shapes its outputs have."""
        infos = [helper.make_tensor_value_info(name, _TYPES[dtype], None) for name in outputs]
        graph = helper.make_graph(self.nodes, "net", self.inputs, infos, self.initializers)
        imports = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        imports.append(helper.make_opsetid("ai.onnx.ml", 2))
        model = helper.make_model(graph, opset_imports=imports, ir_version=10 if self.opset >= 21 else 8)
        for info, found in zip(graph.output, session(model).get_outputs(), strict=True):
            info.CopyFrom(helper.make_tensor_value_info(info.name, _TYPES[dtype], found.shape))
        model.graph.CopyFrom(graph)
        return model


def sandwich(op, inputs, target, opset: int = 13, seed: int = 0, constants=(), dtype: str = "int8", **attributes):
    """DequantizeLinear -> ``op`` -> QuantizeLinear. ``inputs``: (shape, scale, zero point) each; ``target``: (scale,
    zero point)."""
    net = Net(opset, seed)
    reals = []
    for index, (shape, scale, zero) in enumerate(inputs):
        reals.append(net.dq(net.input(shape, dtype, f"x{index}"), scale, zero, dtype))
    result = net.node(op, [*reals, *(net.const(c) for c in constants)], **attributes)
    scale, zero_point = target
    return net.model(net.q(result, scale, zero_point, dtype), dtype=dtype)
