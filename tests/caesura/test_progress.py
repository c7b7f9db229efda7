import io

from rich.console import Console

from caesura import progress


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
    assert line._status.status == "sample 1: cycle 3,000 (1,000 cycles/s)"
