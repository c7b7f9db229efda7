"""Shows the user the stages while a simulator is built, with elapsed and expected seconds."""

import contextlib
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from sim.cache_folder import cache_dir, read_kept, write_kept

INTERVAL = 10.0  #: seconds between lines where standard error is not a terminal
COMPARABLE = 4  #: sizes further apart say nothing about each other: what a stage costs at least is not known
DURATIONS = "durations.json"  #: in the cache folder: seconds and size of the last run of each stage


class Stages:
    """Shows the stages of a build on standard error: live on a terminal; otherwise a line at the start of each stage
    and then one every ``INTERVAL`` seconds. ``quiet`` shows nothing at all. Each line begins with ``subject``, what is
    built; the ``announcement`` comes ahead of the first.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        subject: str = "simulator",
        announcement: str = "compiling the simulator for this design (once; the result is cached)",
    ) -> None:
        self._console = Console(file=sys.stderr, highlight=False, markup=False, soft_wrap=True)
        self._quiet, self._subject, self._announcement = quiet, subject, announcement
        self._announced = False

    @contextmanager
    def stage(self, name: str, *, size: int, seconds: float) -> Iterator[None]:
        """Show the stage called ``name`` while everything inside runs.

        ``size`` is what its duration grows with, such as the bytes of a netlist. The time expected is the last time on
        this machine, scaled by size; ``seconds`` if there was none of a comparable size.
        """
        self._announce()
        expected = _expected(name, size, seconds)
        started = time.monotonic()
        with self._shown(name, f"of about {max(1, round(expected))} s"):
            yield
        _remember(name, size, time.monotonic() - started)

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Show that everything inside waits for ``what``."""
        with self._shown(f"waiting for {what}", ""):
            yield

    def _announce(self) -> None:
        if not self._announced and not self._quiet:
            self._console.print(self._announcement)
        self._announced = True

    @contextmanager
    def _shown(self, name: str, expected: str) -> Iterator[None]:
        started = time.monotonic()

        def line() -> str:
            return f"{self._subject}: {name}, {time.monotonic() - started:.0f} s {expected}".rstrip()

        if self._quiet:
            yield
        elif self._console.is_terminal:
            with self._console.status(_Live(line)):
                yield
            self._console.print(f"{self._subject}: {name}, {time.monotonic() - started:.1f} s")
        else:
            over = threading.Event()

            def repeat() -> None:
                while not over.wait(INTERVAL):
                    self._console.print(line())

            self._console.print(line())
            ticker = threading.Thread(target=repeat, daemon=True)
            ticker.start()
            try:
                yield
            finally:
                over.set()
                ticker.join()


class _Live:
    """Is text that is made anew whenever it is drawn."""

    def __init__(self, line) -> None:
        self._line = line

    def __rich__(self) -> str:
        return self._line()


def _durations() -> dict[str, list[float]]:
    try:
        stored = json.loads(read_kept(cache_dir() / DURATIONS))
    except (OSError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}


def _expected(name: str, size: int, default: float) -> float:
    try:
        seconds, before = _durations()[name]
        return seconds * size / before if before / COMPARABLE <= size <= before * COMPARABLE else default
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return default


def _remember(name: str, size: int, seconds: float) -> None:
    """Remember how long a stage took. A cache folder that cannot be written costs the estimate, nothing else."""
    with contextlib.suppress(OSError):
        write_kept(cache_dir() / DURATIONS, json.dumps({**_durations(), name: [round(seconds, 3), size]}).encode())
