"""Conversations of a scenario that share their steps: they join and leave between tokens, and each is exact."""

import numpy as np
import onnx
import pytest

from caesura.scenario import ScenarioError, parse_scenario, serve
from sim.backends import DEFAULT_BACKEND, MODEL
from sw.driver import Device
from sw.runtime import BatchedConversation
from tests.caesura.scenario.test_real_models import content, stream
from tests.support.networks import DIGITS
from tests.support.small_step import WORDS, small_step
from tests.support.step_reference import steps_of

OPTIONS = {"order": "source", "cancel_interval": 1000}  #: compiled at once, and suspended within a step
STEP = {"onnx": "step.onnx", "sizes": {"past": 7}, "sequences": 3, "inputs": ["texts.npz"], "options": OPTIONS}
URGENT = {"onnx": str(DIGITS)}
TEXTS = np.random.default_rng(3).integers(0, WORDS, (4, 6))


@pytest.fixture
def folder(tmp_path):
    """A folder with a decoder, and four texts of six tokens for it."""
    onnx.save(small_step(), tmp_path / "step.onnx")
    np.savez(tmp_path / "texts.npz", ids=TEXTS)
    return tmp_path


def talking(tokens, *arrivals, name="step", **keys):
    told = stream("step", *arrivals, **keys) | {"name": name}
    told["stages"][0]["tokens"] = tokens
    return told


def served(folder, *streams, models=None, backend=MODEL, **machine):
    told = content(models or {"step": STEP}, *streams, **{"params": {"engines": 1}, **machine})
    return serve(parse_scenario(told, "x.toml"), "idle_time", backend, folder=folder, check=True)


def inferences(found):
    return sum(run.model == "step" and run.layer == 0 for run in found.outcome.layers)


def check_texts(folder, name, count, tokens):
    """The file of a request holds the outputs of its last token, which depend on all before it."""
    for number in range(count):
        with np.load(folder / "out" / f"{name}-{number}-0.npz") as file:
            np.testing.assert_array_equal(file["y"], steps_of(TEXTS[number % 4][:tokens], 7)[-1])


def test_requests_that_are_ready_decode_together(folder):
    models = {"step": STEP | {"outputs": "out"}}
    found = served(folder, talking(4, 0, 0, 0), models=models)
    assert found.mismatches == [] and found.outcome.checked == 3 * 4
    assert inferences(found) == 4
    check_texts(folder, "step", 3, 4)
    runs = [run for run in found.outcome.requests if run.model == "step"]
    assert len(runs) == 12 and len({run.end for run in runs}) == 4
    engine = sum(found.outcome.compute_busy)
    assert 0.5 * engine < sum(run.busy for run in runs) <= 1.5 * engine  # each has its part of a step


def test_they_join_and_leave_between_tokens(folder):
    """Of eight requests of two streams three have places at a time; others begin a batch, whose places fill up. The
    last comes when all have left."""
    models = {"step": STEP | {"outputs": "out"}}
    streams = talking(6, 0, 40_000, 90_000, 90_500), talking(2, 10_000, 60_000, 60_100, 3_000_000, name="short")
    found = served(folder, *streams, models=models)
    assert found.mismatches == [] and found.outcome.checked == 4 * 6 + 4 * 2
    assert 6 < inferences(found) < 32 - 6
    check_texts(folder, "step", 4, 6)
    check_texts(folder, "short", 4, 2)


def test_an_urgent_model_stops_a_step_of_several(folder):
    moments = range(3_000, 300_000, 31_000)
    models = {"step": STEP, "digits": URGENT}
    how = {"preemption": {"mechanisms": ["dump"]}}
    found = served(folder, talking(4, 0, 100, 200, 300), stream("digits", *moments, priority=5), models=models, **how)
    assert found.mismatches == [] and found.outcome.checked == 4 * 4 + len(moments)
    assert found.outcome.preemptions >= 3
    assert any(run.suspended for run in found.outcome.requests if run.model == "step")


def test_deadlines_that_drop_nothing_keep_no_one_apart(folder):
    found = served(folder, talking(3, 0, 1, 2, deadline=90_000))
    assert found.mismatches == [] and inferences(found) <= 4
    late = served(folder, talking(3, 0, 1, 2, deadline=120_000, late="drop"))
    assert late.mismatches == [] and inferences(late) == 9


def test_outputs_of_a_neighbour_are_told(folder, monkeypatch):
    """The check can fail: each request is given what the conversation at the next place has."""
    part = BatchedConversation.part

    def neighbours(self, outputs):
        one = next((each for each in self.batch._members if each not in (None, self)), self)
        return part(one, outputs)

    monkeypatch.setattr(BatchedConversation, "part", neighbours)
    found = served(folder, talking(2, 0, 0))
    assert "step 1, token 0: outputs of step differ" in found.mismatches


def test_states_are_given_back(folder, monkeypatch):
    """Also where a request is dropped at its deadline."""
    kept, new, end = [], Device.new_state, Device.end_state

    def begun(self, model):
        kept.append(new(self, model))
        return kept[-1]

    monkeypatch.setattr(Device, "new_state", begun)
    monkeypatch.setattr(Device, "end_state", lambda self, model, state: (kept.remove(state), end(self, model, state)))
    late = talking(4, 50, 60, deadline=40_000, late="drop", name="late")
    found = served(folder, talking(4, 0, 0), late)
    assert found.mismatches == [] and kept == []
    dropped = [frame.dropped is not None for frame in found.outcome.frames if frame.stream == "late"]
    assert dropped == [True, True]


def test_on_the_rtl(folder):
    """A third joins two within their texts, and an urgent network stops them."""
    models = {"step": STEP | {"outputs": "out"}, "digits": URGENT}
    how = {"preemption": {"mechanisms": ["dump"]}, "backend": DEFAULT_BACKEND}
    urgent = stream("digits", 9_000, 60_000, priority=5)
    found = served(folder, talking(3, 0, 0, 30_000), urgent, models=models, **how)
    assert found.mismatches == [] and found.outcome.checked == 3 * 3 + 2
    assert inferences(found) < 9 and found.outcome.preemptions
    check_texts(folder, "step", 3, 3)


@pytest.mark.parametrize(
    ("models", "streams", "told"),
    [
        ({"step": STEP}, [talking(9)], "memory for 8 tokens, and a stage has 9"),
        ({"digits": URGENT | {"sequences": 2}}, [stream("digits")], "model 'digits': .*sequences"),
        ({"step": STEP | {"sizes": {}, "dimension": "past"}}, [talking(2)], "these are not for: .*sequences"),
        ({"step": {"image": "x.cimg", "sequences": 2}}, [talking(2)], "compiled already, and sequences"),
    ],
)
def test_what_cannot_be_is_told(folder, models, streams, told):
    with pytest.raises((ScenarioError, ValueError), match=told):
        served(folder, *streams, models=models)
