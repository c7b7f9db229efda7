"""Float ONNX graphs of operator set 17 with seeded constants, an operator at a time."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.workloads.layers import Shape, windows

OPSET = 17
IR_VERSION = 8
INPUT = "input"


class OperatorGraph:
    """Nodes and constants in order. Methods add one operator and return its result's name.

    Tensors have shapes with a batch of 1. ``macs`` and ``parameters`` count as published tables do: padding is
    multiplied, normalisation has two parameters a channel although it is folded.
    """

    def __init__(self, name: str, in_shape: Shape, seed: int) -> None:
        self.name, self.in_shape = name, in_shape
        self.macs = self.parameters = 0
        self.shapes: dict[str, Shape] = {INPUT: in_shape}
        self._rng = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def model(self, *outputs: str) -> onnx.ModelProto:
        """Return the graph with these results as its float outputs; checked, with all shapes inferred."""
        ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, self.shapes[name]) for name in outputs]
        feed = helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, self.in_shape)
        graph = helper.make_graph(self._nodes, self.name, [feed], ports, list(self._constants.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        model.producer_name = "caesura benchmarks"
        model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
        onnx.checker.check_model(model)
        for entry in (*model.graph.value_info, *model.graph.output):
            inferred = tuple(dim.dim_value for dim in entry.type.tensor_type.shape.dim)
            if inferred != self.shapes[entry.name]:
                raise ValueError(f"{self.name}: {entry.name} has shape {inferred}, not {self.shapes[entry.name]}")
        return model

    def channels(self, x: str) -> int:
        """Return the size of a tensor's second dimension."""
        return self.shapes[x][1]

    def node(self, op_type: str, sources: Iterable[str], shape: Sequence[int], **attributes: Any) -> str:
        """Return the result of an operator, which has ``shape``."""
        result = self._named(op_type, shape)
        self._nodes.append(helper.make_node(op_type, list(sources), [result], result, **attributes))
        return result

    def constant(self, value: npt.ArrayLike, dtype: npt.DTypeLike = np.float32, name: str = "") -> str:
        """Return a tensor that is in the file."""
        array = np.asarray(value, dtype)
        name = name or f"constant_{len(self._constants)}"
        self._constants[name] = numpy_helper.from_array(array, name)
        self.shapes[name] = array.shape
        return name

    def drawn(self, shape: Sequence[int], std: float = 1.0, mean: float = 0.0) -> npt.NDArray[np.float32]:
        """Return normally distributed values, which count as parameters."""
        self.parameters += math.prod(shape)
        return self._rng.normal(mean, std, shape).astype(np.float32)

    def relu(self, x: str) -> str:
        """Rectified."""
        return self.node("Relu", [x], self.shapes[x])

    def relu6(self, x: str) -> str:
        """Rectified, and 6 at most."""
        return self.node("Clip", [x, self.constant(0.0), self.constant(6.0)], self.shapes[x])

    def sigmoid(self, x: str) -> str:
        """Logistic function."""
        return self.node("Sigmoid", [x], self.shapes[x])

    def hardsigmoid(self, x: str) -> str:
        """Piecewise linear logistic function."""
        return self.node("HardSigmoid", [x], self.shapes[x], alpha=1 / 6)

    def hardswish(self, x: str) -> str:
        """``x`` times its piecewise linear logistic function."""
        return self.node("HardSwish", [x], self.shapes[x])

    def add(self, x: str, y: str) -> str:
        """Sum, broadcast."""
        return self.node("Add", [x, y], self._broadcast(x, y))

    def mul(self, x: str, y: str) -> str:
        """Product, broadcast."""
        return self.node("Mul", [x, y], self._broadcast(x, y))

    def max_pool(self, x: str, kernel: int, stride: int, pad: int = 0, ceil: bool = False) -> str:
        """Maximum over windows. With ``ceil`` a last window may stand over the lower or right edge."""
        sizes = [
            windows(size + 2 * pad + (-(size + 2 * pad - kernel) % stride if ceil else 0), kernel, stride)
            for size in self.shapes[x][2:]
        ]
        return self.node(
            "MaxPool", [x], (*self.shapes[x][:2], *sizes), ceil_mode=int(ceil), dilations=[1, 1],
            kernel_shape=[kernel] * 2, pads=[pad] * 4, strides=[stride] * 2,
        )  # fmt: skip

    def average_pool(self, x: str, kernel: int, stride: int, pad: int = 0) -> str:
        """Mean over windows, in which padding counts as zeros."""
        sizes = [windows(size + 2 * pad, kernel, stride) for size in self.shapes[x][2:]]
        return self.node(
            "AveragePool", [x], (*self.shapes[x][:2], *sizes), ceil_mode=0, count_include_pad=1,
            kernel_shape=[kernel] * 2, pads=[pad] * 4, strides=[stride] * 2,
        )  # fmt: skip

    def global_average_pool(self, x: str) -> str:
        """Mean of each channel; height and width stay as dimensions of one."""
        return self.node("GlobalAveragePool", [x], (*self.shapes[x][:2], 1, 1))

    def reduced(self, op_type: str, x: str, axes: Sequence[int], keepdims: bool = False) -> str:
        """``ReduceMean`` or ``ReduceMax`` over ``axes``, which this operator set has as an attribute."""
        shape = self.shapes[x]
        gone = {axis % len(shape) for axis in axes}
        kept = [1 if axis in gone else size for axis, size in enumerate(shape) if keepdims or axis not in gone]
        return self.node(op_type, [x], kept, axes=list(axes), keepdims=int(keepdims))

    def flatten(self, x: str) -> str:
        """All but the batch in one dimension."""
        return self.node("Flatten", [x], (1, math.prod(self.shapes[x])), axis=1)

    def reshape(self, x: str, *shape: int) -> str:
        """In another shape, one of whose sizes may be -1."""
        known = math.prod(size for size in shape if size != -1)
        whole = [math.prod(self.shapes[x]) // known if size == -1 else size for size in shape]
        return self.node("Reshape", [x, self.constant(shape, np.int64)], whole, allowzero=0)

    def unsqueeze(self, x: str, axis: int) -> str:
        """With one more dimension, of size 1."""
        shape = self.shapes[x]
        return self.node("Unsqueeze", [x, self.constant([axis], np.int64)], (*shape[:axis], 1, *shape[axis:]))

    def squeeze(self, x: str, axis: int) -> str:
        """Without a dimension of size 1."""
        shape = self.shapes[x]
        return self.node("Squeeze", [x, self.constant([axis], np.int64)], shape[:axis] + shape[axis + 1 :])

    def transpose(self, x: str, *perm: int) -> str:
        """With its dimensions in another order."""
        return self.node("Transpose", [x], [self.shapes[x][axis] for axis in perm], perm=perm)

    def concat(self, *sources: str, axis: int = 1) -> str:
        """One behind the other."""
        shape = list(self.shapes[sources[0]])
        shape[axis] = sum(self.shapes[source][axis] for source in sources)
        return self.node("Concat", sources, shape, axis=axis)

    def split(self, x: str, *sizes: int, axis: int = 1) -> list[str]:
        """Parts of these sizes, by one operator."""
        shape = list(self.shapes[x])
        parts = [
            self._named(f"Split{part}", [*shape[:axis], size, *shape[axis:][1:]]) for part, size in enumerate(sizes)
        ]
        sources = [x, self.constant(sizes, np.int64)]
        self._nodes.append(helper.make_node("Split", sources, parts, parts[0], axis=axis))
        return parts

    def slice(self, x: str, begin: int, end: int, axis: int, step: int = 1) -> str:
        """Every ``step``-th from ``begin`` to ``end`` of one dimension, either of which may count from its end."""
        shape = list(self.shapes[x])
        shape[axis] = len(range(shape[axis])[begin:end:step])
        limits = [self.constant([value], np.int64) for value in (begin, end, axis, step)]
        return self.node("Slice", [x, *limits], shape)

    def gather(self, x: str, index: int, axis: int) -> str:
        """Return the part at one index of a dimension, which is gone."""
        shape = self.shapes[x]
        return self.node("Gather", [x, self.constant(index, np.int64)], shape[:axis] + shape[axis + 1 :], axis=axis)

    def pad(self, x: str, *pads: int) -> str:
        """With zeros: ``pads`` are those before each dimension, then those behind each."""
        rank = len(self.shapes[x])
        shape = [size + pads[axis] + pads[axis + rank] for axis, size in enumerate(self.shapes[x])]
        return self.node("Pad", [x, self.constant(pads, np.int64), self.constant(0.0)], shape, mode="constant")

    def resize(self, x: str, height: int, width: int, mode: str) -> str:
        """``nearest`` by a whole factor, given as scales, or ``linear`` to a size, as the exporter writes the two."""
        shape = (*self.shapes[x][:2], height, width)
        if mode == "nearest":
            sources, how = [x, "", self.constant(np.divide(shape, self.shapes[x]))], "asymmetric"
        else:
            sources, how = [x, "", "", self.constant(shape, np.int64)], "half_pixel"
        attributes = {"coordinate_transformation_mode": how, "nearest_mode": "floor", "cubic_coeff_a": -0.75}
        return self.node("Resize", sources, shape, mode=mode, **attributes)

    def softmax(self, x: str, axis: int = -1) -> str:
        """Weights that add up to 1."""
        return self.node("Softmax", [x], self.shapes[x], axis=axis)

    def matmul(self, x: str, y: str) -> str:
        """Product of matrices, each with its counterpart."""
        first, second = self.shapes[x], self.shapes[y]
        batch = np.broadcast_shapes(first[:-2], second[:-2])
        self.macs += math.prod(batch) * first[-2] * first[-1] * second[-1]
        return self.node("MatMul", [x, y], (*batch, first[-2], second[-1]))

    def _broadcast(self, x: str, y: str) -> Shape:
        return tuple(int(size) for size in np.broadcast_shapes(self.shapes[x], self.shapes[y]))

    def _named(self, op_type: str, shape: Sequence[int]) -> str:
        name = f"{op_type}_{len(self._nodes)}"
        self.shapes[name] = tuple(map(int, shape))
        return name
