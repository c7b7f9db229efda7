"""Reads samples of inputs from an .npz or .npy file, makes random ones, and writes outputs to a file."""

import zipfile
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
import numpy.typing as npt

from caesura.index_limits import index_limit
from hw.image import Image, PortInfo
from sw.runtime import InputError

Sample = dict[str, npt.NDArray]
MOST_BYTES = 1 << 29  #: of the arrays of one file: it may be packed to a thousandth of them
_LABELS = ("label", "labels", "y", "target", "targets")  #: names of arrays with the class of each sample


class Input(Protocol):
    """Says what is known of an input: that of an image, or of an ONNX model."""

    name: str
    shape: list[int]


def load_samples(path: Path, image: Image, count: int) -> list[Sample]:
    """Return the first ``count`` samples of a file, as inputs of ``image`` by name; see :func:`samples_of`."""
    return samples_of(path, image.meta.inputs, count)


def samples_of(
    path: Path, ports: Sequence[Input], count: int | None = None, axes: Mapping[str, int] | None = None
) -> list[Sample]:
    """Return the first ``count`` samples (None: all) of an .npz file, or of an .npy file for a model with one input.

    Arrays are found by input name; a model with one input also takes the array ``input`` or the only one in the file.
    An array holds one sample (the input's shape) or several along a leading or the first axis. ``axes``: by input, the
    one whose size is that of the array, whatever the shape says; samples of several sizes are arrays NAME.0, NAME.1 and
    so on of each input. Raises :class:`InputError`.
    """
    arrays = arrays_of(path)
    if axes and not any(port.name in arrays for port in ports):
        numbered = [numbered_of(port.name, arrays) for port in ports]
        if all(numbered):
            return _varying(path, ports, numbered, count, axes)
    found = {port.name: array_of(path, port, len(ports) == 1, arrays) for port in ports}
    shapes = {port.name: _shape(port, found[port.name], (axes or {}).get(port.name)) for port in ports}
    stacks = {name: _split(path, name, shapes[name], array) for name, array in found.items()}
    wanted = min(map(len, stacks.values())) if count is None else count
    for name, stack in stacks.items():
        if len(stack) < wanted:
            raise InputError(f"{path}: input {name!r} has {len(stack)} samples, {wanted} wanted; lower --samples")
    return [{name: stack[i] for name, stack in stacks.items()} for i in range(wanted)]


def numbered_of(name: str, arrays: Mapping[str, npt.NDArray]) -> list[npt.NDArray]:
    """Return the arrays NAME.0, NAME.1 and so on of a file."""
    return [arrays[key] for key in takewhile(arrays.__contains__, (f"{name}.{at}" for at in range(len(arrays))))]


def _varying(
    path: Path, ports: Sequence[Input], numbered: Sequence[Sequence[npt.NDArray]], count: int | None,
    axes: Mapping[str, int],
) -> list[Sample]:  # fmt: skip
    """Return samples whose sizes along ``axes`` differ."""
    there = min(map(len, numbered))
    if (wanted := there if count is None else count) > there:
        raise InputError(f"{path}: it has {there} samples, {wanted} wanted; lower --samples")
    samples = [dict[str, npt.NDArray]() for _ in range(wanted)]
    for port, arrays in zip(ports, numbered, strict=True):
        for at, (sample, array) in enumerate(zip(samples, arrays, strict=False)):
            (sample[port.name],) = _split(path, f"{port.name}.{at}", _shape(port, array, axes.get(port.name)), array)
    return samples


def load_labels(path: Path, count: int) -> npt.NDArray[np.int64] | None:
    """Return the classes of the first ``count`` samples if the file names them, in an array such as ``label``."""
    found = next((array for name, array in arrays_of(path).items() if name.lower() in _LABELS), None)
    if found is None or found.size < count or found.dtype.kind not in "iu" or found.ndim == 0:
        return None
    flat = found.reshape(-1) if found.size == found.shape[0] else None
    return None if flat is None else flat[:count].astype(np.int64)


def arrays_of(path: Path) -> dict[str, npt.NDArray]:
    """Return all arrays of an .npz file, or ``input`` of an .npy file. Raises :class:`InputError`."""
    try:
        with path.open("rb") as file:
            size = _unpacked(file)
            if size > MOST_BYTES:
                raise InputError(f"{path}: {size:,} bytes of arrays, at most {MOST_BYTES:,} are read")
            loaded = np.load(file, allow_pickle=False)
            single = isinstance(loaded, np.ndarray)
            arrays = {"input": loaded} if single else {name: loaded[name] for name in loaded.files}
    except InputError:
        raise
    except Exception as error:  # zipfile, zlib and NumPy's reader of headers raise errors of many kinds
        # NumPy takes what it does not know for objects, and advises an argument of its own.
        told = "it has neither form" if "allow_pickle" in str(error) else error
        raise InputError(f"{path}: not a readable {path.suffix or '.npz'} file: {told}") from None
    odd = [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]
    if odd:
        raise InputError(f"{path}: {', '.join(odd)} is no array")
    return arrays


def _unpacked(file: BinaryIO) -> int:
    """Return how many bytes a file holds when unpacked, by its own account; a file that is no archive holds itself."""
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    else:
        size = file.seek(0, 2)
    file.seek(0)
    return size


def array_of(path: Path, port: Input, only: bool, arrays: dict[str, npt.NDArray]) -> npt.NDArray:
    """Return the array of an input. ``only``: the model has no other, so the array ``input`` or the only one is its.
    Raises :class:`InputError`."""
    if port.name in arrays:
        return arrays[port.name]
    if only and "input" in arrays:
        return arrays["input"]
    values = {name: array for name, array in arrays.items() if name.lower() not in _LABELS}
    if only and len(values) == 1:
        return next(iter(values.values()))
    raise InputError(f"{path}: no array for input {port.name!r}; it holds {', '.join(arrays) or 'nothing'}")


def _shape(port: Input, array: npt.NDArray, axis: int | None) -> list[int]:
    """Return the shape of one sample; that of ``axis`` is the array's, which may hold several along a leading axis."""
    leading = array.ndim - len(port.shape)
    if axis is None or leading not in (0, 1):
        return port.shape
    return [*port.shape[:axis], array.shape[axis + leading], *port.shape[axis + 1 :]]


def _split(path: Path, name: str, shape: list[int], array: npt.NDArray) -> list[npt.NDArray]:
    if list(array.shape) == shape:
        return [array]
    if list(array.shape[1:]) == shape:
        return list(array)
    step = shape[0] if shape else 0
    if step and array.ndim and list(array.shape[1:]) == shape[1:] and array.shape[0] % step == 0:
        return [array[i : i + step] for i in range(0, len(array), step)]
    raise InputError(f"{path}: input {name!r}: shape {list(array.shape)}, expected {shape} or several of them")


def random_samples(image: Image, count: int, seed: int) -> list[Sample]:
    """Return ``count`` samples that spread over the range of each input's quantisation, or over the rows of the table
    that it holds indices of, the same for the same seed."""
    return random_of(image, image.meta.inputs, count, seed)


def random_of(image: Image, ports: Sequence[PortInfo], count: int, seed: int) -> list[Sample]:
    """Return the same for some of the inputs alone."""
    rng = np.random.default_rng(seed)
    return [{port.name: _random(image, port, rng) for port in ports} for _ in range(count)]


def _random(image: Image, port: PortInfo, rng: np.random.Generator) -> npt.NDArray:
    if port.quantise:
        tensor = image.tensor(port.tensor)
        limits = np.iinfo(tensor.dtype)
        low, high = ((limit - tensor.zero_point) * tensor.scale for limit in (limits.min, limits.max))
        return rng.uniform(low, high, port.shape).astype(port.dtype)
    if np.issubdtype(np.dtype(port.dtype), np.integer):
        limits = np.iinfo(port.dtype)
        if limits.bits > 8 and (rows := index_limit(image, port.tensor)) is not None:
            return rng.integers(0, rows, port.shape, dtype=port.dtype)
        return rng.integers(limits.min, limits.max, port.shape, dtype=port.dtype, endpoint=True)
    return rng.standard_normal(port.shape).astype(port.dtype)


def joined(outputs: Sequence[Sample]) -> Sample:
    """Return the outputs of all samples in one array by name: along the first axis where it is a batch of 1, along a
    new first axis otherwise. One sample stays as it is."""
    if len(outputs) == 1:
        return dict(outputs[0])
    return {
        name: (np.concatenate if value.ndim and value.shape[0] == 1 else np.stack)([one[name] for one in outputs])
        for name, value in outputs[0].items()
    }


def save_outputs(path: Path, outputs: Sequence[Sample]) -> None:
    """Write an .npz file with an array for each output, as :func:`joined` makes it."""
    with path.open("wb") as file:
        np.savez(file, **joined(outputs))  # type: ignore[arg-type]


def save_varying(path: Path, outputs: Sequence[Sample]) -> None:
    """Write an .npz file with arrays NAME.0, NAME.1 and so on for each output, whose sizes may differ."""
    named = {f"{name}.{at}": value for at, output in enumerate(outputs) for name, value in output.items()}
    with path.open("wb") as file:
        np.savez(file, **named)  # type: ignore[arg-type]
