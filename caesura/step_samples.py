"""Reads sequences for a step model from an .npz or .npy file: token ids, and what else each of its steps takes."""

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from caesura.samples import Input, Sample, array_of, arrays_of, numbered_of
from sw.runtime import InputError

MOST_STEPS = 1024  #: of all sequences together: each step is an inference


class StepInput(Input, Protocol):
    """Says what is known of an input of each step."""

    dtype: str


def sequences_of(path: Path, ports: Sequence[StepInput], count: int | None = None) -> list[list[Sample]]:
    """Return the first ``count`` sequences (None: all) of a file, each the inputs of its steps. Sequences are whole, as
    many as have ``MOST_STEPS`` steps together; the first has no more than that.

    The array of an input is (sequences, steps) of its values, or (steps) of one sequence; sequences of several lengths
    are arrays NAME.0, NAME.1 and so on. An integer input with "position" in its name counts from 0, unless the file has
    an array for it. Raises :class:`InputError`.
    """
    arrays = arrays_of(path)
    counting = [port for port in ports if _counts(port) and not _given(port, arrays)]
    read = [port for port in ports if port not in counting]
    if not read:
        raise InputError(f"{path}: the model has no input but states and positions, so nothing says how many steps")
    found = {port.name: _sequences(path, port, len(read) == 1, arrays) for port in read}
    there = min(map(len, found.values()))
    if (wanted := there if count is None else count) > there:
        raise InputError(f"{path}: it has {there} sequences, {wanted} wanted; lower --samples")
    made, left = list[list[Sample]](), MOST_STEPS
    for at in range(wanted):
        parts = {name: sequences[at] for name, sequences in found.items()}
        lengths = {name: len(part) for name, part in parts.items()}
        if len({*lengths.values()}) != 1 or not min(lengths.values()):
            told = ", ".join(f"{name!r} {length}" for name, length in lengths.items())
            raise InputError(f"{path}: steps of sequence {at}: {told}; all inputs have as many, and one at least")
        steps = min(lengths.values()) if made else min(*lengths.values(), MOST_STEPS)
        if steps > left:
            break
        left -= steps
        made.append([
            {name: part[step] for name, part in parts.items()}
            | {port.name: np.full(port.shape, step, port.dtype) for port in counting}
            for step in range(steps)
        ])  # fmt: skip
    return made


def _counts(port: StepInput) -> bool:
    """Return whether an input is the position of the step."""
    return "position" in port.name.lower() and port.dtype == "int64" and prod(port.shape) == 1


def _given(port: StepInput, arrays: Mapping[str, npt.NDArray]) -> bool:
    return port.name in arrays or bool(numbered_of(port.name, arrays))


def _sequences(path: Path, port: StepInput, only: bool, arrays: dict[str, npt.NDArray]) -> list[npt.NDArray]:
    """Return the values of an input as (steps, *shape) for each sequence."""
    if several := numbered_of(port.name, arrays):
        return [_split(path, f"{port.name}.{at}", port, array)[0] for at, array in enumerate(several)]
    return _split(path, port.name, port, array_of(path, port, only, arrays))


def _split(path: Path, name: str, port: StepInput, array: npt.NDArray) -> list[npt.NDArray]:
    for leading in (2, 1):
        if array.ndim >= leading and array.size == prod(array.shape[:leading]) * prod(port.shape):
            return list(array.reshape(*(1,) * (2 - leading), *array.shape[:leading], *port.shape))
    raise InputError(
        f"{path}: input {name!r}: shape {list(array.shape)}, expected (sequences, steps) of {port.shape}, such as "
        "[4, 32] token ids"
    )
