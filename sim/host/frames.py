"""Passes arrays between two processes that do not trust each other: a JSON header, then the bytes of each array.

A frame is the length of the header (4 bytes, little-endian), the header, and the arrays that the header lists under
``arrays`` as name, dtype and shape, one behind the other. Nothing in a frame is executed or unpickled.
"""

import json
import math
import socket
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

MOST_HEADER = 1 << 20  #: bytes
_MOST_BYTES = 1 << 34  #: of all arrays of a frame, unless told otherwise
_STRINGS = "O"  #: kind of arrays that are not plain bytes

Arrays = dict[str, npt.NDArray]


class FrameError(ValueError):
    """Says that what came is no frame, or one that is too long."""


def send(to: socket.socket, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray]) -> None:
    """Send a frame. Raises TypeError for an array that is not plain bytes, and what the socket raises."""
    plain = {name: np.ascontiguousarray(value) for name, value in arrays.items()}
    for name, value in plain.items():
        if value.dtype.kind == _STRINGS:
            raise TypeError(f"tensor {name!r} does not hold numbers")
    listed = [(name, value.dtype.str, arrays[name].shape) for name, value in plain.items()]
    raw = json.dumps({**header, "arrays": listed}).encode()
    to.sendall(len(raw).to_bytes(4, "little") + raw)
    for value in plain.values():
        to.sendall(value.reshape(-1).view(np.uint8).data)


def receive(source: socket.socket, end: float | None = None, most: int = _MOST_BYTES) -> tuple[dict[str, Any], Arrays]:
    """Return header and arrays by name of the next frame. It waits until ``end``, on :func:`time.monotonic`, and
    refuses arrays of more than ``most`` bytes before any is read. Raises EOFError when the other side has closed,
    :class:`FrameError`, and TimeoutError."""
    size = int.from_bytes(_exactly(source, 4, end), "little")
    if size > MOST_HEADER:
        raise FrameError(f"a header of {size} bytes")
    try:
        header = json.loads(_exactly(source, size, end))
        listed = [(str(name), np.dtype(dtype), tuple(map(int, shape))) for name, dtype, shape in header.pop("arrays")]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise FrameError(f"a header that says nothing: {error}") from None
    if any(min(shape, default=0) < 0 or dtype.hasobject for _, dtype, shape in listed):
        raise FrameError("arrays that cannot be")
    sizes = [math.prod(shape) * dtype.itemsize for _, dtype, shape in listed]
    if sum(sizes) > most:
        raise FrameError(f"{sum(sizes):,} bytes of arrays, {most:,} at most are expected")
    arrays = {}
    for (name, dtype, shape), count in zip(listed, sizes, strict=True):
        raw = _exactly(source, count, end)
        try:
            arrays[name] = np.ndarray(shape, dtype, raw)
        except (ValueError, TypeError) as error:
            raise FrameError(f"an array that cannot be: {error}") from None
    return header, arrays


def _exactly(source: socket.socket, count: int, end: float | None) -> bytearray:
    found = bytearray(count)
    view, at = memoryview(found), 0
    while at < count:
        if end is not None:
            source.settimeout(max(end - time.monotonic(), 1e-3))
        got = source.recv_into(view[at:])
        if not got:
            raise EOFError("the other side has closed")
        at += got
    return found
