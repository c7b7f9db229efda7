"""Defines what the decisions about a model are about: its shapes, operators and quantisation, but no weights."""

import enum
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from compiler.ir import Graph
from compiler.plan.layers.layer import Layer

PLAIN = {type(None), bool, int, float, str}  #: what most values are


def layer_names(layers: Sequence[Layer]) -> tuple[str, ...]:
    """Return the names of ``layers``, with a number behind those that are not the first of their name."""
    found: dict[str, Layer] = {}
    for layer in layers:
        name, count = layer.name, 1
        while name in found:
            count += 1
            name = f"{layer.name}#{count}"
        found[name] = layer
    return tuple(found)


def structure_of(graph: Graph) -> str:
    """Return a digest of ``graph``, 32 hexadecimal digits. Models that differ in the values of arrays alone have the
    same."""
    parts = (graph.tensors, graph.ops, graph.inputs, graph.outputs)
    return hashlib.sha256("".join(map(_told, parts)).encode()).hexdigest()[:32]


def _told(value: Any) -> str:
    if type(value) in PLAIN:
        return f"{value!r};"
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str}{value.shape};"
    if isinstance(value, np.generic):
        return _told(value.item())
    if isinstance(value, bytes):  # a model of the CPU, which holds weights
        return "bytes;"
    if isinstance(value, Mapping):
        return "{" + "".join([f"{name!r}:{_told(one)}" for name, one in value.items()]) + "}"
    if isinstance(value, list | tuple):
        return "[" + "".join([f"{one!r};" if type(one) in PLAIN else _told(one) for one in value]) + "]"
    if isinstance(value, enum.Enum):
        return f"{value.name};"
    if is_dataclass(value):
        held = [(field.name, getattr(value, field.name)) for field in fields(value)]
        told = [f"{name}={one!r};" if type(one) in PLAIN else f"{name}={_told(one)}" for name, one in held]
        return f"{type(value).__name__}({''.join(told)})"
    return f"{value!r};"
