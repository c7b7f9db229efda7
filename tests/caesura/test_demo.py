"""``caesura demo``: examples by name, with the options that are theirs."""

import pytest

import caesura
from caesura import cli
from caesura.commands import bench
from caesura.version import __version__


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs the command; returns exit code, standard output and standard error."""

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["caesura", *arguments])
        try:
            cli.main()
            code = 0
        except SystemExit as error:
            code = error.code
        return code, *capsys.readouterr()

    return run


def test_an_example_gets_its_own_options(command):
    code, out, err = command("demo", "digits", "--samples", "2", "--backend", "model")
    assert (code, err) == (0, "")
    assert "2 of 2 correct" in out and "backend model" in " ".join(out.split())


def test_the_scenario_takes_options_of_the_command_scenario(command):
    code, out, _ = command("demo", "scenario", "--policy", "fcfs")
    assert code == 0
    assert "driving under fcfs" in out


def test_an_unknown_example_names_the_known(command):
    code, _, err = command("demo", "words")
    assert code == 2
    assert all(name in err for name in ("digits", "encoder", "driving", "scenario"))


def test_the_version_is_one(command):
    assert command("--version")[1] == f"caesura {__version__}\n"
    assert caesura.__version__ == __version__


@pytest.mark.parametrize("arguments", [["stale"], ["all", "--record"]])
def test_benches_of_a_checkout_say_so(command, monkeypatch, tmp_path, arguments):
    monkeypatch.setattr(bench, "__file__", str(tmp_path / "caesura" / "commands" / "bench.py"))
    monkeypatch.delattr(bench, "benchmarks")  # nothing is recorded should the command go on
    code, _, err = command("bench", *arguments)
    assert code == 2
    assert "needs a checkout of Caesura" in err
