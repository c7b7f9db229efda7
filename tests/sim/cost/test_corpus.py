"""Every account of time says what it said when its digests were taken."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sim.cost import units
from tests.sim.cost.accounts import Ledger
from tests.sim.cost.corpus import HINT, OUTSIDE, cases, differences, known_digests

CASES = dict(cases())
SMALL = "tinyx1 conv 3x3"


@pytest.mark.parametrize("case", CASES)
def test_digests_are_those_that_are_known(case):
    found = differences(known_digests(), {case: CASES[case](Ledger())})
    assert not found, f"{', '.join(found)}; {HINT}"


def test_a_difference_names_case_and_account(monkeypatch):
    """Cycles of the vector unit that are one too many are found where they matter, and nowhere else."""
    monkeypatch.setattr(units, "UNIT_START", units.UNIT_START + 1)
    found = differences(known_digests(), {SMALL: CASES[SMALL](Ledger())})
    assert f"{SMALL}: program order" in found and f"{SMALL}: image" in found
    assert f"{SMALL}: busies" not in found


def test_every_known_case_is_measured_where_its_model_is():
    missing = {name for name in known_digests() if name not in CASES}
    assert all(name.endswith(OUTSIDE) for name in missing), missing
    assert set(CASES) <= set(known_digests())


def test_another_process_finds_the_same():
    """Nothing depends on the order of a set."""
    code = f"from tests.sim.cost.test_corpus import *; print(CASES[{SMALL!r}](Ledger()) == known_digests()[{SMALL!r}])"
    root = Path(__file__).parents[3]
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": str(root)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout.strip() == "True", told.stdout + told.stderr
