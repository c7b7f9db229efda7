"""The work of ONNX models on the CPU, counted by hand."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from hw.contract.bus import HostCosts
from sim.host import HostWork, work_of


def model(nodes, inputs, outputs, constants=()):
    def infos(shapes):
        return [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) if shape else onnx.ValueInfoProto(name=name)
            for name, shape in shapes.items()
        ]

    arrays = [numpy_helper.from_array(np.zeros(shape, np.float32), name) for name, shape in dict(constants).items()]
    graph = helper.make_graph(nodes, "part", infos(inputs), infos(outputs), arrays)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


NODE = helper.make_node
CASES = {
    "convolution": (
        [NODE("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])], {"x": (1, 8, 10, 10)}, {"w": (16, 8, 3, 3)},
        HostWork(macs=16 * 10 * 10 * 8 * 9),
    ),
    "depthwise": (
        [NODE("Conv", ["x", "w"], ["y"], group=8)], {"x": (1, 8, 10, 10)}, {"w": (8, 1, 3, 3)},
        HostWork(macs=8 * 8 * 8 * 9),
    ),
    "transposed": (
        [NODE("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2])], {"x": (1, 8, 4, 4)}, {"w": (8, 3, 2, 2)},
        HostWork(macs=8 * 16 * 3 * 4),
    ),
    "product": ([NODE("MatMul", ["x", "w"], ["y"])], {"x": (2, 5, 7)}, {"w": (7, 3)}, HostWork(macs=2 * 5 * 7 * 3)),
    "transposed product": (
        [NODE("Gemm", ["x", "w"], ["y"], transA=1)], {"x": (7, 5)}, {"w": (7, 3)}, HostWork(macs=5 * 7 * 3),
    ),
    "softmax of a sum": (
        [NODE("Add", ["x", "w"], ["s"]), NODE("Softmax", ["s"], ["y"])], {"x": (4, 10)}, {"w": (10,)},
        HostWork(elements=40, functions=40),
    ),
    "only names": ([NODE("Flatten", ["x"], ["y"])], {"x": (2, 3, 4)}, {}, HostWork()),
    "pooling": ([NODE("MaxPool", ["x"], ["y"], kernel_shape=[2, 2])], {"x": (1, 2, 4, 4)}, {}, HostWork(elements=32)),
    "shape that nobody infers": (
        [NODE("SomethingNew", ["x"], ["s"], domain="com.microsoft"), NODE("Neg", ["s"], ["y"])], {"x": (4, 10)}, {},
        HostWork(elements=80),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_work(name):
    nodes, inputs, constants, expected = CASES[name]
    assert work_of(model(nodes, inputs, {"y": None}, constants)) == expected


def test_costs_can_be_free():
    assert not any(vars(HostCosts.free()).values())
