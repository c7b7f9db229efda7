"""Mutants stand where they are said to stand, the campaigns of each are there, and one is hunted in every run."""

import ast
import os
import random
import shutil
import subprocess

import pytest

from benchmarks.trust.campaign import Failure
from benchmarks.trust.campaigns import KINDS
from benchmarks.trust.mutants.all_mutants import MUTANTS
from benchmarks.trust.mutants.hunt import BROKEN, FOUND, SURVIVED, CleanRuns, hunt
from benchmarks.trust.mutants.mutant import PROMISES, CodeMoved, Mutant
from benchmarks.trust.mutants.page import PAGE, written
from benchmarks.trust.mutants.run import chosen_mutants, run_mutants
from benchmarks.trust.mutants.seen import seen
from benchmarks.trust.mutants.survivors import MOST, survivors
from benchmarks.trust.round_process import ROOT
from caesura.api import UsageError


def test_there_are_enough():
    assert len(MUTANTS) >= 54
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS.values()}) == len(MUTANTS)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_stands_once_and_parses(name):
    mutant = MUTANTS[name]
    text = mutant.applied((ROOT / mutant.file).read_text())
    if mutant.file.endswith(".py"):
        ast.parse(text)
    assert mutant.promise in PROMISES
    assert mutant.campaigns and set(mutant.campaigns) <= KINDS.keys()


def test_promises_are_those_of_the_page():
    page = (ROOT / "docs" / "security.md").read_text()
    assert [name for name, text in PROMISES.items() if text not in page] == []
    assert {mutant.promise for mutant in MUTANTS.values()} == set(PROMISES)


def test_the_page_has_a_row_for_each():
    page = PAGE.read_text()
    assert page == written(page), "run python -m benchmarks.trust.mutants.page"
    assert page.count("\n| Memory |") > 20 and all(f" | {name} | " in page for name in MUTANTS)


def test_a_few_can_be_chosen():
    assert {name for name, sight in seen().items() if sight.campaign not in MUTANTS[name].campaigns} == set()
    assert len(sample(hardware=False, short=True)) == 1 and len(sample(hardware=True)) in (1, 2)


def test_survivors_have_a_reason_and_evidence():
    found = survivors()
    assert len(found) <= MOST and set(found) <= set(MUTANTS)
    assert all(len(entry.reason) > 20 and len(entry.evidence) > 20 and entry.commit for entry in found.values())


def test_names_are_checked():
    assert [mutant.name for mutant in chosen_mutants(["R1,S2", "R1"])] == ["R1", "S2"]
    with pytest.raises(UsageError, match="no mutant named 'R99'"):
        chosen_mutants(["R99"])


def test_code_that_moved_is_told():
    with pytest.raises(CodeMoved, match="mutant X: its place stands 0 times in"):
        Mutant("X", "", "hw/soc.py", "not to be found", "", "P1", ("edges",)).applied("text")


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    made = CleanRuns(tmp_path_factory.mktemp("kept"))
    made.prepare("edges")
    return made


@pytest.mark.parametrize(
    ("old", "new", "fate", "why"),
    [
        ("return word.to_bytes(INSN_BYTES", "return (word ^ 1 << 142).to_bytes(INSN_BYTES", FOUND, "WrongEnding: "),
        ('"""Instruction words field by field', '"""Words field by field', SURVIVED, "not found by 1 rounds of edges"),
        ("import random\n", "import nothing_of_this_name\n", BROKEN, "cannot begin: ModuleNotFoundError"),
        (
            "return number.to_bytes(INSN_BYTES",
            "return None.to_bytes(INSN_BYTES",
            BROKEN,
            "cannot begin: Attribute",
        ),
    ],
)
def test_what_becomes_of_a_mutant(clean, old, new, fate, why):
    verdict = hunt(Mutant("X", "", "benchmarks/trust/words.py", old, new, "P1", ("edges",)), clean)
    assert (verdict.fate, verdict.why[: len(why)]) == (fate, why)


def test_a_failure_that_the_clean_checkout_has_too_finds_nothing(clean, monkeypatch):
    old, new = "return word.to_bytes(INSN_BYTES", "return (word ^ 1 << 142).to_bytes(INSN_BYTES"
    mutant = Mutant("X", "", "benchmarks/trust/words.py", old, new, "P1", ("edges",))
    monkeypatch.setattr(clean, "fails", lambda campaign, failure: True)
    assert hunt(mutant, clean).fate == SURVIVED


def test_the_clean_checkout_is_asked_about_the_round(clean):
    assert not clean.fails("edges", Failure(0, 0, "check", "whatever it was"))


def _git(*arguments: str) -> str:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        return ""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout


def sample(*, hardware: bool, short: bool = False) -> list[str]:
    """A mutant by chance that the commit decides, ``short`` if its hunt must be, and otherwise one more whose file the
    last commit has changed, if there is any."""
    able = [
        MUTANTS[name]
        for name, sight in seen().items()
        if MUTANTS[name].is_hardware == hardware and (sight.soon or not short)
    ]
    rng = random.Random(_git("rev-parse", "HEAD"))
    changed = set() if short else set(_git("diff", "--name-only", "HEAD~1").splitlines())
    kinds = [able, [mutant for mutant in able if mutant.file in changed]]
    return list(dict.fromkeys(rng.choice(kind).name for kind in kinds if kind))


def hunted(names: list[str]) -> dict[str, str]:
    """Those that are not found, and why."""
    rows = run_mutants(names, jobs=len(os.sched_getaffinity(0)))
    return {row.name: row.detail["explanation"] for row in rows if not row.ok}


def test_one_is_found():
    assert hunted(sample(hardware=False, short=True)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("hardware", [False, True])
def test_a_few_are_found(hardware):
    assert hunted(sample(hardware=hardware)) == {}
