"""Float ONNX models to int8 QDQ, by onnxruntime."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quantize_static,
)

Feed = dict[str, NDArray[np.float32]]


def quantise(float_path: Path, int8_path: Path, feeds: Iterable[Feed]) -> None:
    """Write the int8 QDQ form of a float model.

    Activations are int8 per tensor with a zero point, weights int8 per output channel and symmetric.
    Ranges are the smallest and largest values seen on `feeds`, which are inputs by name.
    """
    quantize_static(
        float_path,
        int8_path,
        _Calibration(feeds),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt8,
        calibrate_method=CalibrationMethod.MinMax,
        extra_options={"ActivationSymmetric": False, "WeightSymmetric": True},
    )


class _Calibration(CalibrationDataReader):
    """Feeds inputs to onnxruntime's calibration one at a time: the models' batch size is 1."""

    def __init__(self, feeds: Iterable[Feed]) -> None:
        self._feeds = iter(feeds)

    def get_next(self) -> Feed | None:
        return next(self._feeds, None)
