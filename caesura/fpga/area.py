"""Counts the cells of a mapped netlist by module."""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

#: What each cell takes of what a part has.
_CELLS = {
    "LUT4": {"lut": 1},
    "CCU2C": {"lut": 2},
    "TRELLIS_DPR16X4": {"lut": 4},
    "TRELLIS_FF": {"ff": 1},
    "DP16KD": {"bram": 1},
    "MULT18X18D": {"mult": 1},
}
KINDS = ("lut", "ff", "bram", "mult")


def by_module(top: Mapping[str, Any], modules: Collection[str], depth: int) -> list[dict[str, Any]]:
    """Return a row for each module down to ``depth`` levels: ``module``, its ``copies``, and ``lut``, ``ff``, ``bram``
    and ``mult`` of all copies and of what is in them.

    Modules that differ in a number at their end count as copies. A cell belongs to the module whose signal it is named
    after: logic that several share is counted once, where mapping put it.
    """
    known = set(modules)
    own: Counter[tuple[str, str]] = Counter()
    for name, cell in top["cells"].items():
        place = module_of(name, known)
        for kind, number in _CELLS.get(cell["type"], {}).items():
            parts = place.split(".") if place else []
            for level in range(min(len(parts), depth) + 1):
                own[_class(".".join(parts[:level])), kind] += number
    copies = Counter(_class(module) for module in known)
    rows = sorted({module for module, _ in own})
    return [
        {"module": module or "all", "copies": copies[module] or 1, **{kind: own[module, kind] for kind in KINDS}}
        for module in rows
    ]


def _class(module: str) -> str:
    return re.sub(r"\d+(?=\.|$)", "*", module)


def module_of(cell: str, known: Collection[str]) -> str:
    """Return the path of the module, of those ``known``, whose signal the ``cell`` is named after, or ""."""
    parts = re.sub(r"[\\/]", ".", cell.removeprefix("$flatten")).strip(".").split(".")
    for end in range(len(parts) - 1, 0, -1):
        path = ".".join(part for part in parts[:end] if part)
        if path in known:
            return path
    return ""
