"""Float ONNX models to int8 QDQ, by onnxruntime."""

from collections.abc import Iterable
from pathlib import Path

from compiler import Feed, quantise as quantiser


def quantise(float_path: Path, int8_path: Path, feeds: Iterable[Feed]) -> None:
    """Write the int8 QDQ form of a float model.

    Activations are int8 per tensor with a zero point, weights int8 per output channel and symmetric.
    Ranges are the smallest and largest values seen on `feeds`, which are inputs by name.
    """
    quantiser.quantise(float_path, feeds, int8_path)
