"""Makes tables of what became of a design."""

from collections.abc import Mapping, Sequence
from typing import Any

from caesura.views import Column, ColumnTable, table_of

_NAMES = {"lut": "LUT", "ff": "FF", "bram": "BRAM", "mult": "DSP"}


def use_table(result: Mapping[str, Any]) -> ColumnTable:
    """Return what the design takes of the part."""
    rows = [
        (_NAMES[kind], use["used"], use["available"], f"{use['used'] / use['available']:.0%}")
        for kind, use in result["use"].items()
    ]
    return table_of("what it takes", ("resource", ">used", ">available", ">share"), rows)


def clock_table(result: Mapping[str, Any]) -> ColumnTable:
    """Return the clocks that were reached, in MHz."""
    rows = [(name, f"{value:.1f}") for name, value in result["fmax"].items()]
    seeds = [(f"seed {seed}", f"{value:.1f}") for seed, value in result["seeds"].items()]
    seeds += [(f"seed {seed}: {left}", "not routed") for seed, left in result["unrouted"].items()]
    return table_of("clock, routed", ("", ">MHz"), rows, seeds)


def path_table(paths: Sequence[Mapping[str, Any]]) -> ColumnTable:
    """Return the worst paths, from line to line."""
    rows = [
        (
            f"{path['delay']:.2f}", path["levels"], f"{path['start']} ({path['signal_start']})",
            f"{path['end']} ({path['signal_end']})", ", ".join(path["through"]),
        )
        for path in paths
    ]  # fmt: skip
    heads = (">ns", ">cells", "from the register of", "to the register of", "through")
    return table_of("worst paths of the slowest seed, by source line", heads, rows)


def area_table(rows: Sequence[Mapping[str, Any]]) -> ColumnTable:
    """Return the cells of each module, all its copies together."""
    counts = [Column("copies", number=True), *(Column(kind, name, number=True) for kind, name in _NAMES.items())]
    return ColumnTable("cells by module, copies together", [Column("module"), *counts], rows)
