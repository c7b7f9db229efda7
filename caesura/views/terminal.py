"""Is the door to the terminal: all that commands print passes here.

What people read may hold names that a stranger chose. They are text: nothing in them is markup, and characters that
would steer a terminal are shown escaped. Data for programs, JSON and CSV, takes care of that itself.
"""

import os
import sys
from typing import Any

import typer
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from sim import visible

_WIDE = 500  #: characters of a line that nobody looks at in a terminal
_NAME, _WORDS = 7, 4  #: cells that a first column, and one of words, have at least


class ReportTable(Table):
    """Is a table of which numbers are never shortened: where there is little room, names are, the first column's too.
    Where even that does not do, the table is wider than the room; see :func:`tell`."""

    def __init__(self, *headers: Any, **more: Any) -> None:
        super().__init__(*headers, **more)
        self._least: list[int] = []

    def add_row(self, *cells: Any, **more: Any) -> None:
        """Add a row as ``rich`` does."""
        shown = [_cell(cell, no_wrap=at == 0) if isinstance(cell, str) else cell for at, cell in enumerate(cells)]
        super().add_row(*shown, **more)
        for at, (column, cell) in enumerate(zip(self.columns, shown, strict=False)):
            size = cell_len(str(cell))
            most = max(size, cell_len(str(column.header))) if column.no_wrap else min(size, _WORDS if at else _NAME)
            self._least += [0] * (at + 1 - len(self._least))
            self._least[at] = max(self._least[at], most)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        needed = sum(self._least) + 3 * len(self.columns) + 1
        return super().__rich_console__(console, options.update(max_width=max(needed, options.max_width)))


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


def _cell(text: str, *, no_wrap: bool) -> Text:
    return line(text, no_wrap=True, overflow="ellipsis") if no_wrap else line(text)
