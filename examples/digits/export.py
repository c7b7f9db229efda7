"""The trained network as ONNX, in float."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from examples.digits.network import CONVOLUTIONS, KERNEL, PAD, Parameters

OPSET = 17
IR_VERSION = 10
INPUT, OUTPUT = "image", "logits"
FLOAT_OPERATORS = ("Conv", "Relu", "Conv", "Relu", "Conv", "Add", "Relu", "MaxPool", "Flatten", "Gemm")


def float_model(parameters: Parameters) -> onnx.ModelProto:
    """Build the float model: `image` float32 [1, 1, 8, 8] → `logits` float32 [1, 10]."""

    def conv(name: str, source: str, result: str) -> onnx.NodeProto:
        stride = CONVOLUTIONS[name][2]
        return helper.make_node(
            "Conv",
            [source, f"{name}.weight", f"{name}.bias"],
            [result],
            name,
            kernel_shape=[KERNEL, KERNEL],
            pads=[PAD] * 4,
            strides=[stride, stride],
        )

    nodes = [
        conv("conv1", INPUT, "conv1.out"),
        helper.make_node("Relu", ["conv1.out"], ["map1"], "relu1"),
        conv("conv2", "map1", "conv2.out"),
        helper.make_node("Relu", ["conv2.out"], ["map2"], "relu2"),
        conv("conv3", "map2", "conv3.out"),
        helper.make_node("Add", ["map2", "conv3.out"], ["sum"], "add"),
        helper.make_node("Relu", ["sum"], ["map3"], "relu3"),
        helper.make_node("MaxPool", ["map3"], ["pooled"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["pooled"], ["flat"], "flatten", axis=1),
        helper.make_node("Gemm", ["flat", "fc.weight", "fc.bias"], [OUTPUT], "fc", transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [1, 10])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in parameters.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    model.producer_name = "caesura examples/digits"
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    onnx.checker.check_model(model, full_check=True)
    return model
