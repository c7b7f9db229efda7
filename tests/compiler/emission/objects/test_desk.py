"""However layers are compiled, the image is the same: alone or shared, in one process or several, now or earlier."""

import math
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from compiler import ir
from compiler.emission.objects import desk
from compiler.emission.objects.object_store import ObjectStore
from compiler.emission.objects.question import Question
from compiler.emission.objects.step_object import StepObject
from compiler.ir import CompileError
from compiler.pipeline import build
from compiler.plan import lowered_model
from compiler.plan.layers.layer import ConvLayer, Layer
from compiler.plan.layers.lower import lower
from compiler.plan.layers.region_share import Share
from compiler.plan.options import Options
from compiler.plan.regions.region_rules import RegionRules
from compiler.plan.regions.regions import Study
from tests.support.layer_cases import BASE, CASES, TINY, blocks
from tests.support.placed import branchy

EVERY = [pytest.param(case, marks=() if case in (3, 4, 5, 6, 8) else pytest.mark.slow) for case in range(len(CASES))]


def image(case: int, **how) -> bytes:
    graph, params, options = CASES[case]
    return build(graph, params, options, **how)[0].to_bytes()


def alone(monkeypatch, case: int) -> bytes:
    """The image if no layer shares an object with another."""
    numbers = count()
    with monkeypatch.context() as patch:
        patch.setattr(Question, "key", property(lambda question: question.__dict__.setdefault("n", str(next(numbers)))))
        return image(case, jobs=1)


@pytest.mark.parametrize("case", EVERY)
def test_objects_that_layers_share_are_as_good_as_their_own(monkeypatch, case):
    assert image(case, jobs=1) == alone(monkeypatch, case)


@pytest.mark.parametrize("case", EVERY)
def test_what_was_compiled_before_makes_the_same_image(monkeypatch, tmp_path, case):
    cold = image(case, jobs=1, store=ObjectStore(tmp_path))
    monkeypatch.setattr(desk, "step_object", None)  # nothing is left to compile ...
    if case not in SOME_WEIGHTS_REPEAT:
        assert image(case, jobs=1, store=ObjectStore(tmp_path)) == cold
    monkeypatch.undo()
    assert image(case, jobs=1) == cold == image(case, jobs=1, store=ObjectStore(tmp_path))


SOME_WEIGHTS_REPEAT = {0, 1, 2, 3, 4, 5}  #: ... but layers whose weights lie otherwise than those of their shape


@pytest.mark.parametrize("case", [1, 4])
def test_several_processes_make_the_same_image(monkeypatch, case):
    monkeypatch.setattr(desk, "_MANY_CYCLES", 0)
    assert image(case, jobs=3) == image(case, jobs=1)


def test_equal_blocks_are_compiled_once_and_changed_weights_not_again(monkeypatch, tmp_path):
    compiled = []

    def noted(question):
        compiled.append(question.key)
        return original(question)

    original = desk.step_object
    monkeypatch.setattr(desk, "step_object", noted)
    graph, params, options = CASES[0]
    graph = blocks(11, 6)
    image, _ = build(graph, params, options, jobs=1, store=ObjectStore(tmp_path))
    assert 0 < len(set(compiled)) < len(image.meta.layers)
    compiled.clear()
    convolution = next(op for op in graph.ops if isinstance(op, ir.Conv))
    convolution.weights[:] = np.random.default_rng(1).integers(-100, 100, convolution.weights.shape)
    convolution.requantise.zero_point += 1
    changed, _ = build(graph, params, options, jobs=1, store=ObjectStore(tmp_path))
    known = {key for key in compiled if list(tmp_path.iterdir()) and ObjectStore(tmp_path).find(key)}
    assert len(compiled) <= 3 and known == set(compiled)  # those whose weights lie otherwise
    assert changed.to_bytes() == build(graph, params, options, jobs=1)[0].to_bytes() != image.to_bytes()


def test_a_change_of_shape_compiles_what_it_touches(monkeypatch, tmp_path):
    graph, params, options = blocks(12, 1), TINY, Options(regions=False)
    build(graph, params, options, jobs=1, store=ObjectStore(tmp_path))
    before = {path.name for path in tmp_path.iterdir()}
    build(graph, params, Options(regions=False, cancel_interval=5000), jobs=1, store=ObjectStore(tmp_path))
    assert len({path.name for path in tmp_path.iterdir()} - before) == len(before), "points lie elsewhere"


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_names_the_operator_in_any_process(monkeypatch, jobs):
    def strange(graph, params):
        return [Layer(one.op, one.inputs, one.output, "strange") for one in lower(graph, params)]

    monkeypatch.setattr(desk, "_MANY_CYCLES", 0 if jobs > 1 else math.inf)
    monkeypatch.setattr(lowered_model, "lower", strange)
    with pytest.raises(CompileError, match="operator 't1': no kernel computes a strange"):
        build(blocks(1, 1), TINY, Options(regions=False), jobs=jobs)


@pytest.mark.parametrize("jobs", [1, 2])
def test_regions_that_are_refused_are_cut_otherwise(monkeypatch, jobs):
    """The search takes all it may for one region; what has no gain is compiled one by one, from what is known."""
    monkeypatch.setattr(desk, "_MANY_CYCLES", 0)
    for price in ("placed", "quick_placed"):
        monkeypatch.setattr(RegionRules, price, lambda _, members, shared: (1.0, (Share.ANY,) * len(members)))
    monkeypatch.setattr(RegionRules, "least", lambda *_: 0.0)
    monkeypatch.setattr(RegionRules, "possible", lambda *_: True)
    refused = []
    known = Study.forbid

    def noted(self, region):
        refused.append(region)
        known(self, region)

    monkeypatch.setattr(Study, "forbid", noted)
    graph = branchy(10, 12)
    images = [build(graph, BASE, Options(engines=2), jobs=count)[0].to_bytes() for count in (jobs, 1)]
    assert refused and images[0] == images[1]


def test_of_regions_alike_one_is_refused_for_all(monkeypatch):
    rounds, step_object, compiled = [], desk.step_object, desk.Desk.compile

    def refuse(question):
        if question.step.places:
            rounds[-1].append(question.likeness)
            raise CompileError("no region pays")
        return step_object(question)

    def counted(*about):
        rounds.append([])
        return compiled(*about)

    monkeypatch.setattr(desk, "step_object", refuse)
    monkeypatch.setattr(desk.Desk, "compile", counted)
    graph, params, options = blocks(11, 6), *CASES[0][1:]
    build(graph, params, options, jobs=1)
    assert any(rounds) and all(len(set(asked)) == len(asked) for asked in rounds)


def test_regions_of_other_kernels_are_not_alike(monkeypatch):
    """Tensors may be as large, and weights take as many cycles more as they like; other numbers change nothing."""
    asked, step_object = [], desk.step_object
    monkeypatch.setattr(desk, "step_object", lambda question: asked.append(question) or step_object(question))
    build(blocks(11, 6), *CASES[0][1:], jobs=1)
    convolutions = [
        (question, number)
        for question in asked
        for number, member in enumerate(question.step.members)
        if question.step.places and isinstance(member, ConvLayer)
    ]
    question, number = convolutions[0]

    def changed(**how):
        members = list(question.step.members)
        members[number] = replace(members[number], **how)
        return replace(question, step=replace(question.step, members=tuple(members))).likeness

    weights = question.step.members[number].weights
    assert changed(weights=np.zeros_like(weights), weight_zero_point=3) == question.likeness
    wider = np.zeros((*weights.shape[:2], weights.shape[2] + 2, weights.shape[3] + 2), weights.dtype)
    assert changed(weights=wider) != question.likeness
    assert changed(strides=(2, 1)) != question.likeness


def test_too_few_jobs_are_refused():
    with pytest.raises(CompileError, match="jobs must be at least 1, not 0"):
        build(blocks(1, 1), TINY, jobs=0)


def test_an_object_holds_no_weights():
    graph = blocks(1, 1)
    objects = {}

    class Kept(ObjectStore):
        def keep(self, key: str, made: StepObject, answer: str | None = None) -> None:
            objects[key] = made

    build(graph, TINY, jobs=1, store=Kept())
    literal = [
        piece for made in objects.values() for job in made.jobs for part in job.parts
        for piece in [*(piece for piece, _ in part.window), *part.stream] if isinstance(piece, bytes)
    ]  # fmt: skip
    weights = [op.weights for op in graph.ops if isinstance(op, ir.Conv)]
    assert literal and sum(map(len, literal)) < min(w.size for w in weights)
