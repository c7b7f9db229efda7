"""Tensors in LV2 for a part of their lives: results are those of the reference, fewer bytes move, plans say it."""

from dataclasses import replace

import numpy as np
import pytest

import caesura
from benchmarks.workloads import inputs, workload
from caesura.model_cycles import model_traffic
from compiler import Options, compile_with_report, import_model, reference
from compiler.emission.objects.desk import Desk
from compiler.pipeline import blank, emit, fill, lowered
from compiler.plan.layers.layer import RefillLayer, StoreLayer
from compiler.plan.layers.reloads import with_reloads
from compiler.plan.plan import Plan, Reload
from compiler.plan.plan_error import PlanError
from compiler.search import traffic
from hw.contract.isa import Segment
from hw.contract.params import KIB, preset
from sim.model import ModelBus

BASE, NAME = preset("base"), "nasnet_small"
NARROW = Options(objective="dram", regions=False, lv2_limit=24 * KIB, engines=1)


def compiled(options=NARROW):
    return compile_with_report(workload(NAME), BASE, options=options, jobs=1)


def check(made):
    """Outputs equal the reference."""
    feed = inputs(NAME)
    with ModelBus(BASE) as bus, caesura.Device(bus) as device:
        found, _ = device.load(made.image).run(feed)
    for name, value in reference.run(made.graph, feed).items():
        np.testing.assert_array_equal(found[name], value)


def reloads(plan):
    return [one for one in plan.rewrites if isinstance(one, Reload)]


def test_what_leaves_and_comes_back_moves_less_than_whole_lives(monkeypatch):
    made = compiled()
    assert reloads(made.plan)
    check(made)
    told = made.spill
    assert told is not None and told.enough is not None and told.enough > 24 * KIB  # as if all tensors stayed
    monkeypatch.setattr(traffic, "divisions_for", lambda model: [])
    whole = compiled()
    assert not reloads(whole.plan)
    assert model_traffic(made.image).moved < model_traffic(whole.image).moved


@pytest.mark.parametrize("engines", [1, 2])
def test_by_default_nothing_leaves(engines):
    assert not reloads(compiled(Options(lv2_limit=36 * KIB * engines, engines=engines)).plan)


def test_every_part_of_a_life_has_a_home_of_its_own():
    made = compiled()
    one = next(one for one in reloads(made.plan) if one.stored)
    homes = {name: buffer for buffer in made.plan.memory.buffers for name in buffer.tensors}
    assert homes[f"{one.tensor}/kept"].segment == Segment.SCRATCH
    assert homes[one.tensor].segment == homes[f"{one.tensor}/again0"].segment == Segment.LV2
    steps = [name for step in made.plan.steps for name in step.layers]
    again = steps.index(f"{one.tensor}/again0")
    assert steps.index(f"{one.tensor}/kept") < again < min(map(steps.index, one.loads[0]))


def test_a_plan_says_it_and_is_carried_out_as_it_says(tmp_path):
    made = compiled()
    made.plan.write(tmp_path / "plan.json")
    with Desk(1) as desk:
        given = Plan.read(tmp_path / "plan.json")
        assert given == made.plan and emit(given, made.graph, desk).to_bytes() == made.image.to_bytes()
        free = replace(given, steps=None, memory=None)
        found = fill(free, made.graph, desk)[0]
    assert reloads(found) == reloads(made.plan)  # rewrites are given, all else is decided anew


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"tensor": "no"}, "no layer makes a tensor 'no'"),
        ({"loads": (("no",),)}, "layer 'no' cannot read"),
        ({"loads": ((),)}, "nobody reads"),
        ({"loads": ()}, "nobody reads"),
    ],
)
def test_reloads_that_are_not_possible_are_named(change, told):
    made = compiled()
    rewrites = tuple(replace(one, **change) if isinstance(one, Reload) else one for one in made.plan.rewrites)
    with pytest.raises(PlanError, match=told):
        lowered(made.graph, replace(made.plan, rewrites=rewrites))


def test_a_reader_of_another_tensor_is_refused():
    made = compiled()
    plain = lowered(made.graph, blank(made.graph, BASE, NARROW))
    maker, other = plain.layers[0], next(one for one in plain.layers if plain.layers[0].output not in one.inputs)
    with pytest.raises(PlanError, match="must read that tensor"):
        with_reloads(plain.graph, plain.layers, [Reload(maker.output, True, ((other.name,),))])


def test_a_load_ahead_of_its_store_is_refused():
    made = compiled()
    one = next(one for one in reloads(made.plan) if one.stored)
    steps = list(made.plan.steps)
    places = {name: at for at, step in enumerate(steps) for name in step.layers}
    a, b = places[f"{one.tensor}/kept"], places[f"{one.tensor}/again0"]
    steps[a], steps[b] = steps[b], steps[a]
    with Desk(1) as desk, pytest.raises(PlanError, match="put that first"):
        emit(replace(made.plan, steps=tuple(steps)), made.graph, desk)


def test_stores_and_loads_are_layers_of_their_own():
    model = lowered(import_model(workload(NAME)), compiled().plan)
    kinds = [type(layer) for layer in model.layers]
    assert StoreLayer in kinds and RefillLayer in kinds
