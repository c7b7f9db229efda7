"""Defines a table that is stated once, with a form for a terminal, for JSON, for CSV and for pages."""

import csv
import html
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.table import Table

from caesura.views import terminal
from sim import shortened, visible

_LARGE = 1000  #: from here on without a fraction
_NAME = 40  #: cells of a first column, at most
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  #: what a formula begins with


def shown(value: Any) -> str:
    """Return a value as people read it: large numbers have separators, and None is nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) < _LARGE else f"{value:,.0f}"
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def not_zero(value: float | None) -> str:
    """Return a number as people read it, and nothing for zero."""
    return shown(value) if value else ""


def percent(value: float | None) -> str:
    """Return a share in percent with one decimal, and nothing for None."""
    return "" if value is None else f"{value:.1%}"


@dataclass(frozen=True)
class Column:
    """Is a column with a ``key`` for rows, JSON and CSV, and a ``title`` for people (None: the key as words).

    ``unit`` stands behind the title. A ``number`` is aligned to the right and never shortened; text is wrapped on a
    terminal where there is little room, or ``cut``. ``text`` says what people read of a value, ``style`` in which style
    of the terminal. ``csv`` is the head of the column in CSV where that is not the key.
    """

    key: str
    title: str | None = None
    unit: str = ""
    number: bool = False
    cut: bool = False
    text: Callable[[Any], str] = shown
    style: Callable[[Any], str] = lambda value: ""
    csv: str = ""

    @property
    def heading(self) -> str:
        """Return the heading above the column where people read it."""
        title = self.key.replace("_", " ") if self.title is None else self.title
        return f"{title}, {self.unit}" if self.unit else title


@dataclass(frozen=True)
class ColumnTable:
    """Holds ``columns`` and ``rows``, values by the keys of columns. ``totals`` are rows below a line that only
    people see."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]
    totals: Sequence[Mapping[str, Any]] = ()

    def only(self, *keys: str) -> "ColumnTable":
        """Return a table with the columns of these keys alone, in this order; keys that have no column are left out."""
        known = {column.key: column for column in self.columns}
        return replace(self, columns=[known[key] for key in keys if key in known])

    def without(self, *keys: str) -> "ColumnTable":
        """Return a table that lacks the columns of these keys."""
        return replace(self, columns=[column for column in self.columns if column.key not in keys])

    def fields(self) -> list[dict[str, Any]]:
        """Return a dictionary for each row, for JSON."""
        return [{column.key: row[column.key] for column in self.columns} for row in self.rows]

    def csv(self) -> str:
        """Return comma-separated values: a header, and a line for each row."""
        return to_csv([{column.csv or column.key: row[column.key] for column in self.columns} for row in self.rows])

    def rich(self) -> Table:
        """Return the table for a terminal, in a frame, as wide as there is room; the first column cuts long names off
        unless it is ``cut`` where the room ends."""
        title = terminal.line(self.title, "table.title") if self.title else None
        table = terminal.ReportTable(title=title, title_justify="left", header_style="bold", expand=False)
        for at, column in enumerate(self.columns):
            table.add_column(
                terminal.line(column.heading, lines=True), justify="right" if column.number else "left",
                overflow="ellipsis", no_wrap=column.number, max_width=None if at or column.cut else _NAME,
            )  # fmt: skip
        for row in self.rows:
            table.add_row(*(_cell(column, row[column.key]) for column in self.columns))
        if self.totals:
            table.add_section()
        for row in self.totals:
            table.add_row(*(_cell(column, row[column.key]) for column in self.columns))
        return table

    def html(self) -> str:
        """Return the table for a page, so that it can be copied; long text has its middle left out."""
        head = "".join(f"<th>{escaped(column.heading)}</th>" for column in self.columns)
        body = "".join(
            "<tr>" + "".join(_html_cell(column.text(row[column.key])) for column in self.columns) + "</tr>"
            for row in (*self.rows, *self.totals)
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def table_of(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[Any]], totals: Iterable[Sequence[Any]] = ()
) -> ColumnTable:
    """Return a table of values below ``heads``; one that starts with ``>`` is of numbers."""
    columns = [Column(str(at), head.removeprefix(">"), number=head.startswith(">")) for at, head in enumerate(heads)]
    keys = [column.key for column in columns]
    named, below = ([dict(zip(keys, row, strict=True)) for row in some] for some in (rows, totals))
    return ColumnTable(title, columns, named, below)


def _cell(column: Column, value: Any) -> Any:
    text, style = column.text(value), column.style(value)
    if column.cut:
        return terminal.line(text, style, no_wrap=True, overflow="ellipsis")
    return terminal.line(text, style) if style else text


def _html_cell(text: str) -> str:
    return f'<td title="{escaped(text)}">{escaped(shortened(text))}</td>'


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a header and a line for each of ``rows``, which all have the same columns; None is an empty cell, and a
    list one of its values with spaces between.

    Text is text: characters that would steer a terminal are escaped, and what a spreadsheet would take for a formula
    has an apostrophe before it, as spreadsheets write such text themselves.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(_csv_cell, rows[0] if rows else ()))
    writer.writerows([_csv_cell(row[name]) for name in rows[0]] for row in rows)
    return out.getvalue()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, list | tuple):
        value = " ".join(map(str, value))
    if not isinstance(value, str):
        return value
    return visible(f"'{value}" if value.startswith(_FORMULA) else value)


def json_text(value: Any, indent: int | None = None) -> str:
    """Return ``value`` as JSON that every reader takes: NaN and infinities, which JSON does not have, are null. It is
    ASCII that can be printed, as all else in text is escaped."""
    return json.dumps(_finite(value), indent=indent, allow_nan=False).replace("\x7f", "\\u007f")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value


def escaped(text: str) -> str:
    """Return ``text`` as HTML shows it."""
    return html.escape(visible(text))
