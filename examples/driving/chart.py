"""A schedule as lines of text: a colour for each frame."""

from rich.text import Text

from benchmarks.driving import FrameSchedule, Slot
from caesura.scenario import Bar, chart as bars

_LETTERS = {"perception": "P", "parsing": "c", "planning": "L", "dump": "d", "restore": "r"}
_SHORT = ("dump", "restore")
_COLOURS = ("cyan", "magenta", "yellow", "green")
LEGEND = "P perception, c parsing, L planning, d dump, r restore, one colour per frame"


def chart(schedule: FrameSchedule, scale: float) -> list[Text]:
    """Lines for the accelerator, the CPU, and the scale. ``scale``: units in a column."""
    return bars(map(_bar, schedule.slots), ("accelerator", "CPU"), scale)


def _bar(slot: Slot) -> Bar:
    short = slot.what in _SHORT
    style = "bold red" if short else _COLOURS[slot.frame % len(_COLOURS)]
    line = "CPU" if slot.what == "parsing" else "accelerator"
    return Bar(line, _LETTERS[slot.what], slot.start, slot.end, style, short)
