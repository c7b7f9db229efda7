"""``caesura whatif``: two runs, of two machines or of two states of the sources, side by side."""

import json
import subprocess

import pytest

from caesura import UsageError, cli, whatif
from examples.digits import MODEL

OPTIONS = ["--backend", "model"]


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs the command; returns exit code, standard output and standard error."""

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["caesura", "whatif", str(MODEL), *arguments])
        try:
            cli.main()
            code = 0
        except SystemExit as error:
            code = error.code
        return code, *capsys.readouterr()

    return run


def test_a_parameter_that_costs_cycles(command):
    code, out, _ = command("--set", "lv2_bytes=16KiB", *OPTIONS, "--json")
    found = json.loads(out)
    (cycles,) = [one for one in found["totals"] if one["name"] == "cycles"]
    assert not code and found["equal"] and cycles["after"] > cycles["before"]
    assert found["results"] == ["digits on tiny (model)", "digits on tiny, lv2_bytes=16384 (model)"]


def test_sources_of_a_commit_and_this_tree(monkeypatch):
    """Each side runs its own sources: those of the commit are checked out for the time of the run."""
    seen = []

    def both(before, after):
        changelog = subprocess.run(
            ["git", "-C", str(after[0]), "show", "HEAD:CHANGELOG.md"], capture_output=True, text=True, check=True
        ).stdout
        assert before[0] != after[0] and (before[0] / "CHANGELOG.md").read_text() == changelog
        seen.append(before[0])
        result = {"model": "m", "layers": [], "cycles": 1, "inputs": "", "outputs": {}, "preset": "tiny"}
        return result, result

    if not (whatif._HERE / ".git").exists():
        pytest.skip("no checkout")
    monkeypatch.setattr(whatif, "_both", both)
    found = whatif.by_sources(MODEL, OPTIONS, (), "HEAD")
    assert found.titles[1].endswith(" of this tree") and " of commit " in found.titles[0]
    assert len(seen) == 1 and not seen[0].exists()


def test_what_cannot_be_is_refused(monkeypatch, tmp_path):
    with pytest.raises(UsageError, match="nonsense"):
        whatif.by_parameters(MODEL, OPTIONS, ["nonsense=1"])
    with pytest.raises(UsageError, match="must be a commit"):
        whatif.by_sources(MODEL, OPTIONS, (), "--help")
    monkeypatch.setattr(whatif, "_HERE", tmp_path)
    with pytest.raises(UsageError, match="in a checkout of Caesura only: say --set"):
        whatif.by_sources(MODEL, OPTIONS, (), "HEAD")
