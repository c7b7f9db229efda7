"""What the user sees while a simulator is built: one line per stage with its seconds."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console


class BuildDisplay:
    """Shows the stages of a build on standard error: live on a terminal, otherwise a single line at the start.

    ``quiet`` shows nothing at all.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = Console(file=sys.stderr, highlight=False)
        self._quiet = quiet
        self._announced = False

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Everything inside is the stage called ``name``."""
        if self._quiet:
            yield
        elif self._console.is_terminal:
            started = time.monotonic()
            with self._console.status(f"simulator: {name} …"):
                yield
            self._console.print(f"simulator: {name}, {time.monotonic() - started:.1f} s")
        else:
            if not self._announced:
                self._console.print("compiling the simulator for this design (once; the result is cached)")
                self._announced = True
            yield
