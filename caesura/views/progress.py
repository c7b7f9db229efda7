"""Shows a progress line on a terminal: what is running, cycles so far, cycles per second, time left."""

import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.status import Status

from caesura.views.terminal import line, say
from hw.contract.params import SocParams

if TYPE_CHECKING:
    from sw.driver import LoadedModel
    from sw.runtime import RequestRunner


def compiling(model: Path, params: SocParams) -> str:
    """Return what :meth:`Progress.task` says while a model is compiled."""
    return f"compiling {model.name} for {params.name}"


class Progress:
    """Shows progress as a context manager. It shows nothing when standard error is not a terminal, and nothing before
    the first task: until then the simulator may be building, which has a display of its own."""

    def __init__(self) -> None:
        self._status = Status("", console=Console(stderr=True)) if sys.stderr.isatty() else None
        self._what = ""
        self._start: tuple[float, int] | None = None
        self._end: int | None = None

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        if self._status:
            self._status.stop()

    def task(self, what: str, *, cycle: int | None = None, expected: int = 0) -> None:
        """Name what runs now. ``cycle``: of the simulator at its start; ``expected``: how many more cycles the run may
        take, an estimate, which gives the time left."""
        self._what = what
        self._start = None if cycle is None else (time.monotonic(), cycle)
        self._end = None if cycle is None or not expected else cycle + expected
        if self._status:
            self._status.update(line(what))
            self._status.start()

    def note(self, text: str) -> None:
        """Print a line that stays, on standard error, and show nothing until the next task."""
        self.rest()
        say(text, err=True)

    def rest(self) -> None:
        """Show nothing until the next task: something with a display of its own begins, such as a build."""
        self._what, self._start, self._end = "", None, None
        if self._status:
            self._status.stop()

    def watch(self, runtime: "RequestRunner", names: "Callable[[LoadedModel], str] | None" = None) -> None:
        """Take note of the run time that serves from now on; a line shows nothing of it. ``names`` is what models are
        called, by default as their files."""

    def cycles(self, cycle: int) -> None:
        """Take the cycle that the simulator reports; this is a ``hw.contract.bus.Progress``."""
        now = time.monotonic()
        if self._start is None:
            self._start = now, cycle
        elapsed = now - self._start[0]
        if self._status and elapsed > 0:
            rate = (cycle - self._start[1]) / elapsed
            left = f", {self._left(cycle, rate)}" if self._end is not None and rate > 0 else ""
            self._status.update(line(f"{self._what}: cycle {cycle:,} ({rate:,.0f} cycles/s{left})"))

    def _left(self, cycle: int, rate: float) -> str:
        """Return the time left by the estimate; a run that has passed it says so."""
        if self._end is None or cycle >= self._end:
            return "longer than estimated"
        minutes, seconds = divmod(math.ceil((self._end - cycle) / rate), 60)
        hours, minutes = divmod(minutes, 60)
        return f"about {hours}:{minutes:02}:{seconds:02} left" if hours else f"about {minutes}:{seconds:02} left"
