"""Campaigns that end their rounds in every way there is."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable

from benchmarks.trust.campaign import round_seed

NUMBERS = {round_seed("x", number): number for number in range(200)}


class Rounds:
    """Does ``what`` to the number of each round of campaign ``x``, and to how many this device has had before."""

    def __init__(self, what: Callable[[int, int, int], object]) -> None:
        self.reached: Counter[str] = Counter()
        self._what, self._had = what, 0

    def round(self, seed: int) -> str:
        self.reached["rounds"] += 1
        self._had += 1
        self._what(NUMBERS[seed], seed, self._had)
        return "fine"

    def close(self) -> None: ...


def fifth(_: str) -> Rounds:
    def what(number: int, seed: int, had: int) -> None:
        assert number % 5, f"seed {seed}"

    return Rounds(what)


def third_in_row(_: str) -> Rounds:
    def what(number: int, seed: int, had: int) -> None:
        assert had < 3, "the third"

    return Rounds(what)


def dies(_: str) -> Rounds:
    return Rounds(lambda number, seed, had: number == 5 and os.kill(os.getpid(), signal.SIGKILL))


def eats(_: str) -> Rounds:
    return Rounds(lambda number, seed, had: number == 5 and bytearray(1 << 32))


def hangs(_: str) -> Rounds:
    return Rounds(lambda number, seed, had: number == 5 and time.sleep(60))


def slow(_: str) -> Rounds:
    return Rounds(lambda number, seed, had: time.sleep(0.2))


def raises(_: str) -> Rounds:
    return Rounds(lambda number, seed, had: number == 5 and {}["nothing"])


def built_slowly(_: str) -> Rounds:
    time.sleep(0.6)
    return fifth(_)
