"""Scenario files: what is accepted, and how errors tell the way out."""

from pathlib import Path

import pytest

from caesura.scenario import ScenarioError, load_scenario, parse_scenario

EXAMPLES = sorted(Path("examples/scenarios").glob("*.toml"))


def minimal(**changes):
    content = {
        "name": "test",
        "models": {"m": {"layers": [{"load": 1, "compute": 2, "repeat": 3}]}},
        "streams": [{"name": "s", "stages": [{"model": "m"}], "arrivals": {"kind": "closed", "count": 2}}],
    }
    return {**content, **changes}


def stream(**changes):
    return [{**minimal()["streams"][0], **changes}]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_valid(path):
    assert load_scenario(path).streams


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


def test_layers_are_repeated_and_depend_on_the_one_before():
    model = parse_scenario(minimal(), "x").models["m"]
    assert (len(model.flat_layers), model.dependencies) == (3, [(), (0,), (1,)])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (minimal(streams=[]), r"x\.toml: streams: .*at least 1 item"),
        (minimal(nme="y"), r"x\.toml: nme: is not a known key; remove it"),
        (minimal(streams=stream(stages=[{"model": "n"}])), "stream 's' runs model 'n'; models are m"),
        (minimal(streams=stream(arrivals={"kind": "periodic", "count": 2})), r"period: is missing; add period"),
        (minimal(streams=stream(arrivals={"count": 2})), r"streams\.0\.arrivals: has no kind; add kind = 'periodic'"),
        (minimal(streams=stream(arrivals={"kind": "closed", "count": 2, "after": "n"})), "after is 'n'; stages are m"),
        (minimal(streams=stream(arrivals={"kind": "closed"})), "only closed loops without a count, which never end"),
        (minimal(streams=stream(stages=[{"model": "m", "duration": 2}])), r"stages\.0: has model and duration"),
        (minimal(streams=stream(stages=[{"model": "m", "announced": True}])), r"stages\.0: has model and announced"),
        (minimal(streams=stream() * 2), "two streams have the same name"),
        (minimal(models={"m": {}}), r"models\.m: describes nothing; give layers, onnx or workload"),
        (minimal(models={"m": {"onnx": "m", "options": {"ordre": ""}}}), "'ordre' is no option of the compiler; known"),
        (minimal(models={"m": {"onnx": "m", "options": {"engines": 1}}}), r"models\.m: has options engines; machine"),
        (minimal(models={"m": {"layers": [{"compute": -1}]}}), r"layers\.0\.compute: .*equal to 0, not -1"),
        (minimal(models={"m": {"layers": [{"compute": 1, "after": [0]}]}}), "layer 0 comes after 0, which is not an"),
        (minimal(machine={"memory": 5}, models={"m": {"layers": [{"compute": 1, "bytes": 6}]}}), "machine.memory is 5"),
        (minimal(machine={"engines": 2, "initial_waits": [1]}), "initial_waits has 1 values for 2 engines"),
    ],
)  # fmt: skip
def test_errors_name_file_key_and_way_out(content, told):
    with pytest.raises(ScenarioError, match=told):
        parse_scenario(content, "x.toml")


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ScenarioError, match="cannot be read: No such file"):
        load_scenario(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("name = \n")
    with pytest.raises(ScenarioError, match=r"bad\.toml: not valid TOML: .*line 1"):
        load_scenario(tmp_path / "bad.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError, match="not a text file"):
        load_scenario(tmp_path / "bytes.toml")
