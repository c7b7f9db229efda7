"""Converting between what the user sees of a model (ONNX shapes, float32) and tensors in device memory."""

import numpy as np
import numpy.typing as npt

from hw.contract.image import PortInfo, TensorInfo


class InputError(ValueError):
    """An input the model does not take; names the input, what was given and what is expected."""


def to_tensor(port: PortInfo, tensor: TensorInfo, value: npt.ArrayLike) -> npt.NDArray:
    """``value`` as it is stored: checked, quantised if the port says so, transposed, of ``tensor``'s shape.

    Raises :class:`InputError` unless shape and dtype are exactly the port's, and for NaN where it is quantised.
    """
    array = np.asarray(value)
    if list(array.shape) != port.shape:
        raise InputError(f"input {port.name!r}: shape {list(array.shape)}, expected {port.shape}")
    if array.dtype != port.dtype:
        raise InputError(f"input {port.name!r}: dtype {array.dtype}, expected {port.dtype}; convert it with .astype()")
    if port.quantise:
        if np.isnan(array).any():
            raise InputError(f"input {port.name!r}: holds NaN, which no {tensor.dtype} stands for")
        array = quantise(array, tensor)
    if port.perm:
        array = array.transpose(port.perm)
    return np.ascontiguousarray(array).reshape(tensor.shape)


def from_tensor(port: PortInfo, tensor: TensorInfo, value: npt.NDArray) -> npt.NDArray:
    """The inverse of :func:`to_tensor`, for outputs: the array the user gets."""
    if port.perm:
        value = value.transpose(port.perm)
    if port.quantise:
        value = dequantise(value, tensor)
    return np.ascontiguousarray(value, dtype=port.dtype).reshape(port.shape)


def quantise(value: npt.NDArray, tensor: TensorInfo) -> npt.NDArray:
    """``saturate(round_half_even(value / scale) + zero_point)`` in float32, as ONNX QuantizeLinear."""
    limits = np.iinfo(tensor.dtype)
    scaled = np.rint(value.astype(np.float32) / np.float32(tensor.scale)) + np.float32(tensor.zero_point)
    return np.clip(scaled, limits.min, limits.max).astype(tensor.dtype)


def dequantise(value: npt.NDArray, tensor: TensorInfo) -> npt.NDArray[np.float32]:
    """``(value - zero_point) * scale`` in float32, as ONNX DequantizeLinear."""
    return (value.astype(np.int32) - tensor.zero_point).astype(np.float32) * np.float32(tensor.scale)
