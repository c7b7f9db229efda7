"""Writes the tables that notebooks show of objects."""

import html
from collections.abc import Iterable, Sequence

MOST = 200  #: rows of a table, so that a page stays small


def html_table(caption: object, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in HTML under what ``repr`` tells of ``caption``: numbers have separators, None is an empty cell,
    all else is text. Of more than ``MOST`` rows the first are shown, and how many there are."""
    all_rows = list(rows)
    head = "".join(f"<th>{html.escape(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{_told(cell)}</td>' for cell in row)}</tr>" for row in all_rows[:MOST])
    if len(all_rows) > MOST:
        body += f'<tr><td colspan="{len(heads)}">... {len(all_rows) - MOST:,} more</td></tr>'
    told = html.escape(repr(caption).removeprefix("<").removesuffix(">"))
    return f"<table><caption>{told}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _told(cell: object) -> str:
    if cell is None:
        return ""
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else html.escape(str(cell))
