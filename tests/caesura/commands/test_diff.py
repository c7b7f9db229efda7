"""``caesura diff``: two runs layer by layer, two benchmarks figure by figure, and files that are neither."""

import json

import pytest

from tests.support.networks import DIGITS
from tests.system.command import caesura_command


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Results of digits on two machines."""
    folder, found = tmp_path_factory.mktemp("runs"), []
    for preset in ("tiny", "base"):
        code, out, error = caesura_command("run", DIGITS, "--preset", preset, "--backend", "model", "--json")
        assert not code, error
        (folder / f"{preset}.json").write_text(out)
        found.append(json.loads(out))
    return folder, *found


def diff(*arguments):
    return caesura_command("diff", *arguments)


def test_runs_are_compared_layer_by_layer(runs):
    folder, before, after = runs
    code, out, error = diff(folder / "tiny.json", folder / "base.json", "--json")
    assert not code, error
    found = json.loads(out)
    layers = {one["name"]: one for one in found["layers"]}
    assert list(layers) == [layer["name"] for layer in before["layers"]]
    for old, new in zip(before["layers"], after["layers"], strict=True):
        told = layers[old["name"]]
        assert (told["before"], told["after"]) == (old["cycles"], new["cycles"])
        assert told["difference"] == new["cycles"] - old["cycles"]
        assert told["percent"] == pytest.approx(100 * (new["cycles"] / old["cycles"] - 1), abs=0.001)
    (cycles,) = [one for one in found["totals"] if one["name"] == "cycles"]
    assert cycles["difference"] == after["cycles"] - before["cycles"] != 0
    assert found["equal"] is True


def test_a_table_shows_what_changed_the_most_first(runs):
    folder, before, after = runs
    code, out, _ = diff(folder / "tiny.json", folder / "base.json")
    worst = max(
        zip(before["layers"], after["layers"], strict=True), key=lambda two: abs(two[1]["cycles"] - two[0]["cycles"])
    )
    shown = out.split("largest difference first")[1]
    names = [layer["name"] for layer in before["layers"]]
    assert min(names, key=shown.index) == worst[0]["name"]
    assert code == 0 and "outputs: equal" in out


def test_a_run_does_not_differ_from_itself(runs):
    folder, before, _ = runs
    code, out, _ = diff(folder / "tiny.json", folder / "tiny.json")
    assert code == 0 and f"{len(before['layers'])} layers with equal cycles" in out and "largest" not in out
    assert "conv1" in diff(folder / "tiny.json", folder / "tiny.json", "--all")[1]


def test_layers_in_one_alone_and_of_one_name(runs, tmp_path):
    _, before, _ = runs
    other = before | {"layers": [before["layers"][0], before["layers"][0], {"name": "new", "cycles": 7}]}
    (tmp_path / "a.json").write_text(json.dumps(before))
    (tmp_path / "b.json").write_text(json.dumps(other | {"outputs": {}}))
    code, out, _ = diff(tmp_path / "a.json", tmp_path / "b.json", "--csv")
    assert code == 0
    rows = [line.split(",") for line in out.splitlines()]
    assert ["new", "", "7", "", ""] in rows and [row[:2] for row in rows if row[0] == "conv1 (2)"] == [
        ["conv1 (2)", ""]
    ]
    assert "outputs: not equal" in diff(tmp_path / "a.json", tmp_path / "b.json")[1]


def test_benchmarks_are_compared_figure_by_figure(tmp_path):
    for name, value in (("a", 4.0), ("b", 5.0)):
        rows = [{"name": "same", "value": 1}, {"name": "other", "value": value}, {"name": "skipped", "value": None}]
        told = {"bench": "order", "preset": "base", "backend": "native", "rows": rows}
        (tmp_path / f"{name}.json").write_text(json.dumps(told))
    code, out, _ = diff(tmp_path / "a.json", tmp_path / "b.json")
    assert code == 0 and "+25.0 %" in out and "order on base (native)" in out


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "no JSON"),
        ("[1]", "neither a run nor figures"),
        ('{"cycles": 1, "layers": [{"name": "x"}]}', "neither a run nor figures"),
        ('{"cycles": 1, "layers": [{"name": "x", "cycles": "2"}]}', "neither a run nor figures"),
        ('{"cycles": "1", "layers": []}', "neither a run nor figures"),
        ('{"cycles": NaN, "layers": []}', "neither a run nor figures"),
        ('{"cycles": 1e999, "layers": []}', "neither a run nor figures"),
        (f'{{"cycles": 1{"0" * 400}, "layers": []}}', "neither a run nor figures"),
        ("[" * 100_000, "no JSON"),
        ('{"bench": "order", "rows": []}', "cannot be compared"),
    ],
)
def test_files_of_another_kind_are_refused(runs, tmp_path, content, told):
    (tmp_path / "x.json").write_text(content)
    code, _, error = diff(runs[0] / "tiny.json", tmp_path / "x.json")
    assert code == 2 and told in error and "Traceback" not in error
