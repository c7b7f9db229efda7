"""The campaigns of programs: hostile ones, and RTL against functional model."""

import random
import warnings
from collections import Counter
from functools import cache

from benchmarks.trust.corpus import instructions
from benchmarks.trust.differential import Pair
from benchmarks.trust.hostile import HostilePrograms

PROGRAMS = 6  #: of one round: rings of eight entries go around


class ProgramCampaign:
    """Random programs of an attacker, each beside one of a victim, on one SoC. ``hostile``: those of which no model
    says what they compute. ``backend``: of ``sim.backends``."""

    def __init__(self, backend: str, *, hostile: bool) -> None:
        self.reached: Counter[str] = Counter()
        corpus = _corpus()
        self._pair = Pair(backend, list(corpus))
        self._hostile = HostilePrograms(self._pair, list(corpus)) if hostile else None

    def round(self, seed: int) -> str:
        """:data:`PROGRAMS` programs, from memories and engines whose state depends on the seed alone."""
        rng = random.Random(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # parameters that mean nothing overflow
            self._pair.restart(rng)
            for number in range(PROGRAMS):
                if self._hostile is not None:
                    shown = self._hostile.round(rng)
                else:
                    shown = self._pair.round(rng, flawed=bool(number % 2))
                self.reached["programs"] += 1
                self.reached[shown] += 1
        return f"{PROGRAMS} programs"

    def close(self) -> None:
        """Close the simulator."""
        self._pair.close()


def hostile(backend: str) -> ProgramCampaign:
    """Programs that may be anything, of which no model says what they compute."""
    return ProgramCampaign(backend, hostile=True)


def differential(backend: str) -> ProgramCampaign:
    """Programs of which the functional model says what they do."""
    return ProgramCampaign(backend, hostile=False)


@cache
def _corpus():
    return tuple(instructions())
