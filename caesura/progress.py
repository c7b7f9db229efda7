"""A progress line on a terminal: what is running, cycles so far, cycles per second."""

import sys
import time

from rich.console import Console
from rich.status import Status


class Progress:
    """A context manager; shows nothing when standard error is not a terminal, and nothing before the first task: until
    then the simulator may be building, which has a display of its own."""

    def __init__(self) -> None:
        self._status = Status("", console=Console(stderr=True)) if sys.stderr.isatty() else None
        self._what = ""
        self._start: tuple[float, int] | None = None

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        if self._status:
            self._status.stop()

    def task(self, what: str) -> None:
        """Name what runs now."""
        self._what = what
        if self._status:
            self._status.update(what)
            self._status.start()

    def cycles(self, cycle: int) -> None:
        """A ``sim.bus.Progress``: the simulator reports its cycle."""
        now = time.monotonic()
        if self._start is None:
            self._start = now, cycle
        elapsed = now - self._start[0]
        if self._status and elapsed > 0:
            rate = (cycle - self._start[1]) / elapsed
            self._status.update(f"{self._what}: cycle {cycle:,} ({rate:,.0f} cycles/s)")
