"""Writes tables as comma-separated values.

Text in them is text: characters that would steer a terminal are escaped, and what a spreadsheet would take for a
formula has an apostrophe before it, as spreadsheets write such text themselves.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from sim import visible

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  #: what a formula begins with


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a header and a line for each of ``rows``, which all have the same columns; None is an empty cell, and a
    list one of its values with spaces between."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(_cell, rows[0] if rows else ()))
    writer.writerows([_cell(row[name]) for name in rows[0]] for row in rows)
    return out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list | tuple):
        value = " ".join(map(str, value))
    if not isinstance(value, str):
        return value
    return visible(f"'{value}" if value.startswith(_FORMULA) else value)
