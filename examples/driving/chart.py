"""A schedule as lines of text: a colour for each frame."""

from rich.text import Text

from benchmarks.driving import FrameSchedule, Slot

_LETTERS = {"perception": "P", "parsing": "c", "planning": "L", "dump": "d", "restore": "r"}
_SHORT = ("dump", "restore")  #: drawn last, in one column at least: they would vanish otherwise
_COLOURS = ("cyan", "magenta", "yellow", "green")
_LABEL = 13
MARGIN = _LABEL + 4  #: columns of a line that no slot uses
LEGEND = "P perception, c parsing, L planning, d dump, r restore, one colour per frame"


def chart(schedule: FrameSchedule, scale: float) -> list[Text]:
    """Lines for the accelerator, the CPU, and the scale. ``scale``: units in a column."""
    last = max((slot.end for slot in schedule.slots), default=0.0)
    accelerator = [slot for slot in schedule.slots if slot.what != "parsing"]
    parsing = [slot for slot in schedule.slots if slot.what == "parsing"]
    return [_line("accelerator", accelerator, scale), _line("CPU", parsing, scale), _scale(last, scale)]


def _line(label: str, slots: list[Slot], scale: float) -> Text:
    cells: dict[int, tuple[str, str]] = {}
    for slot in sorted(slots, key=lambda slot: slot.what in _SHORT):
        first = round(slot.start / scale)
        end = max(round(slot.end / scale), first + (slot.what in _SHORT))
        style = "bold red" if slot.what in _SHORT else _COLOURS[slot.frame % len(_COLOURS)]
        cells |= {column: (_LETTERS[slot.what], style) for column in range(first, end)}
    text = Text(label.ljust(_LABEL), no_wrap=True)
    for column in range(max(cells, default=-1) + 1):
        text.append(*cells.get(column, ("·", "dim")))
    return text


def _scale(last: float, scale: float) -> Text:
    line = ""
    for unit in range(0, int(last) + 1, 20):
        line = line.ljust(round(unit / scale)) + f"|{unit}"
    return Text(" " * _LABEL + line, style="dim", no_wrap=True)
