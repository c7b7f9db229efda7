"""Defines the form of plans as JSON: values by their types, so that what is read equals what was written.

Data classes become objects; those of which a field may hold several kinds carry their ``kind``. Enumerations are their
values, sets sorted lists, tuples lists, and numbers that JSON lacks their names.
"""

import dataclasses
import json
import math
import types
import typing
from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import Any

import numpy as np

from compiler.plan.plan_error import PlanError

#: What a value of a type is called in a message.
_WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", tuple: "a list"}


def text_of(fields: dict[str, Any], depth: int = 0) -> str:
    """Return an encoded object as JSON in which every member of a list of objects has a line."""
    lines = []
    for name, value in fields.items():
        if _holds_objects(value):
            inner = "[" + ",".join(f"\n{' ' * (depth + 1)}{json.dumps(one)}" for one in value) + "]"
        elif isinstance(value, dict) and any(map(_holds_objects, value.values())):
            inner = text_of(value, depth + 1)
        else:
            inner = json.dumps(value)
        lines.append(f"{' ' * depth}{json.dumps(name)}: {inner}")
    return "{\n" + ",\n".join(lines) + "}"


def _holds_objects(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(one, dict) for one in value)


def encoded(value: Any) -> Any:
    """Return ``value`` as nothing but what JSON has."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = getattr(value, "kind", None)
        return ({"kind": kind} if kind else {}) | {
            field.name: encoded(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return [encoded(one) for one in value]
    if isinstance(value, np.generic):
        return value.item()
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def decoded(hint: Any, value: Any, where: str) -> Any:
    """Return the value of type ``hint`` that was encoded as ``value``. Raises :class:`PlanError` that says
    ``where``."""
    kinds = [one for one in _alternatives(hint) if one is not types.NoneType]
    if value is None and types.NoneType in _alternatives(hint):
        return None
    for one in kinds:
        if _fits(one, value, single=len(kinds) == 1):
            return _decoder(one)(value, where)
    raise PlanError(f"{where}: {' or '.join(map(_name, kinds))} is expected, not {value!r}")


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (types.UnionType, typing.Union) else (hint,)


def _fits(hint: Any, value: Any, *, single: bool) -> bool:
    origin = typing.get_origin(hint) or hint
    if origin in (tuple, frozenset):
        return isinstance(value, list)
    if dataclasses.is_dataclass(origin):
        return isinstance(value, dict) and (single or value.get("kind") == getattr(origin, "kind", None))
    if isinstance(origin, type) and issubclass(origin, Enum):
        return any(value == member.value and type(value) is type(member.value) for member in origin)
    if origin is float:
        return type(value) in (int, float) or value in ("inf", "-inf", "nan")
    return type(value) is origin


def _decoder(hint: Any) -> Callable[[Any, str], Any]:
    origin = typing.get_origin(hint) or hint
    if origin is tuple:
        return lambda value, where: _tuple(typing.get_args(hint), value, where)
    if origin is frozenset:
        (inner,) = typing.get_args(hint)
        return lambda value, where: frozenset(decoded(inner, one, where) for one in value)
    if isinstance(origin, type) and dataclasses.is_dataclass(origin):
        return lambda value, where: _instance(origin, value, where)
    return lambda value, _: origin(value)


def _tuple(inner: tuple[Any, ...], values: list[Any], where: str) -> tuple[Any, ...]:
    hints = [inner[0]] * len(values) if inner[-1] is Ellipsis else inner
    if len(hints) != len(values):
        raise PlanError(f"{where}: {len(hints)} values are expected, not {len(values)}")
    return tuple(decoded(hint, one, f"{where}[{i}]") for i, (hint, one) in enumerate(zip(hints, values, strict=True)))


def _instance(cls: type, fields: dict[str, Any], where: str) -> Any:
    hints, given = _hints(cls), {name: value for name, value in fields.items() if name != "kind"}
    needed = {field.name for field in dataclasses.fields(cls) if field.default is dataclasses.MISSING}
    if odd := sorted(needed - given.keys() | given.keys() - hints.keys()):
        raise PlanError(f"{where}: {odd[0]!r} is {'missing' if odd[0] in hints else 'unknown'} in a {cls.__name__}")
    return cls(**{name: decoded(hints[name], value, f"{where}.{name}") for name, value in given.items()})


@cache
def _hints(cls: type) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def _name(hint: Any) -> str:
    origin = typing.get_origin(hint) or hint
    if isinstance(origin, type) and issubclass(origin, Enum):
        return "one of " + ", ".join(repr(member.value) for member in origin)
    return _WORDS.get(origin, f"a {origin.__name__}")
