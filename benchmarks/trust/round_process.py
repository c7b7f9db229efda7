"""Runs the rounds of a campaign in a process of its own, which may hang, die or eat its memory."""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.trust.campaign import DIED, KEPT, STUCK, Failure, Tally

ROOT = Path(__file__).parents[2]  #: this checkout
_BUILD_SECONDS = 1800.0  #: that a campaign may take to build what it needs
_SAVE_SECONDS = 5.0


@dataclass(frozen=True)
class Asked:
    """What is asked of a process. ``make``: "module:function" that makes the campaign; ``memory``: bytes that it may
    use beyond what it has when all is built; ``patience``: seconds that one round may take; ``again``: whether a
    failure is tried once more alone; ``failures``: how many end the campaign."""

    name: str
    make: str
    backend: str
    memory: int
    patience: float
    again: bool = True
    failures: int = KEPT


@dataclass(frozen=True)
class Place:
    """Where rounds run: a checkout of the project, this one or a changed copy, and variables of the environment."""

    tree: Path = ROOT
    variables: Mapping[str, str] | None = None

    def environment(self) -> dict[str, str]:
        """Of a process. In a changed copy it finds nothing of this checkout."""
        kept = os.environ.get("PYTHONPATH") if self.tree == ROOT else None
        paths = os.pathsep.join([str(self.tree), *([kept] if kept else [])])
        return {**os.environ, **(self.variables or {}), "PYTHONPATH": paths}


class RoundProcess:
    """A process that runs rounds ``first`` to ``end`` - 1, and answers with a line for each."""

    def __init__(self, asked: Asked, first: int, end: int, place: Place) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by end()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.trust.round_worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._errors, text=True, cwd=place.tree, env=place.environment(),
        )  # fmt: skip
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asdict(asked) | {"first": first, "end": end}) + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def answer(self, seconds: float) -> dict[str, Any] | None:
        """The next answer; None if the process has died. Raises ``TimeoutError``."""
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError from None
        return json.loads(line) if line else None

    def last_words(self) -> str:
        """How it ended, and the last that it said."""
        code = self._process.wait()
        self._errors.seek(0)
        lines = [line for line in self._errors.read().splitlines() if line.strip()]
        return f"exit code {code}" + (f", {lines[-1][:500]}" if lines else "")

    def end(self) -> None:
        """Kill it, if it has not ended."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                pipe.close()


def run_rounds(
    asked: Asked,
    tally: Tally,
    *,
    rounds: int,
    seconds: float,
    place: Place | None = None,
    save: Callable[[str, Tally], None] | None = None,
    told: Callable[[str], None] | None = None,
) -> Tally:
    """Go on with ``tally`` until it has ``rounds`` rounds, or so many seconds have passed, or too many have failed.
    Builds count, but are never given up half done: others need them, too. ``save`` is called now and then, ``told``
    with a line about how far it is."""
    run = _Run(asked, tally, time.monotonic() + seconds, save, told)
    try:
        while tally.ran < rounds and run.goes_on():
            process = RoundProcess(asked, tally.first + tally.ran, tally.first + rounds, place or Place())
            try:
                run.rounds_of(process, rounds)
            finally:
                process.end()
    finally:
        if save is not None:
            save(asked.name, tally)
    return tally


@dataclass
class _Run:
    """Rounds of one campaign, whatever processes they take. ``until``: when they end, by the clock."""

    asked: Asked
    tally: Tally
    until: float
    save: Callable[[str, Tally], None] | None
    told: Callable[[str], None] | None
    saved: float = 0.0

    def goes_on(self) -> bool:
        return not self.tally.broken and self._left() > 0 and self.tally.failed < self.asked.failures

    def _left(self) -> float:
        return self.until - time.monotonic()

    def rounds_of(self, process: RoundProcess, rounds: int) -> None:
        """All rounds of ``process``: until they are complete, or it has died, or is to be ended."""
        if not self._ready(process):
            return
        tally, first = self.tally, self.tally.first + self.tally.ran
        clock = time.monotonic() - tally.seconds  #: when the rounds of the tally would have begun
        while tally.ran < rounds and self.goes_on():
            left = max(0.0, self._left())
            try:
                answer = process.answer(min(self.asked.patience, left))
            except TimeoutError:
                tally.seconds = time.monotonic() - clock
                if self.asked.patience <= left:
                    self._lose(first, STUCK, f"the round has not ended after {self.asked.patience:g} s")
                return
            tally.seconds = time.monotonic() - clock
            if answer is None:
                self._lose(first, DIED, f"the process of the round died ({process.last_words()})")
                return
            self._note(answer)

    def _ready(self, process: RoundProcess) -> bool:
        try:
            answer = process.answer(_BUILD_SECONDS)
        except TimeoutError:
            answer = {"broken": f"it is not ready after {_BUILD_SECONDS:g} s"}
        if answer is None:
            answer = {"broken": f"its process died ({process.last_words()})"}
        self.tally.broken = answer.get("broken", "")
        return not self.tally.broken

    def _lose(self, began: int, kind: str, message: str) -> None:
        self._note({"failed": kind, "began": began, "message": message})

    def _note(self, answer: dict[str, Any]) -> None:
        tally, number = self.tally, self.tally.first + self.tally.ran
        if "what" in answer:
            tally.kinds[answer["what"]] += 1
        else:
            began = number if answer["began"] is None else answer["began"]
            tally.fail(Failure(number, began, answer["failed"], answer["message"]))
        tally.reached.update(answer.get("reached", {}))
        tally.ran += 1
        if time.monotonic() - self.saved > _SAVE_SECONDS:
            self.saved = time.monotonic()
            if self.save is not None:
                self.save(self.asked.name, tally)
            if self.told is not None:
                self.told(f"{self.asked.name}: {tally.ran} rounds, {tally.failed} failed")
