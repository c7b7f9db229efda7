"""Figures that do not depend on the computer against ``benchmarks/baseline.json``."""

import dataclasses
import io

import pytest
from rich.console import Console

from benchmarks import baseline
from benchmarks.baseline import HINT, Difference, Figures
from benchmarks.baseline_cases import CASES, BaselineCase

GEMM, NETWORK = BaselineCase("tiny", "gemm_32x32x32"), BaselineCase("base", "resnet50", slow=True)
FIGURES = Figures(model="0a", image="0b", code_bytes=640, instructions=10, cycles=2000)
SLOW = [case for case in CASES if case.slow]


def text_of(found):
    console = Console(file=io.StringIO(), width=150)
    console.print(baseline.show(found))
    return console.file.getvalue()


def check(cases):
    console = Console(file=io.StringIO(), width=150)
    measured = baseline.measure_all(cases, console)
    if not measured:
        pytest.skip(console.file.getvalue())
    found = baseline.differences(
        baseline.read(baseline.FILE), measured, [case for case in cases if case.name in measured]
    )
    assert not found, f"\n{text_of(found)}{HINT}"


def test_quick_figures():
    check([case for case in CASES if not case.slow])


@pytest.mark.slow
@pytest.mark.parametrize("case", SLOW, ids=[case.name for case in SLOW])
def test_slow_figures(case):
    check([case])


def test_the_file_holds_the_cases_and_no_others():
    assert set(baseline.read(baseline.FILE)) == {case.name for case in CASES}


def test_what_is_read_is_what_was_written(tmp_path):
    path = tmp_path / "baseline.json"
    assert baseline.read(path) == {}
    baseline.write({"b": FIGURES, "a": dataclasses.replace(FIGURES, cycles=1)}, path)
    assert path.read_text().splitlines()[1].startswith('"a": ') and path.read_text().count("\n") == 4
    assert baseline.read(path) == {"a": dataclasses.replace(FIGURES, cycles=1), "b": FIGURES}


def test_differences_are_shown_old_and_new():
    old, new = {GEMM.name: FIGURES}, {GEMM.name: dataclasses.replace(FIGURES, image="0c", cycles=2100)}
    found = baseline.differences(old, new, [GEMM])
    assert found == [Difference(GEMM.name, "image", "0b", "0c"), Difference(GEMM.name, "cycles", 2000, 2100)]
    shown = " ".join(text_of(found).replace("│", " ").split())
    assert "tiny gemm_32x32x32 cycles 2,000 2,100 +5.00 %" in shown
    assert baseline.differences(old, old, [GEMM]) == []


def test_a_case_that_is_new_is_a_difference():
    assert baseline.differences({}, {GEMM.name: FIGURES}, [GEMM]) == [Difference(GEMM.name, "case", None, "there")]


def test_another_calibration_does_not_count_but_other_figures_do():
    new = dataclasses.replace(FIGURES, model="1a", image="1b")
    assert baseline.differences({NETWORK.name: FIGURES}, {NETWORK.name: new}, [NETWORK]) == []
    slower = dataclasses.replace(new, cycles=2001)
    (found,) = baseline.differences({NETWORK.name: FIGURES}, {NETWORK.name: slower}, [NETWORK])
    assert (found.figure, found.old, found.new) == ("cycles", 2000, 2001)
    wrong = dataclasses.replace(FIGURES, image="1b")
    assert len(baseline.differences({NETWORK.name: FIGURES}, {NETWORK.name: wrong}, [NETWORK])) == 1
    assert len(baseline.differences({GEMM.name: FIGURES}, {GEMM.name: new}, [GEMM])) == 2


def test_comparing_and_writing_from_the_command_line(monkeypatch, tmp_path, capsys):
    path = tmp_path / "baseline.json"
    gone = BaselineCase("tiny", "no_longer_measured").name
    baseline.write({GEMM.name: FIGURES, gone: FIGURES}, path)
    monkeypatch.setattr(baseline, "CASES", [GEMM])
    monkeypatch.setattr(baseline, "FILE", path)
    monkeypatch.setattr("sys.argv", ["baseline", "--compare"])
    assert baseline.main() == 1
    out = capsys.readouterr().out
    assert "2,000" in out and "make baseline" in out
    monkeypatch.setattr("sys.argv", ["baseline", "--write"])
    assert baseline.main() == 0
    assert set(baseline.read(path)) == {GEMM.name}
    monkeypatch.setattr("sys.argv", ["baseline", "--compare", "--quick"])
    assert baseline.main() == 0
    assert "all 1 cases" in capsys.readouterr().out
