"""Whether the campaigns find a mutant, with inputs and oracles of the clean checkout."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.trust.campaign import CHECK, STUCK, Failure, Tally
from benchmarks.trust.campaigns import KINDS
from benchmarks.trust.mutants.mutant import CodeMoved, Mutant
from benchmarks.trust.mutants.trees import mutated_tree
from benchmarks.trust.round_process import ROOT, Place, run_rounds
from benchmarks.trust.under_test import HARDWARE, KEEP, KEPT
from sim.backends import DEFAULT_BACKEND

FOUND, SURVIVED, BROKEN = "found", "survived", "broken"
_SECONDS = 600.0  #: that a campaign may take for one mutant, builds not counted


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
    """Rounds on the clean checkout: those that fail there say nothing of a mutant. What they make is kept in ``folder``
    for the mutants: none moves its own judge."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._tallies: dict[str, Tally] = {}

    def run(self, campaign: str) -> None:
        """As many rounds as a mutant has, if there is such a campaign."""
        kind = KINDS.get(campaign)
        if kind is not None:
            asked, place = kind.asked(campaign, DEFAULT_BACKEND, again=False), Place(ROOT, {KEEP: str(self.folder)})
            tally = run_rounds(asked, Tally(0), rounds=kind.mutant, seconds=_SECONDS, place=place)
            self._tallies[campaign] = tally

    def tally(self, campaign: str) -> Tally:
        """How its rounds went."""
        return self._tallies[campaign]


def hunt(mutant: Mutant, clean: CleanRuns, told: Callable[[str], None] | None = None) -> Verdict:
    """Run the campaigns of ``mutant`` one after the other until one finds it."""
    known = [name for name in mutant.campaigns if name in KINDS]
    if not known:
        return Verdict(mutant.name, BROKEN, f"there is no campaign {' or '.join(mutant.campaigns)}")
    seconds, survived = 0.0, []
    try:
        with mutated_tree(mutant) as tree:
            for name in known:
                before = clean.tally(name)
                if told is not None:
                    told(f"{mutant.name}: {name}")
                found, tally = _campaign(mutant, tree, name, before, clean.folder)
                seconds += tally.seconds
                if found is not None:
                    first = found.message.splitlines()[0]
                    return Verdict(mutant.name, FOUND, first, name, found.number, round(seconds, 1))
                if (problem := _problem(name, before, tally)) is not None:
                    return Verdict(mutant.name, BROKEN, problem, name, 0, round(seconds, 1))
                survived.append(_not_found(mutant, name, tally))
    except (CodeMoved, SyntaxError) as error:
        return Verdict(mutant.name, BROKEN, str(error))
    return Verdict(mutant.name, SURVIVED, "; ".join(survived), "", 0, round(seconds, 1))


def _campaign(mutant: Mutant, tree: Path, name: str, before: Tally, kept: Path) -> tuple[Failure | None, Tally]:
    """Rounds with the mutant until a check says no in one that was clean before."""
    hardware, software = (tree, ROOT) if mutant.is_hardware else (ROOT, tree)
    place = Place(software, {HARDWARE: str(hardware), KEPT: str(kept)})
    failed_before = {failure.number for failure in before.failures}
    asked = KINDS[name].asked(name, DEFAULT_BACKEND, again=False, failures=1 + before.failed)
    tally = run_rounds(asked, Tally(0), rounds=before.ran, seconds=_SECONDS, place=place)
    new = (one for one in tally.failures if one.kind in (CHECK, STUCK) and one.number not in failed_before)
    return next(new, None), tally


def _problem(name: str, before: Tally, tally: Tally) -> str | None:
    """Why rounds in which no check failed do not even say that the mutant survived."""
    if before.broken or tally.broken:
        return f"{name} cannot begin: {(before.broken or tally.broken).splitlines()[-1]}"
    if before.ran < KINDS[name].mutant or (tally.ran < before.ran and not tally.failed):
        return f"{name} had {min(before.ran, tally.ran)} rounds instead of {KINDS[name].mutant}"
    others = [one for one in tally.failures if one.number not in {failure.number for failure in before.failures}]
    if others:
        return f"{name}, round {others[0].number}, in which no check failed: {others[0].message.splitlines()[0]}"
    return None


def _not_found(mutant: Mutant, name: str, tally: Tally) -> str:
    reached = tally.reached[mutant.must_observe] if mutant.must_observe else None
    what = "" if reached is None else f", which reached {mutant.must_observe!r} {reached} times"
    return f"not found by {tally.ran} rounds of {name}{what}"
