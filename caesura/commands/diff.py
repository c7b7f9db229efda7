"""Defines ``caesura diff``, which compares two results."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group

from caesura.commands.options import Csv, Json, Page, check_form
from caesura.result_diff import ChangedValue, ResultDiff, read_result, result_diff
from caesura.views import Column, ColumnTable, json_text, line, say, tell, write


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) or value == int(value) else f"{value:,.6g}"


def _signed(value: float | None) -> str:
    return "" if value is None else f"{'+' if value > 0 else ''}{_number(value)}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


_COLUMNS = (
    Column("name", "what"),
    Column("before", number=True, text=_number),
    Column("after", number=True, text=_number),
    Column("difference", number=True, text=_signed),
    Column("percent", "%", number=True, text=lambda value: "" if value is None else f"{value:+.1f} %"),
)
_LAYER_COLUMNS = (
    *_COLUMNS,
    Column("utilisation_before", "used before", number=True, text=_share),
    Column("utilisation_after", "after", number=True, text=_share),
)
_SIDES = (Column("layers_before"), Column("layers_after"))


def diff(
    before: Annotated[Path, typer.Argument(help="what caesura run --json, or bench --json, printed")],
    after: Annotated[Path, typer.Argument(help="the same of another model, machine or commit")],
    every: Annotated[bool, typer.Option("--all", help="show layers whose cycles are equal, too")] = False,
    page: Page = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Compare two runs layer by layer, or two benchmarks figure by figure.

    Layers that were fused or split otherwise are those of the same ONNX nodes."""
    check_form(as_json, as_csv)
    show_diff(
        result_diff(read_result(before), read_result(after)), every=every, page=page, as_json=as_json, as_csv=as_csv
    )


def show_diff(found: ResultDiff, *, every: bool, page: Path | None, as_json: bool, as_csv: bool) -> None:
    """Show what differs, of layers those whose cycles do, or ``every`` one; write a ``page`` of it, too."""
    changed = [one for one in found.parts if every or (one.difference != 0 and (one.before or one.after))]
    layers = _table("", sorted(changed, key=_weight), _LAYER_COLUMNS)
    notes = _notes(found, len(changed))
    if page:
        from caesura.views import write_diff_page  # loads the plotting library

        bars = [(one.name, one.difference) for one in sorted(changed, key=_weight) if one.difference]
        write_diff_page(page, found.titles, _totals(found), layers, bars, notes)
    if as_json:
        totals = _table("", found.totals).fields()
        parts = _table("", found.parts, (*_LAYER_COLUMNS, *_SIDES)).fields()
        write(
            json_text(
                {"results": found.titles, "totals": totals, "layers": parts, "equal": found.equal, "note": found.note}
            )
        )
        return
    if as_csv:
        write(_table("", [*found.totals, *found.parts], _LAYER_COLUMNS).csv())
        return
    tell(Group(line(f"{found.titles[0]}, and {found.titles[1]}", "bold"), _totals(found).rich()))
    if layers.rows:
        say("cycles of layers, and how much of the MAC peak they used, the largest difference first")
        tell(layers.without("difference").rich())  # room for names
    for note in notes:
        say(note)


def _notes(found: ResultDiff, shown: int) -> list[str]:
    """Return what stands below the tables, of which that of layers has ``shown`` rows."""
    same = len(found.parts) - shown
    notes = [f"{same} layer{'s' * (same > 1)} with equal cycles, or none"] if same else []
    notes += [found.note] if found.note else []
    return notes + ([] if found.equal is None else [f"outputs: {'equal' if found.equal else 'not equal'}"])


def _table(title: str, changes: Sequence[ChangedValue], columns: Sequence[Column] = _COLUMNS) -> ColumnTable:
    keys = [column.key for column in columns]
    return ColumnTable(title, columns, [{key: getattr(one, key, None) for key in keys} for one in changes])


def _totals(found: ResultDiff) -> ColumnTable:
    """Return what people read of totals; utilisation is a share, whose difference is in points of percent."""
    if not found.parts:
        return _table("", found.totals)
    rows = []
    for one in found.totals:
        row = {column.key: column.text(getattr(one, column.key)) for column in _COLUMNS}
        if one.name == "utilisation":
            points = "" if one.difference is None else f"{100 * one.difference:+.1f} points"
            row |= {"before": _share(one.before), "after": _share(one.after), "difference": points, "percent": ""}
        rows.append(row)
    return ColumnTable("", [Column(one.key, one.title, number=one.number) for one in _COLUMNS], rows)


def _weight(one: ChangedValue) -> float:
    """Return a key that puts first what changes most; what is in one result alone counts with all it has."""
    return -abs(one.difference if one.difference is not None else (one.after or one.before or 0))
