"""Layers placed on any of several engines of the real RTL: outputs as alone, in order, whatever runs beside them."""

from itertools import pairwise

import numpy as np
import pytest

from benchmarks.scenarios.rtl_long_operator import HARDWARE, UNIT, long_operator
from caesura.samples import random_samples
from compiler.compile import compile_model
from compiler.plan.options import Options
from hw.contract.params import KIB, preset
from sim.backends import DEFAULT_BACKEND, MODEL
from sim.simulators import open_simulator
from sw.driver import Device
from sw.runtime import Session
from sw.runtime.policies import PLACEMENT
from sw.runtime.runtime import Runtime

FOUR = preset(HARDWARE["preset"]).replace(**HARDWARE["params"])
SHORT = long_operator(1).models["short"]
SHORT_LIMIT = 11 * KIB  #: so little that weights of its last layer have room once its second has ended
NETWORK = "examples/digits/digits.onnx"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((FOUR.replace(engines=2), DEFAULT_BACKEND), id="two engines"),
        pytest.param((FOUR.replace(engines=2), MODEL), id="two engines on the model"),
        pytest.param((FOUR, DEFAULT_BACKEND), id="four engines", marks=pytest.mark.slow),
        pytest.param((FOUR, MODEL), id="four engines on the model"),
    ],
)
def device(request):
    bus = open_simulator(*request.param)
    yield Device(bus)
    bus.close()


@pytest.fixture(scope="module")
def served(device):
    """Four loaded models, two of each of two networks, with inputs and the outputs they compute by themselves."""
    result = []
    for path, limit in ((SHORT.onnx, SHORT_LIMIT), (NETWORK, 40_000)):
        image = compile_model(path, device.params, engines=1, options=Options(lv2_limit=limit, regions=False))
        for sample in random_samples(image, 2, 5):
            model = device.load(image)
            result.append((model, sample, Session(device, model).run(sample)[0]))
    return result


def check(request, outputs):
    for name, value in request.result().items():
        np.testing.assert_array_equal(value, outputs[name])


def parts(runtime, request):
    return sorted((run for run in runtime.groups if run.request is request), key=lambda run: run.index)


@pytest.mark.parametrize("at_arrival", [False, True], ids=["as layers start", "at arrival"])
@pytest.mark.parametrize("placement", PLACEMENT)
def test_outputs_and_order(device, served, placement, at_arrival):
    runtime = Runtime(device, "round_robin", placement, placed=True, at_arrival=at_arrival)
    # An odd number: engines that take turns would give each of an even one always the same.
    requests = [(runtime.submit(model, sample), outputs) for model, sample, outputs in (*served, *served[:3])]
    runtime.run_until_done()
    several = 0
    for request, outputs in requests:
        check(request, outputs)
        runs = parts(runtime, request)
        assert [run.index for run in runs] == list(range(len(runs)))
        for before, after in pairwise(runs):
            assert before.end <= after.start
        several += len({result.engine for run in runs for result in run.results}) > 1
    assert several


@pytest.mark.parametrize(("decay", "engines"), [(False, {1}), (True, {0, 1})], ids=["stays", "decays"])
def test_an_initial_wait_keeps_operators_away_for_as_long_as_it_lasts(device, served, decay, engines):
    """Engine 0 warms up for 100,000 cycles; then a second request comes."""
    waits = [100_000.0, *[0.0] * (device.params.engines - 1)]
    runtime = Runtime(device, "fcfs", placed=True, initial_waits=waits, initial_waits_decay=decay)
    begin = device.bus.cycle
    (first, x, y), (second, z, w), *_ = served
    requests = [(runtime.submit(first, x), y), (runtime.submit(second, z, arrival=begin + 110_000), w)]
    runtime.run_until_done()
    for request, outputs in requests:
        check(request, outputs)
    early, late = ({run.decision.engine for run in parts(runtime, request)} for request, _ in requests)
    assert 0 not in early and requests[0][0].ended < begin + 100_000
    assert (0 in early | late) == (0 in engines)


def test_placement_needs_queues(device):
    with pytest.raises(ValueError, match="pass placed=True, or leave them out"):
        Runtime(device, "fcfs", "queue_time")
    with pytest.raises(ValueError, match="no placement policy named 'best'"):
        Runtime(device, "fcfs", "best", placed=True)


def test_engines_work_at_the_same_time(device, served):
    runtime = Runtime(device, placed=True)
    for model, sample, _ in served:
        runtime.submit(model, sample)
    runtime.run_until_done()
    assert any(
        a.decision.engine != b.decision.engine and a.start < b.start < a.end
        for a in runtime.groups
        for b in runtime.groups
    )


def test_a_part_that_waits_for_room_holds_up_its_own_request_only(device, served):
    """A job of the short network needs a window that is free once the layer before has ended on another engine."""
    runtime = Runtime(device, "fcfs", "round_robin_queues", placed=True, at_arrival=True)
    (first, x, y), (second, z, w), *_ = served
    requests = [(runtime.submit(first, x), y), (runtime.submit(second, z), w)]
    runtime.run_until_done()
    for request, outputs in requests:
        check(request, outputs)
    starts = [min(run.start for run in parts(runtime, request)) for request, _ in requests]
    assert starts[1] - starts[0] < 2 * UNIT
