"""``caesura diff``: two runs layer by layer, two benchmarks figure by figure, and files that are neither."""

import json

import pytest

from caesura.layer_alignment import aligned
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


def test_a_page_has_the_totals_the_layers_and_a_bar_for_each_difference(runs, tmp_path):
    folder, before, after = runs
    code, out, error = diff(folder / "tiny.json", folder / "base.json", "--report", tmp_path / "d.html")
    assert not code and "outputs: equal" in out, error
    page = (tmp_path / "d.html").read_text()
    for old, new in zip(before["layers"], after["layers"], strict=True):
        assert old["name"] in page and f"{old['cycles']:,}" in page and f"{new['cycles']:,}" in page
    bars = [new["cycles"] - old["cycles"] for old, new in zip(before["layers"], after["layers"], strict=True)]
    assert str(sorted((one for one in bars if one), key=lambda one: -abs(one))).replace(" ", "") in page


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


def compared(tmp_path, before, after, *arguments):
    (tmp_path / "a.json").write_text(json.dumps(before))
    (tmp_path / "b.json").write_text(json.dumps(after))
    code, out, error = diff(tmp_path / "a.json", tmp_path / "b.json", *arguments)
    assert not code, error
    return out


def test_layers_in_one_alone_and_of_one_name(runs, tmp_path):
    _, before, _ = runs
    first = {**before["layers"][0], "nodes": []}
    one = before | {"layers": [first]}
    other = before | {"layers": [first, {**first, "cycles": 9}, {"name": "new", "cycles": 7}], "outputs": {}}
    rows = [line.split(",") for line in compared(tmp_path, one, other, "--csv").splitlines()]
    assert rows[-2:] == [["conv1", "", "9", "", "", "", f"{first['utilisation']}"], ["new", "", "7", "", "", "", ""]]
    assert rows[-3][:4] == ["conv1", f"{first['cycles']}", f"{first['cycles']}", "0"]
    assert "outputs: not equal" in compared(tmp_path, one, other)


def test_layers_that_were_fused_otherwise_are_those_of_the_same_nodes(runs, tmp_path):
    """One layer against two of its parts, one of them on two engines: cycles add up, shares are of the engines used."""
    _, before, _ = runs
    (fused,) = [layer for layer in before["layers"] if layer["name"] == "conv3 + pool"]
    assert len(fused["nodes"]) > 1 and all(layer["nodes"] for layer in before["layers"])
    parts = [
        {**fused, "name": name, "nodes": [node], "cycles": cycles, "utilisation": share, "engines": engines}
        for name, node, cycles, share, engines in (
            ("conv3", fused["nodes"][0], 4_000, 0.6, [0]), ("pool", fused["nodes"][-1], 1_000, 0.1, [0, 1]),
        )
    ]  # fmt: skip
    layers = [one for layer in before["layers"] for one in (parts if layer is fused else [layer])]
    found = json.loads(compared(tmp_path, before, before | {"layers": layers}, "--json"))["layers"]
    assert len(found) == len(before["layers"])
    (told,) = [one for one in found if one["layers_after"] == ["conv3", "pool"]]
    assert told["name"] == "conv3 + pool (1 → 2)" and told["layers_before"] == ["conv3 + pool"]
    assert (told["before"], told["after"]) == (fused["cycles"], 5_000)
    assert told["utilisation_before"] == fused["utilisation"] and told["utilisation_after"] == pytest.approx(
        (4_000 * 0.6 + 2 * 1_000 * 0.1) / 6_000
    )
    shown = compared(tmp_path, before, before | {"layers": layers})
    assert "43.3%" in shown and f"{fused['utilisation']:.1%}" in shown and "3 layers with equal cycles" in shown


def layer(name, *nodes, cycles=1):
    return {"name": name, "nodes": list(nodes), "cycles": cycles}


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        ([layer("a", "x"), layer("b", "y")], [layer("p", "y"), layer("q", "x")], ["a → q", "b → p"]),
        ([layer("a", "x", "y")], [layer("a", "x"), layer("b", "y")], ["a (1 → 2)"]),
        ([layer("a", "x", "y"), layer("b", "z")], [layer("a", "x"), layer("b", "y", "z")], ["a, b"]),
        ([layer("a", "x"), layer("b")], [layer("b"), layer("a", "other")], ["a", "b"]),
        ([layer("a"), layer("a")], [layer("a")], ["a", "a"]),
        ([layer("b", "x")], [layer("a", "y"), layer("c", "x")], ["b → c", "a"]),
        ([{"name": "old", "cycles": 3}], [layer("old", "x")], ["old"]),
    ],
)
def test_alignment(before, after, names):
    found = aligned(before, after)
    assert [one.name for one in found] == names
    for side, layers in (("before", before), ("after", after)):
        held = [one for group in found for one in getattr(group, side)]
        assert sorted(map(id, held)) == sorted(map(id, layers))


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
        ('{"cycles": 1, "layers": [{"name": "x", "cycles": 1, "utilisation": "1"}]}', "neither a run nor figures"),
    ],
)
def test_files_of_another_kind_are_refused(runs, tmp_path, content, told):
    (tmp_path / "x.json").write_text(content)
    code, _, error = diff(runs[0] / "tiny.json", tmp_path / "x.json")
    assert code == 2 and told in error and "Traceback" not in error


@pytest.mark.parametrize("odd", [{"nodes": 3}, {"nodes": [1, None, ["x"]]}, {"engines": "0"}, {"cycles": None}])
def test_odd_members_of_layers_are_left_out(runs, tmp_path, odd):
    _, before, _ = runs
    assert "cycles" in compared(tmp_path, before, before | {"layers": [{**before["layers"][0], **odd}]})
