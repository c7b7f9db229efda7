"""Models that keep a state in a scenario: a request is a conversation of so many tokens."""

import numpy as np
import onnx
import pytest

from caesura.scenario import ScenarioError, parse_scenario, serve
from caesura.scenario.served_steps import StepCopies
from sim.backends import MODEL
from sw.driver import Device
from tests.caesura.scenario.test_real_models import content, stream
from tests.support.networks import DIGITS
from tests.support.small_step import WORDS, small_step
from tests.support.step_reference import steps_of

STEP = {"onnx": "step.onnx", "sizes": {"past": 7}}
URGENT = {"onnx": str(DIGITS)}


@pytest.fixture
def folder(tmp_path):
    """A folder with a decoder, and two texts of four tokens for it."""
    onnx.save(small_step(), tmp_path / "step.onnx")
    np.savez(tmp_path / "texts.npz", ids=np.random.default_rng(3).integers(0, WORDS, (2, 4)))
    return tmp_path


def talking(tokens, *arrivals, **keys):
    told = stream("step", *arrivals, **keys)
    told["stages"][0]["tokens"] = tokens
    return told


def served(folder, *streams, models=None, **machine):
    told = content(models or {"step": STEP}, *streams, **machine)
    return serve(parse_scenario(told, "x.toml"), "idle_time", MODEL, folder=folder, check=True)


def test_conversations_take_turns_and_an_urgent_model_stops_them(folder):
    moments = range(3_000, 150_000, 5_300)
    models = {"step": STEP, "digits": URGENT}
    how = {"preemption": {"mechanisms": ["dump"]}, "params": {"engines": 1}}
    found = served(folder, talking(4, 0, 100, 200), stream("digits", *moments, priority=5), models=models, **how)
    assert found.mismatches == []
    assert found.outcome.checked == 3 * 4 + len(moments)
    assert found.outcome.preemptions
    steps = [run for run in found.outcome.layers if run.model == "step" and run.layer == 0]
    assert len(steps) == 3 * 4


def test_what_a_text_gives_is_what_its_tokens_give_alone(folder):
    """The file of a request holds the outputs of its last token, which depend on all before it."""
    models = {"step": STEP | {"inputs": ["texts.npz"], "outputs": "out"}}
    found = served(folder, talking(4, 0, 50), models=models)
    assert found.mismatches == []
    with np.load(folder / "texts.npz") as file:
        texts = file["ids"]
    for number, text in enumerate(texts):
        with np.load(folder / "out" / f"step-{number}-0.npz") as file:
            np.testing.assert_array_equal(file["y"], steps_of(text, 7)[-1])


def test_a_conversation_that_is_another_ones_is_told(folder, monkeypatch):
    """The check can fail: two requests that share a state do not give what each gives alone."""
    opened = {}

    def first(self, run):
        return opened[self] if self in opened else opened.setdefault(self, serving(self, run))

    serving = StepCopies.serving
    monkeypatch.setattr(StepCopies, "serving", first)
    monkeypatch.setattr(StepCopies, "ended", lambda self, run, *, dropped: None)
    found = served(folder, talking(2, 0, 50))
    assert "step 1, token 0: outputs of step differ" in found.mismatches


def test_states_are_given_back(folder, monkeypatch):
    """Also that of a request which is dropped at its deadline; its memory is cleared."""
    kept, new, end = [], Device.new_state, Device.end_state

    def begun(self, model):
        kept.append(new(self, model))
        return kept[-1]

    monkeypatch.setattr(Device, "new_state", begun)
    monkeypatch.setattr(Device, "end_state", lambda self, model, state: (kept.remove(state), end(self, model, state)))
    late = talking(4, 50, deadline=9_000, late="drop") | {"name": "late"}
    found = served(folder, talking(4, 0), late)
    assert {frame.stream: frame.dropped is None for frame in found.outcome.frames} == {"step": True, "late": False}
    assert kept == []


@pytest.mark.parametrize(
    ("streams", "models", "machine", "told"),
    [
        ([talking(9)], None, {}, "memory for 8 tokens, and a stage has 9"),
        ([talking(5)], {"step": STEP | {"inputs": ["texts.npz"]}}, {}, "a sequence has 4 steps, and a stage 5 tokens"),
        ([talking(2)], {"step": STEP | {"inputs": ["none.npz"]}}, {}, "model 'step': inputs: "),
        ([talking(2)], None, {"devices": 2}, "keeps a state, which is on one device"),
        ([talking(2)], {"step": URGENT}, {}, "keeps nothing from one inference to the next, and a stage has 2 tokens"),
    ],
)
def test_what_cannot_be_is_told(folder, streams, models, machine, told):
    with pytest.raises(ScenarioError, match=told):
        served(folder, *streams, models=models, **machine)


def test_work_on_the_cpu_has_no_tokens():
    told = content({"step": STEP}, talking(2))
    told["streams"][0]["stages"] = [{"cpu": "parse", "duration": 1, "tokens": 2}]
    with pytest.raises(ScenarioError, match="cpu and tokens"):
        parse_scenario(told, "x.toml")
