"""A plan that was written and read makes the image of the build that it comes from."""

from dataclasses import replace

import pytest

from compiler.backend.objects import compile_layers
from compiler.backend.options import Options
from compiler.backend.pipeline import build, emit
from compiler.plan.json_form import read_plan, write_plan
from compiler.plan.plan import Plan
from compiler.plan.plan_error import PlanError
from compiler.timed_order import build_timed
from hw.contract.params import preset
from tests.support.graphs import residual_block
from tests.support.image_cases import BUILDS
from tests.support.layer_cases import blocks
from tests.support.placed import branchy

TINY, BASE = preset("tiny"), preset("base")
#: Regions, points, heads, parts of images, streamed weights, placed and observed models, steps on the CPU.
SAMPLE = {
    "layers 1", "layers 3", "layers 5", "layers 6", "layers 7", "digits placed", "digits observed", "rows base 2",
    "depthwise base 2", "moves base 2", "large weights tiny 1", "random 1", "random 3", "CPU steps", "batch 2", "split",
}  # fmt: skip
EVERY = [pytest.param(name, marks=() if name in SAMPLE else pytest.mark.slow) for name in BUILDS]


@pytest.fixture
def stored(tmp_path):
    """A plan as it comes out of its file."""

    def again(plan: Plan) -> Plan:
        write_plan(plan, tmp_path / "plan.json")
        return read_plan(tmp_path / "plan.json")

    return again


@pytest.mark.parametrize("name", EVERY)
def test_the_image_is_that_of_the_build(stored, name):
    graph, params, options = BUILDS[name]()
    image, report = build(graph, params, options, jobs=1)
    assert emit(graph, stored(report.plan), jobs=1).to_bytes() == image.to_bytes()


def test_the_plan_of_a_search_is_that_of_its_best_program(stored):
    graph = branchy(2, 6, 16)
    found = build_timed(graph, BASE, Options(engines=2, order="timed"), lambda image: [1.0] * len(image.meta.layers))
    assert emit(graph, stored(found.report.plan), jobs=1).to_bytes() == found.image.to_bytes()


def test_several_processes_make_the_same_image(monkeypatch, stored):
    monkeypatch.setattr(compile_layers, "_MANY_CYCLES", 0)
    graph, params, options = BUILDS["layers 1"]()
    image, report = build(graph, params, options, jobs=1)
    assert emit(graph, stored(report.plan), jobs=3).to_bytes() == image.to_bytes()


def test_other_weights_take_the_same_plan(stored):
    """A plan is about shapes: the same model trained further is compiled alike."""
    graph, trained = blocks(1, 1), blocks(1, 1)
    plan = stored(build(graph, TINY, Options(), jobs=1)[1].plan)
    for op in trained.ops[:2]:
        op.weights += 1
    assert emit(trained, plan, jobs=1).to_bytes() == build(trained, TINY, Options(), jobs=1)[0].to_bytes()


def test_another_model_does_not():
    plan = build(residual_block(1).graph, TINY, Options(), jobs=1)[1].plan
    with pytest.raises(PlanError, match="is for another model, 'random1'"):
        emit(residual_block(2).graph, plan, jobs=1)


def changed(plan: Plan, number: int, **what) -> Plan:
    steps = list(plan.steps)
    steps[number] = replace(steps[number], **what)
    return replace(plan, steps=tuple(steps))


def test_what_cannot_be_carried_out_is_refused():
    graph = residual_block(1).graph
    plan = build(graph, TINY, Options(regions=False), jobs=1)[1].plan
    memory, first = plan.memory, plan.steps[0]
    with pytest.raises(PlanError, match="are not its layers, each once"):
        emit(graph, replace(plan, steps=plan.steps[1:]), jobs=1)
    with pytest.raises(PlanError, match="a layer has 1 jobs, in the plan 2"):
        emit(graph, changed(plan, 0, jobs=first.jobs * 2), jobs=1)
    smaller = [replace(buffer, size=buffer.size - 1) if buffer.segment == 6 else buffer for buffer in memory.buffers]
    with pytest.raises(PlanError, match="does not fit the buffer of the plan"):
        emit(graph, replace(plan, memory=replace(memory, buffers=tuple(smaller))), jobs=1)
    at_zero = [replace(buffer, offset=0) if buffer.segment == 6 else buffer for buffer in memory.buffers]
    with pytest.raises(PlanError, match=r"share bytes while both live|lies in the staging areas"):
        emit(graph, replace(plan, memory=replace(memory, buffers=tuple(at_zero))), jobs=1)
    with pytest.raises(PlanError, match="the plan cannot be carried out"):
        emit(graph, replace(plan, steps=plan.steps[::-1]), jobs=1)
