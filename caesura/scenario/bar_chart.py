"""Draws a schedule as lines of text: a letter in each column for what ran, a dot for nothing."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.text import Text

from caesura.terminal import line

_LABEL = 13
_TICK = 12  #: columns from one figure of the scale to the next, at least
MARGIN = _LABEL + 4  #: columns of a line that no bar uses


@dataclass(frozen=True)
class Bar:
    """Describes what ran on ``line`` from ``start`` to ``end``. With ``short`` it is drawn above all that is not, and
    in one column at least; it would vanish otherwise."""

    line: str
    letter: str
    start: float
    end: float
    style: str = ""
    short: bool = False


def chart(
    bars: Iterable[Bar], lines: Sequence[str], scale: float, begin: int = 0, end: int | None = None
) -> list[Text]:
    """Return a line of text for each of ``lines``, and one for the scale.

    ``scale``: units of time in a column. Columns ``begin`` to ``end``, by default until the last bar, are drawn. Of
    bars that overlap on a line, the one that begins last is seen.
    """
    bars = sorted(bars, key=lambda bar: (bar.short, bar.start))
    last = int(max((bar.end for bar in bars), default=0.0) / scale) + 1 if end is None else end
    drawn = [_line(name, [bar for bar in bars if bar.line == name], scale, begin, end) for name in lines]
    return [*drawn, _scale(begin, last, scale, math.inf if end is None else end + MARGIN - _LABEL)]


def _line(label: str, bars: Sequence[Bar], scale: float, begin: int, end: int | None) -> Text:
    cells: dict[int, tuple[str, str]] = {}
    for bar in bars:
        first = round(bar.start / scale)
        after = max(round(bar.end / scale), first + bar.short)
        cells |= dict.fromkeys(range(first, after), (bar.letter, bar.style))
    text = line(label.ljust(_LABEL), no_wrap=True)
    for column in range(begin, max(cells, default=-1) + 1 if end is None else end):
        text.append(*cells.get(column, ("·", "dim")))
    return text


def _scale(begin: int, end: int, scale: float, room: float) -> Text:
    """Return figures that end before column ``room``."""
    step = _step(scale)
    figures, count = "", math.ceil(begin * scale / step)
    while (column := round(count * step / scale)) < end:
        figure = f"|{_figure(count * step)}"
        if column + len(figure) <= room:
            figures = figures.ljust(column - begin) + figure
        count += 1
    return line(" " * _LABEL + figures, "dim", no_wrap=True)


def _figure(value: float) -> str:
    return f"{round(value):,}" if value >= 1 else f"{value:g}"


def _step(scale: float) -> float:
    """Return the smallest of 1, 2, 5, 10, 20, ... (or 0.5, 0.2, ...) that takes enough columns."""
    power = 10.0 ** math.floor(math.log10(_TICK * scale))
    return next(power * digit for digit in (1, 2, 5, 10, 20) if power * digit >= _TICK * scale)
