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


def real(**changes):
    return {"m": {"onnx": "m.onnx", **changes}}


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
        (minimal(models={"m": {}}), r"models\.m: describes nothing; give layers, onnx, image"),
        (minimal(models={"m": {"onnx": "m", "options": {"ordre": ""}}}), "'ordre' is no option of the compiler; known"),
        (minimal(models={"m": {"onnx": "m", "options": {"engines": 1}}}), "has options engines; the model's key"),
        (minimal(models=real(engines=0)), r"models\.m\.engines: must be a number of engines from 1 on, .*, not 0"),
        (minimal(models=real(engines="all")), r'models\.m\.engines: must be .* or "auto", not \'all\''),
        (minimal(models=real(engines=[1, -1])), r"models\.m\.engines: must be a number of engines"),
        (minimal(models=real(engines=[])), r"models\.m\.engines: must be a number of engines"),
        (minimal(models=real(engines=True)), r"models\.m\.engines: must be a number of engines"),
        (minimal(models=real(engines=[1, 1])), r"models\.m\.engines: names an engine twice: \[1, 1\]"),
        (minimal(models=real(placed=True)), "model 'm' is placed, .*; add machine.placed = true"),
        (minimal(models=real(engines=2), machine={"placed": True}), "'m' has engines, and machine.placed .*remove"),
        (minimal(models=real(engines=2, placed=True)), r"models\.m: is placed on all engines .*; remove one"),
        (minimal(models={"m": {"onnx": "m.onnx", "image": "m.cimg"}}), r"models\.m: has onnx and image, .*remove one"),
        (minimal(models={"m": {"onnx": "m.cimg"}}), r"models\.m: has onnx = 'm\.cimg', .*; write image = instead"),
        (minimal(models={"m": {"image": "m.cimg", "fallback": True, "options": {"order": "source"}}}),
         r"models\.m: has an image, .*, and fallback, options; give onnx, or remove them"),
        (minimal(models={"m": {"image": "m.cimg", "engines": 2}}), r"has an image, .* and engines; give onnx"),
        (minimal(models=real(plan="p.json", options={"order": "source"})), r"models\.m: has a plan, .*options; remove"),
        (minimal(models=real(options={"order": 3})), r"models\.m: options: order: .*valid string, not 3"),
        (minimal(models=real(options={"split": "no"})), r"models\.m: options: split: .*valid boolean, not 'no'"),
        (minimal(models=real(options={"cancel_interval": -5})), r"options: cancel_interval: must be 0 or more, not -5"),
        (minimal(models=real(options={"observe": True})), r"models\.m: has options observe; only checks"),
        (minimal(models=real(sizes={"seq": 0})), r"models\.m\.sizes\.seq: .*equal to 1, not 0"),
        (minimal(models=real(outputs="/etc")), r"models\.m\.outputs: '/etc' must be a folder below"),
        (minimal(models=real(outputs="a/../../b")), r"models\.m\.outputs: .* must be a folder below"),
        (minimal(models=real(inputs=[3])), r"models\.m\.inputs\.0: .*path.*, not 3"),
        (minimal(models=real(outputs="out"), streams=stream(name="../s")), r"stream '\.\./s' gives its name to files"),
        (minimal(models={"m": {"layers": [{"compute": 1}], "inputs": "x.npz"}}), r"has inputs and only layers with"),
        (minimal(models=real(dimension="n")), "model 'm', whose dimension 'n' is dynamic; give the stream lengths, or"),
        (minimal(streams=stream(lengths=4)), "stream .s. has lengths, and none of its models a dynamic .*; add"),
        (minimal(models=real(dimension="n"), streams=stream(lengths=0)), r"streams\.0\.lengths: must be .*, not 0"),
        (minimal(models=real(dimension="n"), streams=stream(lengths=[])), r"streams\.0\.lengths: must be a length"),
        (minimal(models=real(dimension="n"), streams=stream(lengths={"least": 9, "most": 3})), "lengths: must be"),
        (minimal(models=real(dimension="n"), streams=stream(lengths={"lest": 9, "most": 3})), "lengths: must be"),
        (minimal(models=real(dimension="n", sizes={"n": 3})), r"has a dynamic dimension, .*: sizes; remove one"),
        (minimal(models=real(dimension="n", engines="auto")), r'has a dynamic dimension, and engines = "auto"'),
        (minimal(streams=stream(late="never", deadline=1)), r"streams\.0\.late: .*'keep' or 'drop', not 'never'"),
        (minimal(streams=stream(late="drop")), r"streams\.0: has late = 'drop' and no deadline .*; add deadline"),
        (minimal(machine={"preemption": {"mechanisms": ["murder"]}}), r"mechanisms\.0: .*'wait', 'dump' or 'kill'"),
        (minimal(machine={"preemption": {"mechanisms": []}}), r"machine\.preemption\.mechanisms: .*at least 1 item"),
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
