"""What a compilation makes small: cycles at no more bytes than the model's own order moves, bytes, or its LV2."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import caesura
from benchmarks.workloads import inputs, workload
from caesura.model_cycles import model_traffic
from compiler import CompileError, Options, compile_with_report, import_model, memory_study, pipeline, reference
from compiler.plan.memory.place import place
from compiler.search import traffic
from hw.contract.params import KIB, preset
from sim.model import ModelBus

BASE, NAME = preset("base"), "nasnet_small"
NARROW = Options(lv2_limit=36 * KIB, engines=1)


def compiled(options, name=NAME):
    return compile_with_report(workload(name), BASE, options=options, jobs=1)


def check(made, name=NAME):
    """Outputs equal the reference."""
    feed = inputs(name)
    with ModelBus(made.image.params) as bus, caesura.Device(bus) as device:
        found, _ = device.load(made.image).run(feed)
    for name, value in reference.run(made.graph, feed).items():
        np.testing.assert_array_equal(found[name], value)


def test_for_memory_a_model_claims_the_least_in_which_nothing_spills():
    made = compiled(Options(objective="memory", engines=1))
    study = memory_study(import_model(workload(NAME)), BASE, Options(engines=1))
    assert made.claim is not None and made.spill is None and study.least.lv2 is not None
    assert study.least.lv2 <= made.claim.size <= 48 * KIB
    assert len(made.plan.steps) == len(made.plan.layers)  # nothing runs side by side
    less = compiled(Options(objective="memory", engines=1, lv2_limit=study.least.lv2 - 4 * KIB))
    assert less.spill is not None and less.spill.enough is not None
    assert less.spill.enough >= study.least.lv2
    check(made)


@pytest.mark.slow
def test_orders_of_others_need_no_less():
    study = memory_study(import_model(workload("nasnet")), BASE, Options(engines=1))
    assert study.proved and study.bound == study.least.peak == 262_144
    peaks = {one.name: one.peak for one in study.orders}
    assert peaks == {
        "model": 524_288,
        "reverse post-order": 622_592,
        "greedy": 720_896,
        "least": 327_680,
        "least, in pieces": 262_144,
    }
    assert all(sum(size for _, size in one.alive) >= one.peak for one in study.orders)
    claims = [one.lv2 for one in study.orders]
    assert None not in claims and min(claims) == study.least.lv2


@pytest.mark.parametrize("objective", ["cycles", "dram"])
def test_no_order_moves_more_than_the_models_own(objective):
    own = compiled(replace(NARROW, order="source"))
    found = compiled(replace(NARROW, objective=objective))
    bytes_moved = [model_traffic(one.image).moved for one in (own, found)]
    assert bytes_moved[1] <= bytes_moved[0], bytes_moved
    check(found)


@pytest.mark.slow
def test_without_regions_the_order_is_chosen_too():
    name, narrow = "cell_wired_3", Options(lv2_limit=64 * KIB, engines=1, regions=False)
    own, found = compiled(narrow, name), compiled(replace(narrow, objective="dram"), name)
    moved = [model_traffic(one.image).moved for one in (own, found)]
    assert moved[1] < moved[0], moved
    orders = [[step.layers for step in one.plan.steps] for one in (own, found)]
    assert orders[0] != orders[1]
    check(found, name)


def test_steps_that_several_candidates_have_are_placed_once(monkeypatch):
    placed, asked = [], []

    def noted(graph, steps, *more, **how):
        placed.append(tuple((step.members, step.places) for step in steps))
        return place(graph, steps, *more, **how)

    def candidate(spills, study, orders, of=traffic.Spills.candidate):
        asked.append(orders)
        return of(spills, study, orders)

    monkeypatch.setattr(traffic, "place", noted)
    monkeypatch.setattr(traffic.Spills, "candidate", candidate)
    compiled(NARROW)
    assert len(placed) == len(set(placed)) < len(asked)


@pytest.mark.parametrize(("layers", "more", "tried"), [(101, 1000, False), (101, 10, True), (100, 1000, True)])
def test_large_models_are_not_compiled_with_tiles_that_move_much_more(monkeypatch, layers, more, tried):
    """Smaller staging areas let so many bytes pass, larger tiles ``more`` of them, of 16 in each of 10,000 cycles."""
    monkeypatch.setattr(pipeline, "late_loads", lambda *_: [])
    monkeypatch.setattr(pipeline, "placed", lambda *_, **__: (None, SimpleNamespace(moved=100 + 16 * more)))
    kinds = []

    def settled_in(plan, model, desk, study, orders, parts):
        kinds.append(len(parts))
        return pipeline.Settled(plan, model, 10_000, 100, 100)

    monkeypatch.setattr(pipeline, "_settled_in", settled_in)
    plan = SimpleNamespace(memory=None, params=BASE, options=Options())
    model = SimpleNamespace(graph=None, layers=[None] * layers)
    pipeline.settled(plan, model, None, SimpleNamespace(joined=lambda orders: []), ())
    assert kinds == ([5, 0] if tried else [5])


@pytest.mark.parametrize(
    ("objective", "part", "tried"),
    [
        ("cycles", 0.04, True),
        ("cycles", 0.02, False),
        ("dram", 0.02, True),
        ("dram", 0, False),
        ("memory", 0.04, False),
    ],
)
def test_pieces_are_tried_where_enough_passes(monkeypatch, objective, part, tried):
    """A ``part`` of 10,000 cycles is what DRAM takes, 16 bytes in each, for what does not fit."""
    asked = []
    plan = SimpleNamespace(rewrites=None, params=BASE, options=Options(objective=objective))
    model = SimpleNamespace(in_pieces=lambda: asked.append("pieces"))
    found = pipeline.Settled(plan, model, 10_000, int(16 * part * 10_000), 0)
    monkeypatch.setattr(pipeline, "_better_order", lambda *_: found)
    assert pipeline.no_worse(plan, model, None, None, ()) is found
    assert bool(asked) is tried


def test_the_models_own_order_is_compared_as_found(monkeypatch):
    """Also where the one that was chosen is that order, cut into other regions."""
    tried, own = [], (("first", "second"),)
    plain = SimpleNamespace(source=own, afresh=lambda: "plain")
    pressed = SimpleNamespace(source=own, afresh=lambda: "pressed")
    plan, model = SimpleNamespace(options=Options()), SimpleNamespace(layers=[None] * 5)

    def settled(plan, model, desk, study, orders):
        tried.append(study)
        return pipeline.Settled(plan, model, 10_000, 1, 1)

    monkeypatch.setattr(pipeline, "least_traffic", lambda *_: (model, pressed, own))
    monkeypatch.setattr(pipeline, "wider_regions", lambda *_: None)
    monkeypatch.setattr(pipeline, "settled", settled)
    pipeline._better_order(plan, model, None, plain, own)
    assert tried == [pressed, "plain"]


def test_bytes_that_pass_are_those_that_counters_count(monkeypatch):
    """Of bodies, which bring the first weights themselves, and of prologues, which bring the others."""
    settled, found = pipeline.settled, set()

    def counted(*arguments):
        one = settled(*arguments)
        found.add(one.passed)
        return one

    monkeypatch.setattr(pipeline, "settled", counted)
    assert model_traffic(compiled(NARROW).image).moved in found


@pytest.mark.parametrize(("passed", "serves"), [(1000, True), (1001, False)])
def test_weights_that_are_loaded_again_count_as_bytes(passed, serves):
    """An order that is quicker and moves no more of tensors, but more of weights, is not taken without a trade."""
    own = pipeline.Settled(None, None, 10_000, 100, 1000)
    assert pipeline.Settled(None, None, 9_000, 100, passed).serves(own, Options()) is serves


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (Options(objective="power"), "objective must be one of cycles, dram, memory, not 'power'"),
        (Options(trade=1.5), "trade must be a share from 0 to 1, not 1.5"),
        (Options(objective="dram", order="source"), "objective 'dram' chooses the order of layers"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, told):
    with pytest.raises(CompileError, match=told):
        compiled(options)
