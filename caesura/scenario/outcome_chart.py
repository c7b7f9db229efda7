"""Draws what ran when in a scenario, as lines of text: one for each engine and CPU, a letter for each model."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from string import ascii_lowercase, ascii_uppercase, digits

from rich.console import Group
from rich.text import Text

from caesura.scenario.outcome import Outcome
from caesura.scenario.schema import CYCLES
from caesura.views import line

_MOVES = {"dump": "d", "restore": "r"}
_COLOURS = ("cyan", "magenta", "yellow", "green", "blue")
_BLOCKS = 6  #: one below the other, at most
_COLUMNS = 6  #: for half of what runs, about, where that takes no more blocks

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


def outcome_chart(outcome: Outcome, time_unit: str, width: int) -> Group:
    """Return lines of ``width`` columns, in as many blocks, one below the other, as make models visible, but not in
    more than six; and what the letters mean. Dumps and restores take a column at least."""
    ran, moved = _ran(outcome, time_unit)
    models = _letters((name for _, name, *_ in ran), ascii_uppercase + digits)
    stages = _letters((run.stage for run in outcome.cpu), [c for c in ascii_lowercase if c not in _MOVES.values()])
    colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(models)}
    bars = [
        *(Bar(line, models[name], start, end, colours[name]) for line, name, start, end in ran),
        *(Bar(line, _MOVES[kind], start, end, "bold red", short=True) for line, kind, start, end in moved),
        *(Bar(_cpu(outcome, run.cpu), stages[run.stage], run.start, run.end) for run in outcome.cpu),
    ]
    lines = [_short(name) for name in outcome.engine_names]
    lines += [_cpu(outcome, number) for number in sorted({run.cpu for run in outcome.cpu})]
    columns = max(1, width - MARGIN)
    blocks, scale = _layout(bars, columns)
    drawn = [
        text
        for begin in range(0, blocks * columns, columns)
        for text in (*chart(bars, lines, scale, begin, begin + columns), line(""))
    ]
    meant = [f"{letter} {name}" for name, letter in models.items()]
    meant += [f"{letter} {name} on the CPU" for name, letter in stages.items()]
    meant += [f"{_MOVES[kind]} {kind}" for kind in _MOVES if any(kind == one for _, one, *_ in moved)]
    return Group(line(f"{', '.join(meant)}; time in {time_unit}"), *drawn)


_Ran = tuple[str, str, float, float]  #: line, name, start and end


def _ran(outcome: Outcome, time_unit: str) -> tuple[list[_Ran], list[_Ran]]:
    """Return the models that ran, and dumps and restores, which a device has in its timeline."""
    if not outcome.timeline:
        layers = [(f"engine {run.engine}", run.model, run.start, run.end) for run in outcome.layers]
        return layers, [(f"engine {move.engine}", move.kind, move.begin, move.end) for move in outcome.moves]
    ticks = CYCLES[time_unit]
    spans = [
        (_short(span.track[0]), span.kind, span.start / ticks, span.end / ticks)
        for span in outcome.timeline
        if span.track[1] == "executor"
    ]
    return [one for one in spans if one[1] not in _MOVES], [one for one in spans if one[1] in _MOVES]


def _short(name: str) -> str:
    """Return the name of an engine so that it fits in front of its line: ``d1 engine 0``."""
    return name.replace("device ", "d").replace(":", "")


def _cpu(outcome: Outcome, number: int) -> str:
    return f"CPU {number}" if any(run.cpu for run in outcome.cpu) else "CPU"


def _letters(names: Iterable[str], letters: Sequence[str]) -> dict[str, str]:
    """Return a letter for each name: one of its own that is free, else any, else ``#``."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(names):
        free = [letter for letter in letters if letter not in found.values()]
        own = [letter for each in name for letter in free if letter.lower() == each.lower()]
        found[name] = next(iter([*own, *free]), "#")
    return found


def _layout(bars: Sequence[Bar], columns: int) -> tuple[int, float]:
    """Return the blocks of ``columns``, and units of time in a column."""
    whole = max((bar.end for bar in bars), default=0.0) or 1.0
    lengths = [bar.end - bar.start for bar in bars if not bar.short and bar.end > bar.start]
    wanted = median(lengths) / _COLUMNS if lengths else whole
    blocks = min(_BLOCKS, max(1, round(whole / wanted / columns)))
    return blocks, whole / blocks / columns


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
