"""``caesura whatif``: two runs, of two machines or of two states of the sources, side by side."""

import json
import subprocess

import pytest

from caesura import UsageError, whatif
from caesura.result_diff import result_diff
from examples.digits import MODEL
from tests.system.command import caesura_command

OPTIONS = ["--backend", "model"]


def test_a_parameter_that_costs_cycles():
    code, out, _ = caesura_command("whatif", MODEL, "--set", "lv2_bytes=16KiB", *OPTIONS, "--json")
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


@pytest.mark.parametrize("options", [[], ["--check"], ["--backend", "model"], ["--backend=pysim"]])
def test_both_sides_run_on_the_rtl_unless_another_backend_is_named(monkeypatch, options):
    """A run that may choose takes the fast model while the RTL is not built, as after each change of it."""
    seen = []

    def both(*sides):
        seen.extend(arguments for _, arguments, _ in sides)
        result = {"model": "m", "layers": [], "cycles": 1}
        return result, result

    monkeypatch.setattr(whatif, "_both", both)
    whatif.by_parameters(MODEL, options, ["pes=4"])
    chosen = [one for arguments in seen for one in arguments if one.startswith(("--backend", "native"))]
    assert chosen == 2 * ([one for one in options if one.startswith("--backend")] or ["--backend", "native"])
    assert [arguments[-2:] == ["--set", "pes=4"] for arguments in seen] == [False, True]


@pytest.mark.parametrize("told", ["", "5,808 cycles", "[]", '{"bench": "memory", "rows": []}'])
def test_a_commit_that_tells_no_run_is_named(monkeypatch, tmp_path, told):
    """Such as one from before ``run --json``, or with other figures in it."""
    package = tmp_path / "caesura"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(f"print({told!r})\n")
    with pytest.raises(UsageError, match=r"tells nothing that can be compared; .*--against"):
        whatif._result(whatif._started(whatif.Side(tmp_path, [], "")), "digits of commit 1234abc")


def test_layers_without_nodes_are_compared_by_name_and_it_is_said():
    """As in results of commits from before layers named their nodes."""
    old = {"model": "m", "cycles": 5, "layers": [{"name": "conv", "cycles": 5}]}
    new = {"model": "m", "cycles": 3, "layers": [{"name": "conv", "cycles": 3, "nodes": ["a"]}]}
    found = result_diff(old, new)
    assert [(part.name, part.difference) for part in found.parts] == [("conv", -2)]
    assert found.note.endswith("no ONNX nodes are told, so layers of one name are compared")
    assert result_diff(new, new).note == "" == result_diff({**old, "layers": []}, new).note


def test_what_cannot_be_is_refused(monkeypatch, tmp_path):
    with pytest.raises(UsageError, match="nonsense"):
        whatif.by_parameters(MODEL, OPTIONS, ["nonsense=1"])
    with pytest.raises(UsageError, match="must be a commit"):
        whatif.by_sources(MODEL, OPTIONS, (), "--help")
    monkeypatch.setattr(whatif, "_HERE", tmp_path)
    with pytest.raises(UsageError, match="in a checkout of Caesura only: say --set"):
        whatif.by_sources(MODEL, OPTIONS, (), "HEAD")
