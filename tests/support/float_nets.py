"""Small float networks with the structure of well-known ones, for onnxruntime's own quantiser."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from sim.host import session

SHAPE = (1, 3, 32, 32)


class FloatNet:
    """A float model under construction, input ``in`` of ``SHAPE``."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def const(self, value, dtype=np.float32) -> str:
        name = f"const{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def random(self, *shape: int) -> str:
        return self.const(self.rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape))

    def node(self, op: str, *inputs: str, **attributes) -> str:
        name = f"/net/{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"{name}/node", **attributes))
        return name

    def split(self, x: str, *sizes: int, axis: int = 1) -> list[str]:
        """The parts of ``x``, of ``sizes`` along an axis."""
        first = self.node("Split", x, self.const(sizes, np.int64), axis=axis)
        self.nodes[-1].output.extend(f"{first}/{i}" for i in range(1, len(sizes)))
        return list(self.nodes[-1].output)

    def conv(self, x: str, cin: int, cout: int, kernel: int, stride: int = 1, group: int = 1) -> str:
        weights, bias = self.random(cout, cin // group, kernel, kernel), self.const(self.rng.normal(0, 0.1, cout))
        pads = [kernel // 2] * 4
        return self.node("Conv", x, weights, bias, strides=[stride] * 2, pads=pads, group=group)

    def dense(self, x: str, cin: int, cout: int) -> str:
        product = self.node("MatMul", x, self.random(cin, cout))
        return self.node("Add", product, self.const(self.rng.normal(0, 0.1, cout)))

    def model(self, output: str) -> onnx.ModelProto:
        x = helper.make_tensor_value_info("in", TensorProto.FLOAT, SHAPE)
        y = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "net", [x], [y], self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
        shape = session(model).get_outputs()[0].shape
        model.graph.output[0].CopyFrom(helper.make_tensor_value_info(output, TensorProto.FLOAT, shape))
        return model


def mobilenet_v2() -> onnx.ModelProto:
    net = FloatNet()

    def relu6(x: str) -> str:
        return net.node("Clip", x, net.const(0.0), net.const(6.0))

    y = relu6(net.conv("in", 3, 8, 3, 2))
    for stride, cin, cout in ((1, 8, 8), (2, 8, 12), (1, 12, 12)):
        wide = relu6(net.conv(y, cin, 4 * cin, 1))
        deep = relu6(net.conv(wide, 4 * cin, 4 * cin, 3, stride, 4 * cin))
        narrow = net.conv(deep, 4 * cin, cout, 1)
        y = net.node("Add", y, narrow) if stride == 1 and cin == cout else narrow
    y = net.node("Flatten", net.node("GlobalAveragePool", relu6(net.conv(y, 12, 24, 1))))
    return net.model(net.node("Gemm", y, net.random(10, 24), net.const(np.ones(10)), transB=1))


def mobilenet_v3() -> onnx.ModelProto:
    net = FloatNet()
    y = net.node("HardSwish", net.conv("in", 3, 8, 3, 2))
    deep = net.node("Relu", net.conv(net.node("HardSwish", net.conv(y, 8, 16, 1)), 16, 16, 3, 1, 16))
    gate = net.node("Relu", net.conv(net.node("GlobalAveragePool", deep), 16, 4, 1))
    gate = net.node("HardSigmoid", net.conv(gate, 4, 16, 1), alpha=1 / 6, beta=0.5)
    y = net.node("Add", y, net.conv(net.node("Mul", deep, gate), 16, 8, 1))
    y = net.dense(net.node("ReduceMean", y, axes=[2, 3], keepdims=0), 8, 10)
    return net.model(net.node("Softmax", y, axis=1))


def inception() -> onnx.ModelProto:
    net = FloatNet()
    window = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    y = net.node("MaxPool", net.node("Relu", net.conv("in", 3, 8, 5, 2)), strides=[2, 2], **window)
    one = net.node("Relu", net.conv(y, 8, 6, 1))
    three = net.node("Relu", net.conv(net.node("Relu", net.conv(y, 8, 4, 1)), 4, 8, 3))
    mean = net.node("Relu", net.conv(net.node("AveragePool", y, **window), 8, 4, 1))
    y = net.node("Concat", one, three, mean, net.conv(net.node("MaxPool", y, **window), 8, 4, 1), axis=1)
    y = net.node("Tanh", net.conv(net.node("LeakyRelu", net.conv(y, 22, 8, 3), alpha=0.1), 8, 8, 3))
    y = net.node("Mul", y, net.node("Sigmoid", net.conv(y, 8, 8, 1)))
    y = net.node("Reshape", y, net.const([1, -1], np.int64))
    return net.model(net.node("Gemm", y, net.random(512, 10), net.const(np.ones(10))))


def shufflenet() -> onnx.ModelProto:
    net = FloatNet()
    y = net.conv(net.node("Relu", net.conv("in", 3, 8, 3, 2)), 8, 16, 1, 1, 2)
    y = net.node("Reshape", y, net.const([1, 2, 8, 16, 16], np.int64))
    y = net.node("Transpose", y, perm=[0, 2, 1, 3, 4])
    y = net.conv(net.node("Reshape", y, net.const([1, 16, 16, 16], np.int64)), 16, 16, 3, 1, 16)
    y = net.node("Pad", y, net.const([0, 0, 1, 1, 0, 0, 1, 1], np.int64), net.const(0.0))
    y = net.node("Relu", net.node("Conv", y, net.random(8, 16, 3, 3), strides=[2, 2]))
    return net.model(net.node("MatMul", net.node("Transpose", y, perm=[0, 2, 3, 1]), net.random(8, 10)))


def shufflenet_v2() -> onnx.ModelProto:
    net = FloatNet()
    y = net.node("Relu", net.conv("in", 3, 16, 3, 2))
    for _ in range(2):
        kept, y = net.split(y, 8, 8)
        y = net.node("Relu", net.conv(y, 8, 8, 1))
        y = net.node("Relu", net.conv(net.conv(y, 8, 8, 3, 1, 8), 8, 8, 1))
        y = net.node("Reshape", net.node("Concat", kept, y, axis=1), net.const([1, 2, 8, 16, 16], np.int64))
        y = net.node("Reshape", net.node("Transpose", y, perm=[0, 2, 1, 3, 4]), net.const([1, 16, 16, 16], np.int64))
    return net.model(net.conv(y, 16, 12, 1))


def yolo() -> onnx.ModelProto:
    """Every second pixel, as the focus of YOLOv5 takes them, a C2f block of YOLOv8, and pyramid pooling."""
    net = FloatNet()

    def halved(x: str, first: int, axis: int) -> str:
        return net.node("Slice", x, *(net.const([n], np.int64) for n in (first, 32, axis, 2)))

    def silu(x: str) -> str:
        return net.node("Mul", x, net.node("Sigmoid", x))

    y = net.conv("in", 3, 3, 1)
    rows = [halved(y, first, 2) for first in (0, 1)]
    y = net.node("Concat", *(halved(part, first, 3) for first in (0, 1) for part in rows), axis=1)
    parts = net.split(silu(net.conv(y, 12, 16, 3)), 8, 8)
    deep = silu(net.conv(silu(net.conv(parts[-1], 8, 8, 3)), 8, 8, 3))
    parts.append(net.node("Add", parts[-1], deep))
    y = silu(net.conv(net.node("Concat", *parts, axis=1), 24, 8, 1))
    pools = [y]
    for _ in range(2):
        pools.append(net.node("MaxPool", pools[-1], kernel_shape=[5, 5], pads=[2] * 4, strides=[1, 1]))
    return net.model(net.conv(net.node("Concat", *pools, axis=1), 24, 9, 1))


def window_attention() -> onnx.ModelProto:
    """Patches whose rows and columns are shifted; queries, keys and values are parts of one product. Its weights are no
    softmax, whose golden kernel rounds in its own way."""
    net = FloatNet()
    y = net.node("Transpose", net.conv("in", 3, 16, 4, 4), perm=[0, 2, 3, 1])
    for axis in (1, 2):
        ends = [[net.const([n], np.int64) for n in each] for each in ((3, 100, axis), (0, 3, axis))]
        y = net.node("Concat", *(net.node("Slice", y, *each) for each in ends), axis=axis)
    y = net.node("Reshape", y, net.const([1, -1, 16], np.int64))
    wide = net.node("Add", net.node("MatMul", y, net.random(16, 48)), net.const(net.rng.normal(0, 0.1, 48)))
    q, k, v = net.split(wide, 16, 16, 16, axis=-1)
    scores = net.node("MatMul", q, net.node("Transpose", k, perm=[0, 2, 1]))
    weights = net.node("Sigmoid", net.node("Mul", scores, net.const(0.25)))
    return net.model(net.node("MatMul", net.node("MatMul", weights, v), net.random(16, 10)))


NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    "mobilenet_v2": mobilenet_v2,
    "mobilenet_v3": mobilenet_v3,
    "inception": inception,
    "shufflenet": shufflenet,
    "shufflenet_v2": shufflenet_v2,
    "yolo": yolo,
    "window_attention": window_attention,
}


class _Noise(CalibrationDataReader):
    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self.batches = iter([{"in": rng.normal(0, 1, SHAPE).astype(np.float32)} for _ in range(4)])

    def get_next(self):
        return next(self.batches, None)


def quantised(
    name: str, folder: Path, form: QuantFormat, activations: QuantType, weights: QuantType, per_channel: bool
) -> Path:
    """Network ``name`` quantised by onnxruntime; the path of the model."""
    given, result = folder / f"{name}.onnx", folder / f"{name}_int8.onnx"
    onnx.save(NETWORKS[name](), str(given))
    quantize_static(
        str(given), str(result), _Noise(), quant_format=form, activation_type=activations, weight_type=weights,
        per_channel=per_channel,
    )  # fmt: skip
    return result
