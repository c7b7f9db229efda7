"""Float ONNX models to int8 QDQ, by onnxruntime: static, weights per output channel, ranges from a few images."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static

Feed = dict[str, npt.NDArray[np.float32]]


def quantise(model: onnx.ModelProto, feeds: Iterable[Feed], path: Path) -> None:
    """Write the int8 QDQ form of a float model with inferred shapes.

    Activations are int8 per tensor with a zero point, from the smallest and largest values seen on ``feeds``; weights
    are int8 per output channel and symmetric, biases int32.
    """
    onnx.helper.set_model_props(model, {"onnx.quant.pre_process": "onnxruntime.quant"})  # shapes are inferred already
    quantize_static(
        model,
        path,
        _Calibration(feeds),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt8,
        calibrate_method=CalibrationMethod.MinMax,
        extra_options={"ActivationSymmetric": False, "WeightSymmetric": True},
    )


class _Calibration(CalibrationDataReader):
    """Feeds inputs to onnxruntime's calibration one at a time: the batch size is 1."""

    def __init__(self, feeds: Iterable[Feed]) -> None:
        self._feeds = iter(feeds)

    def get_next(self) -> Feed | None:
        return next(self._feeds, None)
