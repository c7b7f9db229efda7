"""Whether the campaigns find a mutant, with inputs and oracles of the clean checkout."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.trust.campaign import CHECK, STUCK, Failure, Tally
from benchmarks.trust.campaigns import KINDS
from benchmarks.trust.mutants.mutant import CodeMoved, Mutant
from benchmarks.trust.mutants.trees import mutated_tree
from benchmarks.trust.round_process import ROOT, Place, run_rounds
from benchmarks.trust.under_test import HARDWARE, KEEP, KEPT
from sim import DEFAULT_BACKEND

FOUND, SURVIVED, BROKEN = "found", "survived", "broken"
_SECONDS = 600.0  #: that a campaign may take for one mutant, builds not counted
_FAIL_ANYWAY = 5  #: rounds that may fail without the mutant as well


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: found, survived, or broken, which says nothing of the campaigns. ``why``: the check that
    failed, what was not reached, or what went wrong."""

    mutant: str
    fate: str
    why: str
    campaign: str = ""
    number: int = 0
    seconds: float = 0.0


class CleanRuns:
    """Rounds on the clean checkout. What they are made of is kept in ``folder`` for the mutants: none moves its own
    judge. A round that fails here as well finds nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def prepare(self, campaign: str) -> None:
        """Keep what rounds of ``campaign`` are made of, if there is such a campaign."""
        if campaign in KINDS:
            _run(campaign, Tally(0), 1, Place(ROOT, {KEEP: str(self._folder)}))

    def fails(self, campaign: str, failure: Failure) -> bool:
        """Whether the round of ``failure`` does not pass here."""
        rounds = failure.number - failure.began + 1
        tally = _run(campaign, Tally(failure.began), rounds, Place(ROOT), failures=rounds)
        return bool(tally.broken) or tally.ran < rounds or failure.number in [one.number for one in tally.failures]

    def place(self, mutant: Mutant, tree: Path) -> Place:
        """Where campaigns run for ``mutant``, which ``tree`` has: here, on its hardware, or there, on this."""
        hardware, software = (tree, ROOT) if mutant.is_hardware else (ROOT, tree)
        return Place(software, {HARDWARE: str(hardware), KEPT: str(self._folder)})


def hunt(mutant: Mutant, clean: CleanRuns, told: Callable[[str], None] | None = None) -> Verdict:
    """Run the campaigns of ``mutant`` one after the other until one finds it."""
    known = [name for name in mutant.campaigns if name in KINDS]
    if not known:
        return Verdict(mutant.name, BROKEN, f"there is no campaign {' or '.join(mutant.campaigns)}")
    verdicts: list[Verdict] = []
    try:
        with mutated_tree(mutant) as tree:
            for name in known:
                if told is not None:
                    told(f"{mutant.name}: {name}")
                verdicts.append(_campaign(mutant, name, clean, clean.place(mutant, tree)))
                if verdicts[-1].fate != SURVIVED:
                    break
    except CodeMoved as error:
        return Verdict(mutant.name, BROKEN, str(error))
    seconds = round(sum(verdict.seconds for verdict in verdicts), 1)
    last = replace(verdicts[-1], seconds=seconds)
    return last if last.fate != SURVIVED else replace(last, why="; ".join(verdict.why for verdict in verdicts))


def _campaign(mutant: Mutant, name: str, clean: CleanRuns, place: Place) -> Verdict:
    """Rounds with the mutant until one fails that passes without it."""
    rounds, begin, seconds = KINDS[name].mutant, 0, 0.0
    reached: Counter[str] = Counter()
    for _ in range(_FAIL_ANYWAY + 1):
        tally = _run(name, Tally(begin), rounds - begin, place)
        seconds += tally.seconds
        reached.update(tally.reached)
        if tally.broken:
            return Verdict(mutant.name, BROKEN, f"cannot begin: {tally.broken.splitlines()[-1]}", name)
        if not tally.failures:
            break
        failure = tally.failures[0]
        if not clean.fails(name, failure):
            fate = FOUND if failure.kind in (CHECK, STUCK) else BROKEN
            return Verdict(mutant.name, fate, failure.message.splitlines()[0], name, failure.number, seconds)
        begin = failure.number + 1
    else:
        return Verdict(mutant.name, BROKEN, f"{_FAIL_ANYWAY + 1} rounds fail without the mutant as well", name)
    if begin + tally.ran < rounds:
        return Verdict(mutant.name, BROKEN, f"{begin + tally.ran} rounds instead of {rounds} in {seconds:.0f} s", name)
    what = (
        f", which reached {mutant.must_observe!r} {reached[mutant.must_observe]} times" if mutant.must_observe else ""
    )
    return Verdict(mutant.name, SURVIVED, f"not found by {rounds} rounds of {name}{what}", name, 0, seconds)


def _run(campaign: str, tally: Tally, rounds: int, place: Place, failures: int = 1) -> Tally:
    asked = KINDS[campaign].asked(campaign, DEFAULT_BACKEND, again=False, failures=failures)
    return run_rounds(asked, tally, rounds=rounds, seconds=_SECONDS, place=place)
