"""Inputs for the command line: from an .npz file, or random."""

import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hw.contract.image import Image, PortInfo
from sw.runtime import InputError

Sample = dict[str, npt.NDArray]
MOST_BYTES = 1 << 29  #: of the arrays of one file: it may be packed to a thousandth of them


def load_samples(path: Path, image: Image, count: int) -> list[Sample]:
    """The first ``count`` samples of an .npz file, as inputs of ``image`` by name.

    Arrays are found by input name; a model with one input also takes the array ``input`` or the only one in the file.
    An array holds one sample (the input's shape) or several along a leading or the first axis. Raises
    :class:`InputError`.
    """
    arrays = _arrays(path)
    ports = image.meta.inputs
    stacks = {port.name: _split(path, port, _find(path, port, len(ports) == 1, arrays)) for port in ports}
    for name, stack in stacks.items():
        if len(stack) < count:
            raise InputError(f"{path}: input {name!r} has {len(stack)} samples, {count} wanted; lower --samples")
    return [{name: stack[i] for name, stack in stacks.items()} for i in range(count)]


def _arrays(path: Path) -> dict[str, npt.NDArray]:
    """All arrays of an .npz file. Raises :class:`InputError`."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > MOST_BYTES:
            raise InputError(f"{path}: {size:,} bytes of arrays, at most {MOST_BYTES:,} are read")
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except InputError:
        raise
    except Exception as error:  # zipfile, zlib and NumPy's reader of headers raise errors of many kinds
        raise InputError(f"{path}: not a readable .npz file: {error}") from None
    odd = [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]
    if odd:
        raise InputError(f"{path}: {', '.join(odd)} is no array")
    return arrays


def _find(path: Path, port: PortInfo, only: bool, arrays: dict[str, npt.NDArray]) -> npt.NDArray:
    if port.name in arrays:
        return arrays[port.name]
    if only and "input" in arrays:
        return arrays["input"]
    if only and len(arrays) == 1:
        return next(iter(arrays.values()))
    raise InputError(f"{path}: no array for input {port.name!r}; it holds {', '.join(arrays) or 'nothing'}")


def _split(path: Path, port: PortInfo, array: npt.NDArray) -> list[npt.NDArray]:
    if list(array.shape) == port.shape:
        return [array]
    if list(array.shape[1:]) == port.shape:
        return list(array)
    step = port.shape[0] if port.shape else 0
    if step and array.ndim and list(array.shape[1:]) == port.shape[1:] and array.shape[0] % step == 0:
        return [array[i : i + step] for i in range(0, len(array), step)]
    raise InputError(
        f"{path}: input {port.name!r}: shape {list(array.shape)}, expected {port.shape} or several of them"
    )


def random_samples(image: Image, count: int, seed: int) -> list[Sample]:
    """``count`` samples that spread over the range of each input's quantisation; the same for the same seed."""
    rng = np.random.default_rng(seed)
    return [{port.name: _random(image, port, rng) for port in image.meta.inputs} for _ in range(count)]


def _random(image: Image, port: PortInfo, rng: np.random.Generator) -> npt.NDArray:
    if port.quantise:
        tensor = image.tensor(port.tensor)
        limits = np.iinfo(tensor.dtype)
        low, high = ((limit - tensor.zero_point) * tensor.scale for limit in (limits.min, limits.max))
        return rng.uniform(low, high, port.shape).astype(port.dtype)
    if np.issubdtype(np.dtype(port.dtype), np.integer):
        limits = np.iinfo(port.dtype)
        return rng.integers(limits.min, limits.max, port.shape, dtype=port.dtype, endpoint=True)
    return rng.standard_normal(port.shape).astype(port.dtype)
