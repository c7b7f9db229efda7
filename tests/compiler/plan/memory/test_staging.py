"""Staging areas: in use where something passes them, smaller where tensors do not fit otherwise."""

from dataclasses import replace

import numpy as np
import pytest

import caesura
from benchmarks.workloads import inputs, workload
from compiler import ALL_LV2, Options, compile_with_report, import_model, reference
from compiler.pipeline import build
from compiler.plan.layers.layer import ConvLayer
from compiler.plan.layers.lower import lower
from compiler.plan.layers.step import ModelStep
from compiler.plan.lowered_model import LoweredModel
from compiler.plan.memory.budget import SLACK, tile_bytes
from compiler.plan.memory.packing import Areas, best_packing
from compiler.plan.memory.sharing import SharedBuffer
from compiler.plan.memory.staging import StagedSteps
from compiler.plan.regions.layer_order import Chain
from hw.contract.isa import Segment
from hw.contract.params import KIB, preset
from sim.model import ModelBus
from tests.support.graphs import GraphBuilder
from tests.support.networks import network

TINY, NAME = preset("tiny"), "mobilenetv2_small"


def buffers(*lives: tuple[int, int, int]) -> list[SharedBuffer]:
    """Buffers of (size, first step, last step), each written and read once."""
    return [SharedBuffer(size, start, end, 2, users={start, end}) for size, start, end in lives]


def test_steps_without_a_tensor_in_dram_leave_the_areas_to_tensors():
    first, second = buffers((96, 1, 2), (96, 4, 5))
    outside = SharedBuffer(32, 0, 1, 1, int(Segment.INPUTS), users={0, 1})
    touched = [[outside], [outside, first], [first], [], [second], [second]]
    found = best_packing([first, second], TINY, Chain(), Areas(64, touched), 160)
    assert (found.offsets[id(first)], found.offsets[id(second)], found.moved) == (64, 0, 0)
    always = best_packing([first, second], TINY, Chain(), Areas(64), 160)
    assert set(always.offsets.values()) == {64}


def test_who_finds_no_place_takes_the_areas_into_use():
    """The large one passes them at steps 1 and 2, so another that lives then lies behind them."""
    large, small = buffers((256, 1, 2), (32, 0, 2))
    found = best_packing([large, small], TINY, Chain(), Areas(64, [[small], [small, large], [small, large]]), 160)
    assert found.offsets == {id(small): 64} and found.moved == 2 * 256


class NotInTurn(Chain):
    in_turn = False


def test_a_better_packing_is_found_by_who_was_left_out():
    """First fit by life and size keeps small ones, that by size the largest; both keep out what is read most often.
    Where layers come in turn, it is known at once that this should stay."""
    small, (often, largest) = buffers((48, 0, 1), (48, 0, 1), (48, 0, 1)), buffers((64, 0, 9), (112, 0, 9))
    often.uses = 20
    waiting = [*small, often, largest]
    areas = Areas(0, [waiting, *[[]] * 9])
    few, more = (best_packing(waiting, TINY, NotInTurn(), areas, 160, tries) for tries in (0, 20))
    assert id(often) not in few.offsets and id(often) in more.offsets and more.moved < few.moved
    exact = best_packing(waiting, TINY, Chain(), areas, 160)
    assert id(often) in exact.offsets and exact.moved <= more.moved


@pytest.fixture(scope="module")
def narrow():
    """A network on a machine whose LV2 does not hold all of its tensors."""
    params = replace(TINY, lv2_bytes=64 * KIB)
    return compile_with_report(workload(NAME), params, options=Options(lv2_limit=ALL_LV2), jobs=1)


@pytest.mark.parametrize("order", ["source", pytest.param("search", marks=pytest.mark.slow)])
def test_what_does_not_fit_is_told_with_the_size_that_would_do(narrow, order):
    spill = narrow.spill
    assert spill is not None and spill.bytes > 0 and "do not fit into LV2" in str(spill)
    assert spill.enough is not None and 64 * KIB < spill.enough < 512 * KIB
    wide = replace(TINY, lv2_bytes=512 * KIB)
    options = Options(lv2_limit=ALL_LV2, order=order)
    assert compile_with_report(workload(NAME), wide, options=options, jobs=1).spill is None


def test_outputs_are_right_where_tensors_lie_in_areas_that_are_not_in_use(narrow):
    feed = inputs(NAME)
    with ModelBus(narrow.image.params) as bus, caesura.Device(bus) as device:
        found, _ = device.load(narrow.image).run(feed)
    for name, value in reference.run(narrow.graph, feed).items():
        np.testing.assert_array_equal(found[name], value)
    memory = narrow.plan.memory
    area = memory.staging.base + narrow.image.params.engines * memory.staging.size
    assert memory.staging.base == 0
    assert any(one.segment == Segment.LV2 and one.size and one.offset < area for one in memory.buffers)


@pytest.mark.slow
def test_what_passes_an_area_unforeseen_is_seen_in_the_jobs(monkeypatch):
    """Steps are taken for such as pass nothing, so tensors lie where they do: the jobs show it, and others are made."""
    monkeypatch.setattr(
        StagedSteps, "of", lambda steps, windows, params: StagedSteps([frozenset()] * len(steps), frozenset())
    )
    graph, feed = import_model(workload(NAME)), inputs(NAME)
    image, _ = build(graph, replace(TINY, lv2_bytes=64 * KIB), Options(lv2_limit=ALL_LV2), jobs=1)
    with ModelBus(image.params) as bus, caesura.Device(bus) as device:
        found, _ = device.load(image).run(feed)
    for name, value in reference.run(graph, feed).items():
        np.testing.assert_array_equal(found[name], value)


def test_areas_that_lv2_does_not_hold_are_made_smaller():
    """They must not lie where tensors do: those of 256 bytes leave no room, so all of them pass through DRAM."""
    small = buffers((32, 0, 1), (32, 1, 2))
    outside = SharedBuffer(32, 0, 2, 1, int(Segment.INPUTS), users={0, 2})
    found = best_packing(small, TINY, Chain(), Areas(256, [[outside, small[0]], small, [outside, small[1]]]), 160)
    assert found.offsets == {} and found.moved == 4 * 32


def test_a_network_fits_where_its_largest_areas_do_not():
    """Of 96 KiB the areas of the largest tiles would take more than all, for two engines."""
    name, params = "kws_dscnn_int8", preset("base")
    made = compile_with_report(network(name), params, options=Options(engines=2, lv2_limit=96 * KIB), jobs=1)
    assert made.spill is None and made.image.meta.lv2_bytes <= 96 * KIB


def test_steps_whose_weights_exceed_a_window_pass_the_areas():
    """They come chunk by chunk, wherever tensors lie."""
    build = GraphBuilder(0)
    x = build.conv(build.input((1, 8, 8, 16)), 256, (1, 1))
    build.output(build.conv(x, 16))
    layers = lower(build.graph, TINY)
    steps = [ModelStep.alone(layer) for layer in layers]
    small, large = (tile_bytes(layer, TINY) + SLACK for layer in layers)
    assert small < large
    for windows, streaming in ((small - 1, {0, 1}), (small, {1}), (large - 1, {1}), (large, set())):
        assert StagedSteps.of(steps, windows, TINY).numbers(lambda name: True) == streaming


def test_no_tensor_lies_in_the_areas_while_weights_pass_them():
    first, second = buffers((32, 0, 1), (32, 2, 3))
    found = best_packing([first, second], TINY, Chain(), Areas(64, [[], [first], [second], []], frozenset({3})), 160)
    assert (found.offsets[id(first)], found.offsets[id(second)]) == (0, 64)


@pytest.mark.slow
def test_what_is_added_and_constant_passes_nothing():
    """It lies among the parameters. So tensors have the staging areas while a matrix is multiplied whose other operands
    are on chip: in an encoder that does not fit, and was refused."""
    path, params = workload("bert_tiny_1x512"), preset("base").replace(lv2_bytes=512 * KIB)
    model = LoweredModel.of(import_model(path), params, Options(engines=2, lv2_limit=ALL_LV2))
    assert any(
        isinstance(one, ConvLayer) and one.addition and one.addition.constant is not None for one in model.layers
    )
    touched = StagedSteps.of([ModelStep.alone(one) for one in model.layers], 0, params).tensors
    assert not [name for names in touched for name in names if model.graph.tensors[name].data is not None]
    assert compile_with_report(path, params).image.meta.lv2_bytes <= 512 * KIB
