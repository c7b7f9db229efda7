"""Draws what ran when in a scenario, as lines of text: one for each engine and CPU, a letter for each model."""

from collections.abc import Iterable, Sequence
from statistics import median
from string import ascii_lowercase, ascii_uppercase, digits

from rich.console import Group

from caesura.scenario.bar_chart import MARGIN, Bar, chart
from caesura.scenario.outcome import Outcome
from caesura.scenario.schema import CYCLES
from caesura.terminal import line

_MOVES = {"dump": "d", "restore": "r"}
_COLOURS = ("cyan", "magenta", "yellow", "green", "blue")
_BLOCKS = 6  #: one below the other, at most
_COLUMNS = 6  #: for half of what runs, about, where that takes no more blocks


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
    lines = [f"engine {engine}" for engine in range(outcome.engines)]
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
        (span.track[0], span.kind, span.start / ticks, span.end / ticks)
        for span in outcome.timeline
        if span.track[1] == "executor"
    ]
    return [one for one in spans if one[1] not in _MOVES], [one for one in spans if one[1] in _MOVES]


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
