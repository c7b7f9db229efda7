"""Reads the inputs of a model with a dynamic dimension, and how long they are."""

from onnx import helper

from caesura.api import Arrays, Inputs
from compiler import DynamicDimension
from sw.runtime import InputError, by_name, to_array


def sized_inputs(dimension: DynamicDimension, inputs: Inputs) -> tuple[Arrays, int]:
    """Return inputs by name, and their length. Raises ``InputError`` if one with the dynamic dimension is missing, or
    has another length than others."""
    names = dimension.inputs
    arrays = {name: to_array(name, value) for name, value in by_name(names, inputs).items()}
    found: dict[str, int] = {}
    for name, axis in dimension.axes:
        if name not in arrays:
            raise InputError(
                f"input {name!r} is missing; model {dimension.model!r} takes {', '.join(map(repr, names))}"
            )
        if arrays[name].ndim <= axis:
            raise InputError(f"input {name!r}: shape {list(arrays[name].shape)} has no dimension {axis}")
        found[name] = arrays[name].shape[axis]
    if len(set(found.values())) > 1:
        raise InputError(f"dimension {dimension.label!r} differs between inputs: {found}")
    return arrays, next(iter(found.values()))


def checked_inputs(dimension: DynamicDimension, inputs: Inputs) -> tuple[Arrays, int]:
    """Return all inputs by name as :func:`sized_inputs` does. Raises ``InputError`` for a wrong shape or dtype too."""
    arrays, length = sized_inputs(dimension, inputs)
    names = dimension.inputs
    if arrays.keys() != {*names}:
        raise InputError(
            f"inputs {', '.join(map(repr, arrays))}: model {dimension.model!r} takes {', '.join(map(repr, names))}"
        )
    for value in dimension.fixed(length).graph.input if length else ():
        if value.name not in arrays:
            continue  # a constant with a default
        kind, given = value.type.tensor_type, arrays[value.name]
        shape = [size.dim_value or 1 for size in kind.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
        if list(given.shape) != shape or given.dtype != dtype:
            raise InputError(
                f"input {value.name!r}: {given.dtype} {list(given.shape)}, expected {dtype} {shape} at length {length}"
            )
    return arrays, length
