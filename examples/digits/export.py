"""The trained network as ONNX: in float, and quantised to int8 QDQ by onnxruntime."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quantize_static,
)

from examples.digits.network import CONVOLUTIONS, KERNEL, PAD, Array, Parameters

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


def quantise(float_path: Path, int8_path: Path, calibration_images: Array) -> None:
    """Write the int8 QDQ form of a float model.

    Activations are int8 per tensor with a zero point, weights int8 per output channel and symmetric.
    Ranges are the smallest and largest values seen on `calibration_images`, float32 [N, 1, 8, 8].
    """
    quantize_static(
        float_path,
        int8_path,
        _Calibration(calibration_images),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt8,
        calibrate_method=CalibrationMethod.MinMax,
        extra_options={"ActivationSymmetric": False, "WeightSymmetric": True},
    )


class _Calibration(CalibrationDataReader):
    """Feeds images to onnxruntime's calibration, one at a time: the model's batch size is 1."""

    def __init__(self, images: Array) -> None:
        self._feeds: Iterator[dict[str, Array]] = iter([{INPUT: image[np.newaxis]} for image in images])

    def get_next(self) -> dict[str, Array] | None:
        return next(self._feeds, None)
