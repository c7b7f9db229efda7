"""Is the door to the terminal: all that commands print passes here.

What people read may hold names that a stranger chose. They are text: nothing in them is markup, and characters that
would steer a terminal are shown escaped. Data for programs, JSON and CSV, takes care of that itself.
"""

import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from textwrap import wrap
from typing import Any

import typer
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from sim import distinct_names, visible

_WIDE = 500  #: characters of a line that nobody looks at in a terminal
_NAME, _WORDS = 7, 4  #: cells that a first column, and one of words, have at least


_short_names = lru_cache(maxsize=16)(distinct_names)  # asked for once for each cell of a column


class _Name:
    """Is a name in a column of ``names``: where there is little room, its middle is left out, so that no two in the
    column look alike."""

    def __init__(self, text: Text, names: list[str]) -> None:
        self._text, self._names = text, names
        names.append(text.plain)

    def __str__(self) -> str:
        return self._text.plain

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        size = cell_len(self._text.plain)
        return Measurement(min(_NAME, size), size)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = self._text.copy()
        if cell_len(text.plain) == len(text.plain):  # some characters take two cells
            text.plain = _short_names(tuple(self._names), options.max_width)[text.plain]
        yield text


class ReportTable(Table):
    """Is a table of which numbers are never shortened: where there is little room, names are, the first column's too.
    Where even that does not do, headings take several lines; and then it becomes several tables, one below the other,
    each with the first column and as many of the others as there is room for, at least one."""

    def __init__(self, *headers: Any, **more: Any) -> None:
        super().__init__(*headers, **more)
        self._more = more
        self._made: list[tuple[tuple[Any, ...], dict[str, Any]]] = []  #: columns, as they were added
        self._given: list[tuple[tuple[Any, ...], dict[str, Any]] | None] = []  #: rows; None: a line between them
        self._least: list[int] = []  #: cells that the columns need
        self._folded: list[int] = []  #: the same where headings take several lines
        self._names: dict[int, list[str]] = {}  #: of each column that has some

    def add_column(self, *header: Any, **more: Any) -> None:
        """Add a column as ``rich`` does."""
        self._made.append((header, more))
        super().add_column(*header, **more)

    def add_section(self) -> None:
        """Add a line as ``rich`` does."""
        self._given.append(None)
        super().add_section()

    def add_row(self, *cells: Any, **more: Any) -> None:
        """Add a row as ``rich`` does."""
        self._given.append((cells, more))
        shown = [self._cell(at, cell) for at, cell in enumerate(cells)]
        super().add_row(*shown, **more)
        for at, (column, cell) in enumerate(zip(self.columns, shown, strict=False)):
            size = cell_len(str(cell))
            least = folded = min(size, _WORDS if at else _NAME)
            if column.no_wrap:
                least = max(size, cell_len(str(column.header)))
                folded = max(size, *map(cell_len, str(column.header).split()), 1)
            for sizes, found in ((self._least, least), (self._folded, folded)):
                sizes += [0] * (at + 1 - len(sizes))
                sizes[at] = max(sizes[at], found)

    def _cell(self, at: int, cell: Any) -> Any:
        if isinstance(cell, str):
            cell = line(cell, no_wrap=True, overflow="ellipsis") if at == 0 else line(cell)
        if isinstance(cell, Text) and cell.overflow == "ellipsis":
            return _Name(cell, self._names.setdefault(at, []))
        return cell

    def _parts(self, room: int) -> list[list[int]]:
        """Return which columns stand side by side in ``room`` cells if headings take several lines."""
        parts, first = [[0]], self._folded[0] + 4
        used = first
        for at, least in enumerate(self._folded[1:], 1):
            if used + least + 3 > room and len(parts[-1]) > 1:
                parts.append([0])
                used = first
            parts[-1].append(at)
            used += least + 3
        return parts

    def _part(self, columns: Sequence[int], *, first: bool) -> "ReportTable":
        part = ReportTable(**(self._more if first else self._more | {"title": None}))
        for at in columns:
            header, more = self._made[at]
            if self.columns[at].no_wrap:
                header = (Text("\n".join(wrap(str(header[0]), self._folded[at], break_long_words=False))),)
            part.add_column(*header, **more)
        for row in self._given:
            if row is None:
                part.add_section()
            else:
                part.add_row(*(row[0][at] for at in columns), **row[1])
        part._least = part._folded
        return part

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        needed = sum(self._least) + 3 * len(self.columns) + 1
        parts = self._parts(options.max_width) if needed > options.max_width else []
        if len(parts) > 1 or (parts and self._folded != self._least):
            for number, columns in enumerate(parts):
                yield from self._part(columns, first=number == 0).__rich_console__(console, options)
        else:
            yield from super().__rich_console__(console, options.update(max_width=max(needed, options.max_width)))


def tell(report: RenderableType) -> None:
    """Print a report. Into a file or a pipe it is as wide as it is, whoever reads it."""
    wide = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _WIDE
    Console(width=wide, markup=False, emoji=False).print(report, crop=False)


def line(text: str, style: str = "", *, lines: bool = False, **more: Any) -> Text:
    """Return text of one style, whatever is in it; with ``lines`` it may be several. ``more`` is arguments of
    ``rich.text.Text``."""
    return Text(visible(text, lines=lines), style, **more)


def say(text: str, *, err: bool = False, lines: bool = False) -> None:
    """Print a line of text for people, on standard error if ``err``; with ``lines`` it may be several."""
    typer.echo(visible(text, lines=lines), err=err)


def write(data: str) -> None:
    """Print JSON or comma-separated values, which hold no characters that steer a terminal."""
    typer.echo(data.removesuffix("\n"))


def complain(text: str) -> None:
    """Tell an error."""
    Console(stderr=True).print(line(text, "red", lines=True), soft_wrap=True)


def width() -> int:
    """Return how many columns there are."""
    return Console().width
