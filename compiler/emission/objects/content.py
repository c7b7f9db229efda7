"""Digests of values by their content: of equal values they are equal, in whatever process and however they came about.

What the bytes of an object do not depend on is left out: what a convolution multiplies, adds and clips by is data.
"""

import enum
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from compiler.plan.layers.layer import Addition, ConvLayer, OutputArea
from compiler.plan.structure import PLAIN


def _shape(array: Any) -> Any:
    return array.dtype.str, array.shape


def _shape_if_any(array: Any) -> Any:
    return None if array is None else _shape(array)


def _nothing(_: Any) -> None:
    return None


#: What counts of fields of which not all does.
_COUNTS: dict[type, dict[str, Callable[[Any], Any]]] = {
    ConvLayer: {"weights": _shape, "requantise": lambda requantise: requantise.table},
    Addition: {
        "op": lambda op: (op.kind_, op.requantise.table),
        "m_own": _nothing,
        "m_other": _nothing,
        "constant": _shape_if_any,
    },
    OutputArea: {"bias": _shape, "scale": _shape},
}


def digest_of(value: Any) -> str:
    """32 hexadecimal digits. TypeError for what has no content that could be written down."""
    digest = hashlib.sha256()
    _Writer(digest.update).write(value)
    return digest.hexdigest()[:32]


class _Writer:
    """Writes values as text that no other value has. Objects that are compared by identity are numbered, as it matters
    where the same one comes again."""

    def __init__(self, put: Callable[[bytes], None]) -> None:
        self._put = put
        self._numbers: dict[int, int] = {}

    def write(self, value: Any) -> None:
        """Write ``value`` and all that it holds."""
        kind = type(value)
        if kind in PLAIN:
            self._put(f"{kind.__name__} {value!r};".encode())
        elif isinstance(value, enum.Enum):
            self._put(f"{kind.__name__}.{value.name};".encode())
        elif isinstance(value, bytes | bytearray):
            self._put(b"bytes %d:" % len(value) + bytes(value))
        elif isinstance(value, np.ndarray):
            self._put(f"array {value.dtype.str} {value.shape}:".encode() + np.ascontiguousarray(value).tobytes())
        elif isinstance(value, np.generic):
            self.write(value.item())
        elif isinstance(value, Mapping):
            self._several("map", [part for item in value.items() for part in item])
        elif isinstance(value, list | tuple):
            self._several("list", value)
        elif isinstance(value, set | frozenset):
            self._several("set", sorted(value))
        elif is_dataclass(value):
            self._fields(value, {field.name: getattr(value, field.name) for field in fields(value)})
        elif hasattr(value, "__dict__") and kind.__module__.startswith("compiler."):
            self._fields(value, vars(value))
        else:
            raise TypeError(f"a {kind.__name__} has no digest")

    def _several(self, name: str, values: Any) -> None:
        self._put(f"{name} {len(values)}(".encode())
        for value in values:
            if type(value) in PLAIN:  # as write does: most values are, and this is where much time goes
                self._put(f"{type(value).__name__} {value!r};".encode())
            else:
                self.write(value)
        self._put(b")")

    def _fields(self, value: Any, held: Mapping[str, Any]) -> None:
        kind = type(value)
        if kind.__eq__ is object.__eq__:
            if id(value) in self._numbers:
                self._put(f"again {self._numbers[id(value)]};".encode())
                return
            self._numbers[id(value)] = len(self._numbers)
        self._put(f"{kind.__name__}(".encode())
        for name, part in held.items():
            counts = _COUNTS.get(kind, {}).get(name)
            if type(part) in PLAIN and not counts:
                self._put(f"{name}={type(part).__name__} {part!r};".encode())
            else:
                self._put(f"{name}=".encode())
                self.write(counts(part) if counts else part)
        self._put(b")")
