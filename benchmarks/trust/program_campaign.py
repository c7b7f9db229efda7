"""The campaigns of programs: hostile ones, and RTL against functional model."""

import random
import warnings
from collections import Counter
from functools import cache

from benchmarks.trust.corpus import instructions
from benchmarks.trust.differential import Pair
from benchmarks.trust.hostile import HostilePrograms


class ProgramCampaign:
    """Random programs on one SoC that is kept from round to round. ``hostile``: those of which no model says what they
    compute. ``backend``: of ``sim.backends``."""

    def __init__(self, backend: str, *, hostile: bool) -> None:
        self.reached: Counter[str] = Counter()
        corpus = _corpus()
        self._pair = Pair(backend, list(corpus))
        self._hostile = HostilePrograms(self._pair, list(corpus)) if hostile else None

    def round(self, seed: int) -> str:
        """One program of an attacker beside one of a victim."""
        rng = random.Random(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # parameters that mean nothing overflow
            if self._hostile is not None:
                return self._hostile.round(rng)
            return self._pair.round(rng, flawed=bool(seed % 2))

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
