"""Converts between what the user sees of a model (ONNX shapes, float32) and tensors in device memory."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from hw.image import PortInfo, TensorInfo

_NUMBERS = "biufc"  #: kinds of arrays of numbers: the dtype of an input is compared with its port's


class InputError(ValueError):
    """Says that the model does not take an input; names the input, what was given and what is expected."""


def by_name(names: Sequence[str], inputs: npt.ArrayLike | Mapping[str, npt.ArrayLike]) -> dict[str, npt.ArrayLike]:
    """Return what was given for each input: a mapping as it is, anything else for the first of ``names``. Raises
    :class:`InputError` for a mapping that cannot be read."""
    if not isinstance(inputs, Mapping):
        return dict.fromkeys(names[:1], inputs)
    try:
        return dict(inputs)
    except Exception as error:  # of whatever mapping was given
        raise InputError(f"inputs cannot be read from this {type(inputs).__name__}: {error!r}") from error


def to_array(name: str, value: npt.ArrayLike) -> npt.NDArray:
    """Return the array of numbers that was given for the input called ``name``. Raises :class:`InputError` for what is
    none, such as lists of different lengths, strings or None."""
    try:
        array = np.asarray(value)
    except Exception as error:  # of NumPy, or of whatever object was given
        told = str(error).partition("\n")[0] or type(error).__name__
        raise InputError(f"input {name!r}: no array can be made of this {type(value).__name__}: {told}") from error
    if array.dtype.kind not in _NUMBERS:
        held = "None" if value is None else f"a {type(value).__name__} of dtype {array.dtype}"
        raise InputError(f"input {name!r}: {held} was given, expected an array of numbers")
    return array


def to_tensor(port: PortInfo, tensor: TensorInfo, value: npt.ArrayLike) -> npt.NDArray:
    """Return ``value`` as it is stored: checked, quantised if the port says so, transposed, of ``tensor``'s shape.

    Raises :class:`InputError` unless shape and dtype are exactly the port's, and for NaN where it is quantised.
    """
    array = to_array(port.name, value)
    if list(array.shape) != port.shape:
        several = array.ndim and list(array.shape[1:]) == port.shape[1:]
        entries = f": give {port.shape[0]} along the first axis, or compile for another batch" if several else ""
        raise InputError(f"input {port.name!r}: shape {list(array.shape)}, expected {port.shape}{entries}")
    if array.dtype != port.dtype:
        if array.dtype.kind == "f" and np.dtype(port.dtype).kind in "iu" and np.isnan(array).any():
            raise InputError(f"input {port.name!r}: holds NaN, which no {port.dtype} stands for")
        raise InputError(f"input {port.name!r}: dtype {array.dtype}, expected {port.dtype}; convert it with .astype()")
    if port.quantise:
        if np.isnan(array).any():
            raise InputError(f"input {port.name!r}: holds NaN, which no {tensor.dtype} stands for")
        array = quantise(array, tensor)
    if port.perm:
        array = array.transpose(port.perm)
    return np.ascontiguousarray(array).reshape(tensor.shape)


def from_tensor(port: PortInfo, tensor: TensorInfo, value: npt.NDArray) -> npt.NDArray:
    """Return the array that the user gets, the inverse of :func:`to_tensor`, for outputs."""
    if port.perm:
        value = value.transpose(port.perm)
    if port.quantise:
        value = dequantise(value, tensor)
    return np.ascontiguousarray(value, dtype=port.dtype).reshape(port.shape)


def quantise(value: npt.NDArray, tensor: TensorInfo) -> npt.NDArray:
    """Return ``saturate(round_half_even(value / scale) + zero_point)`` in float32, as ONNX QuantizeLinear."""
    limits = np.iinfo(tensor.dtype)
    scaled = np.rint(value.astype(np.float32) / np.float32(tensor.scale)) + np.float32(tensor.zero_point)
    return np.clip(scaled, limits.min, limits.max).astype(tensor.dtype)


def dequantise(value: npt.NDArray, tensor: TensorInfo) -> npt.NDArray[np.float32]:
    """Return ``(value - zero_point) * scale`` in float32, as ONNX DequantizeLinear."""
    return (value.astype(np.int32) - tensor.zero_point).astype(np.float32) * np.float32(tensor.scale)
