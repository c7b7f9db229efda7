"""Models on the engines that are chosen for them, on the real RTL: tenants side by side, and preempted apart."""

import numpy as np
import pytest

from benchmarks.scenarios.rtl_long_operator import HARDWARE
from compiler.pipeline import build
from compiler.plan.options import Options
from hw.contract.params import preset
from sim.rtl import open_bus
from sw.driver import Device
from sw.runtime import Session
from sw.runtime.runtime import Runtime
from tests.support.graphs import GraphBuilder

pytestmark = pytest.mark.slow  # machines that no other test builds

TWO = preset(HARDWARE["preset"]).replace(**HARDWARE["params"]).replace(engines=2)
FOUR = preset("tiny").replace(engines=4)
ROUNDS = 2
LIMIT = 10_000_000


def layers(seed):
    """Three convolutions that compute longer than they load."""
    made = GraphBuilder(seed)
    x = made.input((1, 16, 16, 16))
    for _ in range(3):
        x = made.conv(x, 32, pads=(1, 1, 1, 1))
    made.output(x)
    return made


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((TWO, 1), id="two engines"),
        pytest.param((FOUR, 2), id="four engines"),
    ],
)
def tenants(request):
    """A device, and two models each compiled for half of its engines, with an input and its output."""
    params, engines = request.param
    bus = open_bus(params)
    device, served = Device(bus), []
    for seed in (1, 2):
        image, _ = build(layers(seed).graph, params, Options(engines=engines, lv2_limit=params.lv2_bytes // 2))
        port = image.meta.inputs[0]
        x = np.random.default_rng(seed).integers(-128, 128, port.shape).astype(np.int8)
        model = device.load(image)
        served.append((model, x, Session(device, model).run(x)[0]))
    yield device, served
    bus.close()


def halves(params):
    middle = params.engines // 2
    return tuple(range(middle)), tuple(range(middle, params.engines))


def serve(device, served, choice):
    """Cycles until ``ROUNDS`` requests of each have ended."""
    begin, runtime = device.bus.cycle, Runtime(device, "round_robin")
    requests = [
        (runtime.submit(model, x, engines=engines), outputs)
        for _ in range(ROUNDS)
        for (model, x, outputs), engines in zip(served, choice, strict=True)
    ]
    runtime.run_until_done()
    for request, outputs in requests:
        check(request.result(), outputs)
        assert {result.engine for result in request.results} == set(request.engines)
    return device.bus.cycle - begin


def check(outputs, expected):
    for name, value in outputs.items():
        np.testing.assert_array_equal(value, expected[name])


def test_side_by_side_serves_nearly_twice_as_much_as_taking_turns(tenants):
    device, served = tenants
    first, second = halves(device.params)
    turns, beside = serve(device, served, (first, first)), serve(device, served, (first, second))
    print(f"{turns} cycles in turns, {beside} side by side: {turns / beside:.2f} times the throughput")
    assert turns >= 1.8 * beside


def test_any_engines_give_the_same_outputs(tenants):
    device, served = tenants
    model, x, outputs = served[0]
    first, second = halves(device.params)
    for engines in (second, second[::-1], (*first[1:], second[-1])):
        got, stats = Session(device, model).run(x, engines)
        check(got, outputs)
        assert {job.engine for job in stats.jobs} == set(engines)


@pytest.mark.parametrize("share", [0.2, 0.7])
def test_preempting_one_tenant_leaves_the_other_alone(tenants, share):
    """The other takes the cycles that it takes beside a tenant that is not preempted, but for chance in the DRAM."""
    device, served = tenants
    (victim, x, expected), (other, z, outputs) = served
    first, second = halves(device.params)
    for model, engines in ((victim, first), (other, second)):
        device.assign(model, engines)

    def start():
        for model, data in ((victim, x), (other, z)):
            Session(device, model).store(data)
            device.begin(model, LIMIT)
            yield device.submit(model, range(len(model.image.meta.jobs)), limit=LIMIT)

    ids, beside = start()
    undisturbed = device.collect(beside, LIMIT)
    device.collect(ids, LIMIT)
    length = undisturbed[-1].end - undisturbed[0].start

    ids, beside = start()
    device.bus.advance(int(share * length))
    suspension = device.suspend(first, verify=True)
    assert suspension.models == [victim] and any(suspension.queues.values())
    device.bus.advance(5_000)
    device.resume(suspension)
    device.collect(ids, LIMIT)
    others = device.collect(beside, LIMIT)
    assert not any(result.resumed for result in others)
    assert others[-1].end - others[0].start <= 1.01 * length
    check(Session(device, victim).fetch(), expected)
    check(Session(device, other).fetch(), outputs)
