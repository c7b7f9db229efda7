"""A plan that was written and read makes the image of the build that it comes from."""

from dataclasses import replace

import pytest

from compiler import ir
from compiler.emission.objects import desk
from compiler.emission.objects.desk import Desk
from compiler.emission.objects.object_store import ObjectStore
from compiler.emission.objects.workers import Workers
from compiler.pipeline import build, emit
from compiler.plan.options import Options
from compiler.plan.plan import Plan
from compiler.plan.plan_error import PlanError
from compiler.search.programs import build_timed
from hw.contract.params import preset
from hw.image.image import Image
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


def emitted(graph: ir.Graph, plan: Plan, jobs: int = 1, store: ObjectStore | None = None) -> Image:
    with Desk(jobs, store) as desk:
        return emit(plan, graph, desk)


@pytest.fixture
def stored(tmp_path):
    """A plan as it comes out of its file."""

    def again(plan: Plan) -> Plan:
        plan.write(tmp_path / "plan.json")
        return Plan.read(tmp_path / "plan.json")

    return again


@pytest.mark.parametrize("name", EVERY)
def test_the_image_is_that_of_the_build(stored, name):
    graph, params, options = BUILDS[name]()
    image, plan = build(graph, params, options, jobs=1)
    assert emitted(graph, stored(plan)).to_bytes() == image.to_bytes()


def test_the_plan_of_a_search_is_that_of_its_best_program(stored):
    graph = branchy(2, 6, 16)
    found = build_timed(
        graph, BASE, Options(engines=2, order="timed"), Desk(1), lambda image: [1.0] * len(image.meta.layers)
    )
    assert emitted(graph, stored(found.plan), jobs=1).to_bytes() == found.image.to_bytes()


def test_several_processes_make_the_same_image(monkeypatch, stored):
    monkeypatch.setattr(desk, "_MANY_CYCLES", 0)
    graph, params, options = BUILDS["layers 1"]()
    image, plan = build(graph, params, options, jobs=1)
    assert emitted(graph, stored(plan), jobs=3).to_bytes() == image.to_bytes()


@pytest.fixture
def asked(monkeypatch):
    """How many layers each round of compilation had to compile."""
    counts, original = [], Workers.map

    def noted(self, function, items):
        counts.append(len(items))
        return original(self, function, items)

    monkeypatch.setattr(Workers, "map", noted)
    return counts


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("name", ["layers 4", "layers 6", "layers 8", "digits observed", "rows base 2"])
def test_to_emit_what_was_decided_compiles_nothing(monkeypatch, tmp_path, stored, asked, name, jobs):
    """At the same desk, and at another that finds on disk what was made."""
    monkeypatch.setattr(desk, "_MANY_CYCLES", 0)
    graph, params, options = BUILDS[name]()
    with Desk(jobs, ObjectStore(tmp_path)) as cold:
        image, plan = build(graph, params, options, desk=cold)
        assert sum(asked) > 0
        asked.clear()
        assert emit(stored(plan), graph, cold).to_bytes() == image.to_bytes()
    assert emitted(graph, stored(plan), jobs, ObjectStore(tmp_path)).to_bytes() == image.to_bytes()
    assert sum(asked) == 0


def test_what_was_emitted_is_not_what_was_asked(stored, asked):
    """Other options ask another question, though the tiles are the same."""
    graph, params, options = BUILDS["layers 8"]()
    with Desk(1) as at:
        plan = build(graph, params, options, desk=at)[1]
        asked.clear()
        fewer = build(graph, params, replace(options, cancel_max_live=64), desk=at)[1]
        assert sum(asked) > 0 and fewer.options != plan.options


def test_a_desk_forgets_what_is_too_much(monkeypatch, asked):
    monkeypatch.setattr(desk, "_MOST_BYTES", 0)
    graph, params, options = BUILDS["layers 8"]()
    other, *how = BUILDS["layers 5"]()
    with Desk(1) as at:
        first = build(graph, params, options, desk=at)[0].to_bytes()
        again = build(graph, params, options, desk=at)[0].to_bytes()
        held = len(at._objects)
        build(other, *how, desk=at)
        asked.clear()
        assert build(graph, params, options, desk=at)[0].to_bytes() == again == first
        assert sum(asked) > 0 and held < 100


def test_other_weights_take_the_same_plan(stored):
    """A plan is about shapes: the same model trained further is compiled alike."""
    graph, trained = blocks(1, 1), blocks(1, 1)
    plan = stored(build(graph, TINY, Options(), jobs=1)[1])
    for op in trained.ops[:2]:
        op.weights += 1
    assert emitted(trained, plan, jobs=1).to_bytes() == build(trained, TINY, Options(), jobs=1)[0].to_bytes()


def test_another_model_does_not():
    plan = build(residual_block(1).graph, TINY, Options(), jobs=1)[1]
    with pytest.raises(PlanError, match="is for another model, 'random1'"):
        emitted(residual_block(2).graph, plan, jobs=1)


def changed(plan: Plan, number: int, **what) -> Plan:
    steps = list(plan.steps)
    steps[number] = replace(steps[number], **what)
    return replace(plan, steps=tuple(steps))


def test_what_cannot_be_carried_out_is_refused():
    graph = residual_block(1).graph
    plan = build(graph, TINY, Options(regions=False), jobs=1)[1]
    memory, first = plan.memory, plan.steps[0]
    with pytest.raises(PlanError, match="is in 0 of them; each layer is in one step"):
        emitted(graph, replace(plan, steps=plan.steps[1:]), jobs=1)
    with pytest.raises(PlanError, match="a layer has 1 jobs, in the plan 2"):
        emitted(graph, changed(plan, 0, jobs=first.jobs * 2), jobs=1)
    smaller = [replace(buffer, size=buffer.size - 1) if buffer.segment == 6 else buffer for buffer in memory.buffers]
    with pytest.raises(PlanError, match=r"size is .*, and must be .* at least"):
        emitted(graph, replace(plan, memory=replace(memory, buffers=tuple(smaller))), jobs=1)
    at_zero = [replace(buffer, offset=0) if buffer.segment == 6 else buffer for buffer in memory.buffers]
    with pytest.raises(PlanError, match=r"share bytes while both live|lies in the staging areas"):
        emitted(graph, replace(plan, memory=replace(memory, buffers=tuple(at_zero))), jobs=1)
    with pytest.raises(PlanError, match=r"step 0 reads tensor .* before .* makes it; put that first"):
        emitted(graph, replace(plan, steps=plan.steps[::-1]), jobs=1)
