"""``caesura bench everyday``: silence is heard, tests that fail are told, and every row names tests that exist."""

import sys
from itertools import pairwise

import pytest

from benchmarks import everyday
from benchmarks.figures import NotAvailableError
from benchmarks.lab import Lab
from caesura import resolve
from caesura.views import Progress
from sim.toolchain import BuildError
from tests.docs.pages import ROOT

FAILING = "def test_right():\n    pass\n\n\ndef test_wrong():\n    assert 1 == 2\n"


@pytest.fixture
def lab():
    with Progress() as progress, Lab(resolve("tiny"), "model", progress) as made:
        yield made


def test_the_longest_silence_is_heard(tmp_path):
    code = "import time; print(1); time.sleep(0.7); print(2); raise SystemExit(3)"
    ended, told = everyday.spoken([sys.executable, "-u", "-c", code], str(tmp_path))
    gaps = [after - before for before, after in pairwise(told)]
    assert ended == 3 and 0.5 < sorted(gaps)[-1] < 5


def test_tests_that_fail_are_told(lab, tmp_path, monkeypatch):
    monkeypatch.setattr(everyday, "ROOT", tmp_path)
    (tmp_path / "test_x.py").write_text(FAILING)
    measured = everyday._share(lab, ["test_x.py"])
    assert (measured.value, measured.correct) == (50, False)
    assert measured.detail["explanation"] == "1 of 2 failed, the first: test_x::test_wrong"
    (tmp_path / "test_y.py").write_text("this is no Python")
    assert everyday._share(lab, ["test_y.py"]).value == 0
    with pytest.raises(NotAvailableError, match="needs a checkout"):
        everyday._share(lab, ["test_z.py"])


def test_a_command_that_fails_is_no_figure(tmp_path):
    with pytest.raises(BuildError, match=r"failed: .*nonsense"):
        everyday._ran([sys.executable, "-c", "raise SystemExit('nonsense')"], tmp_path, {})


def test_a_checkout_has_the_present_sources():
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout")
    with everyday.checkout() as folder:
        name = "benchmarks/everyday.py"
        assert (folder / name).read_bytes() == (ROOT / name).read_bytes()
        assert not everyday._ran(["git", "status", "--short"], folder, {})


def test_rows_name_tests_that_exist():
    assert [one for one in (*everyday.DOCS, *everyday.WHEEL, *everyday.PORTED) if not (ROOT / one).is_file()] == []
    (difference,) = everyday._DIFFERENCE.findall((ROOT / "docs" / "tutorial.md").read_text())
    assert "hw/control/unit_queue.py" in difference
