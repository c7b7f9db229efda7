"""What a scenario says of real models: engines, images, inputs, outputs, options of the compiler."""

import numpy as np
import pytest

import caesura
from caesura import CompileError, api
from caesura.scenario import Policies, RtlRunner, ScenarioError, parse_scenario
from sim.backends import MODEL
from sw.runtime.model_data import ModelData
from tests.support.networks import DIGITS

SAMPLES = DIGITS.parent / "digits_samples.npz"
SMALL = "gemm_1x64x64"


def content(models, *streams, **machine):
    """A scenario of ``models``, each with a stream of one request unless ``streams`` are given."""
    return {
        "name": "x",
        "time_unit": "cycles",
        "machine": {"params": {"engines": 4}, **machine},
        "models": models,
        "streams": list(streams) or [stream(name) for name in models],
    }


def stream(model, *arrivals, **keys):
    times = {"kind": "trace", "times": list(arrivals or [0])}
    return {"name": model, "stages": [{"model": model}], "arrivals": times, **keys}


def run(told, folder, policy="fcfs", **how):
    runner = RtlRunner(MODEL, **how)
    outcome = runner.run(parse_scenario(told, "x.toml"), Policies.named(policy), folder)
    assert outcome.mismatches == []
    return outcome


def engines(outcome):
    return {name: place.engines for name, place in outcome.places.items()}


def test_each_model_has_the_engines_that_it_names(tmp_path):
    models = {
        "a": {"workload": SMALL, "engines": 1},
        "b": {"workload": SMALL, "engines": [2, 0]},
        "c": {"workload": SMALL, "engines": 1},
        "d": {"workload": SMALL, "engines": "auto"},
        "e": {"workload": SMALL},
    }
    outcome = run(content(models), tmp_path)
    # named ones first, then those that are used least: a vector's product waits for its weights, and gets one engine
    assert engines(outcome) == {"a": (1,), "b": (0, 2), "c": (3,), "d": (0,), "e": (0, 1, 2, 3)}
    assert {name: {one.engine for one in outcome.layers if one.model == name} for name in "ae"}.keys() == {"a", "e"}


def test_models_on_disjoint_engines_run_side_by_side(tmp_path):
    long = {"workload": "conv_32x16x16_32_k3_s1_p1"}

    def makespan(second):
        outcome = run(content({"a": {**long, "engines": [0]}, "b": {**long, "engines": second}}), tmp_path)
        return outcome.makespan

    assert makespan([1]) < 0.7 * makespan([0])


def test_an_image_is_served_as_it_is(tmp_path):
    options = caesura.Options(lv2_limit=40_000)
    params = caesura.resolve("tiny").replace(engines=4)
    caesura.compile(DIGITS, params, engines=2, options=options).save(tmp_path / "digits.cimg")
    models = {"digits": {"image": "digits.cimg", "engines": [1, 3]}, "small": {"workload": SMALL}}
    outcome = run(content(models), tmp_path)
    assert engines(outcome)["digits"] == (1, 3)
    assert outcome.places["digits"].lv2_bytes <= 40_000  # and the other has the rest
    with pytest.raises(ScenarioError, match=r"digits.cimg: .*not for 'tiny'.*machine.preset"):
        run(content(models, params={"engines": 2}), tmp_path)
    with pytest.raises(ScenarioError, match=r"model 'digits': .*none.cimg"):
        run(content({"digits": {"image": "none.cimg"}}), tmp_path)


def test_layers_are_placed_where_the_machine_and_the_model_say_so(tmp_path):
    models = {"a": {"workload": "conv_32x16x16_32_k3_s1_p1", "placed": True}, "b": {"workload": SMALL}}
    outcome = run(content(models, placed=True, params={"engines": 2}), tmp_path, "idle_time")
    assert outcome.queues == 2 and engines(outcome) == {"a": (0, 1), "b": (0, 1)}


def test_inputs_come_from_files_in_turn_and_outputs_go_to_files(tmp_path):
    with np.load(SAMPLES) as file:
        images = file["input"]
    np.save(tmp_path / "first.npy", images[:1])
    np.save(tmp_path / "others.npy", images[1:4])
    models = {"digits": {"onnx": str(DIGITS), "inputs": ["first.npy", "others.npy"], "outputs": "out/digits"}}
    told = content(models, stream("digits", *range(6)), params={})
    outcome = run(told, tmp_path, check=True)
    assert outcome.checked == 6
    assert run(told, tmp_path).checked == 4  # the first two samples, twice each
    files = {file.name for file in (tmp_path / "out" / "digits").iterdir()}
    assert files == {f"digits-{number}-0.npz" for number in range(6)}
    wanted = [caesura.run(DIGITS, images[at : at + 1], backend=MODEL) for at in range(4)]
    for number in range(6):
        with np.load(tmp_path / "out" / "digits" / f"digits-{number}-0.npz") as written:
            assert np.array_equal(written["logits"], wanted[number % 4])


def test_a_wrong_output_is_found(tmp_path, monkeypatch):
    fetch, runs = ModelData.fetch, []

    def spoiled(self):
        outputs = {name: value.copy() for name, value in fetch(self).items()}
        runs.append(1)
        if len(runs) == 4:  # two alone, then requests
            next(iter(outputs.values())).flat[0] += 1
        return outputs

    monkeypatch.setattr(ModelData, "fetch", spoiled)
    runner = RtlRunner(MODEL)
    told = content({"small": {"workload": SMALL}}, stream("small", 0, 1, 2))
    outcome = runner.run(parse_scenario(told, "x"), Policies.named("fcfs"), tmp_path)
    assert outcome.mismatches == ["small 1: outputs of small differ"] == runner.mismatches


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (["none.npz"], r"model 'digits': inputs: .*none.npz: not a readable"),
        (["odd.npy"], r"model 'digits': inputs: .*odd.npy: input 'image': shape \[3\]"),
        (["empty.npy"], r"model 'digits': inputs: empty.npy hold no sample; name others"),
    ],
)
def test_inputs_that_do_not_suit(tmp_path, inputs, message):
    np.save(tmp_path / "odd.npy", np.zeros(3, np.float32))
    np.save(tmp_path / "empty.npy", np.zeros((0, 1, 1, 8, 8), np.float32))
    with pytest.raises(ScenarioError, match=message):
        run(content({"digits": {"onnx": str(DIGITS), "inputs": inputs}}), tmp_path)


def test_outputs_stay_within_the_folder(tmp_path):
    (tmp_path / "away").mkdir()
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "link").symlink_to(tmp_path / "away")
    with pytest.raises(ScenarioError, match="leads out of the scenario's folder"):
        run(content({"m": {"workload": SMALL, "outputs": "link"}}), tmp_path / "here")
    assert not list((tmp_path / "away").iterdir())


def test_every_option_of_the_compiler_counts(tmp_path):
    models = {"m": {"workload": SMALL, "options": {"order": "sideways"}}}
    with pytest.raises(CompileError, match=r"model 'm': .*order must be one of"):
        run(content(models), tmp_path)
    with pytest.raises(ScenarioError, match=r"name fewer, or set machine\.params"):
        run(content({"m": {"workload": SMALL, "engines": 5}}), tmp_path)
    with pytest.raises(ScenarioError, match=r"engines = \[0, 4\]: .* numbered from 0 to 3"):
        run(content({"m": {"workload": SMALL, "engines": [0, 4]}}), tmp_path)


def test_a_plan_compiles_a_model(tmp_path):
    options = caesura.Options(lv2_limit=30_000)
    api.compile_with_report(DIGITS, "tiny", options=options).plan.write(tmp_path / "plan.json")
    models = {"digits": {"onnx": str(DIGITS), "plan": "plan.json"}}
    assert run(content(models, params={}), tmp_path).places["digits"].lv2_bytes <= 30_000
    with pytest.raises(CompileError, match=r"model 'digits': .*plan"):
        run(content(models, preset="base", params={}), tmp_path)
