import io

import pytest
from rich.console import Console

from caesura.views import progress
from tests.support.hostile_names import NAME, SHOWN


def test_silent_without_a_terminal(capsys):
    with progress.Progress() as line:
        line.task("sample 1")
        line.cycles(100)
    assert capsys.readouterr() == ("", "")


def test_shows_task_cycle_and_rate_on_a_terminal(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "Console", lambda **_: Console(file=stream, force_terminal=True))
    times = iter([10.0, 12.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(times, 12.0))
    line = progress.Progress()
    line._what = "sample 1"
    line.cycles(1000)
    line.cycles(3000)
    assert str(line._status.status) == "sample 1: cycle 3,000 (1,000 cycles/s)"


def test_names_are_text(monkeypatch):
    """On a terminal, too."""
    stream = io.StringIO()
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "Console", lambda **_: Console(file=stream, force_terminal=True, width=2000))
    with progress.Progress() as line:
        line.task(f"compiling {NAME}", cycle=0)
        line.cycles(1000)
        assert SHOWN in str(line._status.status)
    assert SHOWN in stream.getvalue()
    assert not [one for one in ("\x1b]", "\x07", "\u202e") if one in stream.getvalue()]


@pytest.fixture
def line(monkeypatch):
    """A progress line on a terminal, and its clock."""
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "Console", lambda **_: Console(file=io.StringIO(), force_terminal=True))
    line = progress.Progress()
    line.clock = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: line.clock)
    with line:
        yield line


@pytest.mark.parametrize(
    ("cycle", "shown"),
    [
        (3_000, "about 1:38 left"),
        (100_001, "about 0:01 left"),
        (101_000, "longer than estimated"),
        (250_000, "longer than estimated"),
    ],
)
def test_time_left_is_marked_as_an_estimate(line, cycle, shown):
    line.task("sample 1", cycle=1_000, expected=100_000)
    line.clock += (cycle - 1_000) / 1_000
    line.cycles(cycle)
    assert str(line._status.status) == f"sample 1: cycle {cycle:,} (1,000 cycles/s, {shown})"


def test_hours_left(line):
    line.task("network", cycle=0, expected=7_301_000)
    line.clock += 1
    line.cycles(1_000)
    assert str(line._status.status).endswith("about 2:01:40 left)")


def test_rate_is_that_of_the_task(line):
    line.task("first", cycle=0, expected=10_000)
    line.clock += 1
    line.cycles(10_000)
    line.clock += 60  # the host's own work
    line.task("second", cycle=10_000)
    line.clock += 1
    line.cycles(10_500)
    assert str(line._status.status) == "second: cycle 10,500 (500 cycles/s)"
