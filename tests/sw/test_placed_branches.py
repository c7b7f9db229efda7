"""Layers of one network over several engines, through driver and run time, on the fake SoC and on the real RTL."""

import numpy as np
import pytest

from benchmarks.scenarios.rtl_long_operator import HARDWARE
from caesura.latency import latency_bound
from compiler import reference
from compiler.pipeline import build
from compiler.plan.options import Options
from hw.contract.bus import HostCosts
from hw.contract.params import KIB, preset
from sim.rtl import open_bus
from sw.driver import Device, DriverError
from sw.runtime import Session
from sw.runtime.job_groups import job_groups
from sw.runtime.past_durations import past_of
from sw.runtime.preemption_mechanism import Mechanism
from sw.runtime.runtime import Runtime
from tests.support.fake_soc import FakeSoc
from tests.support.graphs import GraphBuilder, random_inputs
from tests.support.placed import branchy, compiled, two_branches
from tests.support.preempt_images import smashing_image
from tests.support.sampled import sampled

TINY = preset("tiny")
TWO, FOUR = TINY.replace(engines=2), TINY.replace(engines=4)
RTL = preset(HARDWARE["preset"]).replace(**HARDWARE["params"])
LIMIT = 50_000_000


def expected(graph, inputs):
    every = reference.run_all(graph, inputs)
    return {port.name: every[port.tensor] for port in graph.outputs}


def check(outputs, right):
    for name, value in right.items():
        np.testing.assert_array_equal(outputs[name], value)


def place_all(device, model, rng, limit=LIMIT):
    """Queue an inference with its layers on random engines."""
    ids, jobs, engines = [], model.image.meta.jobs, {}
    for index, job in enumerate(jobs):
        engine = engines.setdefault(job.layer, int(rng.choice(model.engines)))
        ids += device.submit(model, [index], limit=limit, engine=engine)
    return ids


@pytest.mark.parametrize("seed", sampled(range(8), 3))
def test_random_graphs_through_driver_and_run_time(seed):
    """Small rings hold jobs back; engines of the fake SoC run in a random order."""
    print("seed", seed)
    params = (TWO, FOUR)[seed % 2]
    graph = branchy(seed)
    image = compiled(graph, params, lv2_limit=params.lv2_bytes // 2)
    inputs = random_inputs(graph, seed)
    right = expected(graph, inputs)
    device = Device(FakeSoc(params, seed=seed, costs=HostCosts.free()), ring_log2=seed % 4)
    models = [device.load(image) for _ in range(2)]
    for _ in range(2):
        outputs, stats = Session(device, models[0]).run(inputs)
        check(outputs, right)
    assert {job.engine for job in stats.jobs} == set(range(params.engines))
    runtime = Runtime(device, "round_robin", placed=True)
    requests = [runtime.submit(model, inputs) for _ in range(2) for model in models]
    runtime.run_until_done()
    for request in requests:
        check(request.result(), right)


@pytest.mark.parametrize("seed", range(3))
def test_layers_of_several_jobs_through_driver(seed):
    """Their weights are more than a ring of windows holds: prologues wait for the jobs that use the same bytes."""
    print("seed", seed)
    graph = branchy(seed, 4, channels=48)
    image = compiled(graph, TWO, lv2_limit=64 * KIB, cancel_interval=0)
    assert len(image.meta.jobs) > len({job.layer for job in image.meta.jobs})
    inputs = random_inputs(graph, seed)
    device = Device(FakeSoc(TWO, seed=seed), ring_log2=1 + 2 * seed)
    model = device.load(image)
    check(Session(device, model).run(inputs)[0], expected(graph, inputs))
    runtime = Runtime(device, placed=True)
    check(runtime.submit(model, inputs).result(), expected(graph, inputs))


@pytest.mark.parametrize("seed", sampled(range(6), 3))
def test_preempted_anywhere_by_a_model_that_overwrites_everything(seed):
    print("seed", seed)
    rng = np.random.default_rng(seed)
    params = (TWO, FOUR)[seed % 2]
    graph = branchy(seed, 6)
    image = compiled(graph, params, cancel_interval=100)
    inputs = random_inputs(graph, seed)
    soc = FakeSoc(params, seed=seed, costs=HostCosts.free())
    device = Device(soc)
    soc.machine.lv2[:] = 0xEE
    victim, urgent = device.load(image), device.load(smashing_image(params, engines=params.engines))
    session = Session(device, victim)
    for _ in range(3):
        session.store(inputs)
        device.begin(victim, LIMIT)
        ids = place_all(device, victim, rng)
        for _ in range(int(rng.integers(0, 3 * len(image.meta.jobs)))):
            device.bus.advance(1)
        suspension = device.suspend(range(params.engines), urgent, verify=True)
        device.admit(urgent)
        data = rng.integers(-128, 128, (1, 8, 8)).astype(np.int8)
        urgent.write_tensor("x", data)
        device.begin(urgent, LIMIT)
        device.collect(device.submit(urgent, range(len(urgent.image.meta.jobs)), limit=LIMIT), LIMIT)
        np.testing.assert_array_equal(urgent.read_tensor("y"), data)
        device.resume(suspension)
        device.collect(ids, LIMIT)
        check(session.fetch(), expected(graph, inputs))


@pytest.mark.parametrize("ring_log2", [0, 1])
@pytest.mark.parametrize("advance", range(1, 12, 2))
def test_preempted_with_a_layer_queued_in_part(ring_log2, advance):
    """What the layer's first jobs have left in staging is kept for those that are not queued yet."""
    make = GraphBuilder(5)
    x = make.input((1, 4, 4, 64))
    graph = make.graph
    make.output(make.eltwise("add", make.conv(x, 64), make.conv(x, 64)))
    image = compiled(graph, TWO, lv2_limit=48 * KIB, cancel_interval=100)
    inputs = random_inputs(graph, 1)
    other_graph = two_branches(5, 1)
    x = random_inputs(other_graph, 1)
    device = Device(FakeSoc(TWO, seed=advance), ring_log2=ring_log2)
    device.bus.machine.lv2[:] = 0xEE
    victim, other = device.load(image), device.load(compiled(other_graph, TWO))
    runtime = Runtime(device, "fcfs", placed=True, preemptive=True, at_arrival=True, rule=_dump)
    request = runtime.submit(victim, inputs)
    urgent = runtime.submit(other, x, priority=1, arrival=device.bus.cycle + 2_000 * advance)
    runtime.run_until_done()
    check(request.result(), expected(graph, inputs))
    check(urgent.result(), expected(other_graph, x))


@pytest.mark.parametrize("seed", range(4))
def test_preempted_by_the_run_time_with_layers_still_to_be_queued(seed):
    print("seed", seed)
    params = (TWO, FOUR)[seed % 2]
    graph = branchy(seed)
    image = compiled(graph, params, cancel_interval=100)
    inputs = random_inputs(graph, seed)
    device = Device(FakeSoc(params, seed=seed))
    long, urgent = device.load(image), device.load(smashing_image(params, engines=params.engines))
    runtime = Runtime(device, "round_robin", placed=True, preemptive=True, rule=_dump)
    request = runtime.submit(long, inputs)
    with pytest.raises(DriverError, match="several engines"):
        runtime.submit(urgent, np.zeros((1, 8, 8), np.float32))
    other = device.load(compiled(two_branches(5, 1), params))
    x = random_inputs(two_branches(5, 1), seed)
    later = [
        runtime.submit(other, x, priority=1, arrival=device.bus.cycle + wait) for wait in (3_000, 9_000, 20_000, 40_000)
    ]
    runtime.run_until_done()
    check(request.result(), expected(graph, inputs))
    for one in later:
        check(one.result(), expected(two_branches(5, 1), x))
    assert request.preempted


def _dump(situation):
    return Mechanism.DUMP


def test_a_job_that_reads_from_more_engines_than_its_descriptor_can_name_is_held_back():
    """Three branches on three engines, their end on the fourth: it is queued when one of the branches has ended."""
    make = GraphBuilder(3)
    x = make.input((1, 6, 6, 4))
    branches = [make.conv(x, 8, pads=(1, 1, 1, 1)) for _ in range(3)]
    make.output(make.conv(make.concat(branches, 3), 8, (1, 1)))
    device = Device(FakeSoc(FOUR))
    image = compiled(make.graph, FOUR)
    assert [job.after for job in image.meta.jobs] == [[], [], [], [0, 1, 2]]
    model, inputs = device.load(image), random_inputs(make.graph, 1)
    session = Session(device, model)
    session.store(inputs)
    device.begin(model, LIMIT)
    ids = [job for engine in range(3) for job in device.submit(model, [engine], limit=0, engine=engine)]
    assert device.submit(model, [3], limit=0, engine=3) == []
    device.collect(ids[:1], LIMIT)
    left = device.outstanding
    ids += device.submit(model, [3], limit=LIMIT, engine=3)
    assert len(ids) == 4 and len(left) < 3
    device.collect(ids[1:], LIMIT)
    check(session.fetch(), expected(make.graph, inputs))


def test_layers_go_to_engines_of_the_model_and_stay_whole():
    device = Device(FakeSoc(FOUR))
    image = compiled(two_branches(1, 2), TWO.replace(engines=4))
    model = device.load(image)
    with pytest.raises(DriverError, match="compiled for 4 engines"):
        device.assign(model, (0, 1))
    device.begin(model, LIMIT)
    with pytest.raises(DriverError, match=r"runs on engines \[0, 1, 2, 3\], not on 4"):
        device.submit(model, [0], limit=LIMIT, engine=4)


def test_jobs_of_one_layer_stay_on_one_engine():
    """The second finds in staging what the first has loaded."""
    make = GraphBuilder(3)
    x = make.input((1, 4, 4, 64))
    make.output(make.eltwise("add", make.conv(x, 64), make.conv(x, 64)))
    device = Device(FakeSoc(TWO))
    image = compiled(make.graph, TWO, lv2_limit=48 * KIB, cancel_interval=0)
    layers = [job.layer for job in image.meta.jobs]
    second = layers.index(1)
    assert second > 1 and layers[second + 1] == 1
    model = device.load(image)
    device.begin(model, LIMIT)
    device.submit(model, [0], limit=LIMIT, engine=1)
    with pytest.raises(DriverError, match="on one engine, and engine 1 has the first"):
        device.submit(model, [1], limit=LIMIT, engine=0)
    device.submit(model, [second], limit=LIMIT, engine=1)
    with pytest.raises(DriverError, match="follow each other"):
        device.submit(model, [1], limit=LIMIT, engine=1)
    device.abort(model)
    inputs = random_inputs(make.graph, 1)
    check(Session(device, model).run(inputs)[0], expected(make.graph, inputs))


# -- on the RTL ----------------------------------------------------------------------------------------------
@pytest.fixture(
    scope="module",
    params=[
        pytest.param(RTL.replace(engines=2), id="two engines"),
        pytest.param(RTL, id="four engines", marks=pytest.mark.slow),
    ],
)
def device(request):
    bus = open_bus(request.param)
    yield Device(bus)
    bus.close()


def test_two_branches_end_earlier_on_two_engines_than_on_one(device):
    params = device.params
    graph = two_branches(1, depth=3, size=12, channels=16)
    inputs = random_inputs(graph, 3)
    cycles = {}
    one = build(graph, params, Options(cancel_interval=0))[0]
    for name, image in (("one", one), ("placed", compiled(graph, params, cancel_interval=0))):
        model = device.load(image)
        outputs, stats = Session(device, model).run(inputs)
        check(outputs, expected(graph, inputs))
        cycles[name] = stats.cycles
        device.unload(model)
    print(f"{cycles['one']} cycles on one engine, {cycles['placed']} placed: {cycles['one'] / cycles['placed']:.2f} x")
    assert cycles["one"] > 1.6 * cycles["placed"]
    branch = [(job.engine, job.start, job.end) for job in stats.jobs if 0 < job.job < len(stats.jobs) - 1]
    assert any(a[0] != b[0] and a[1] < b[1] < a[2] for a in branch for b in branch)


def test_an_engine_that_is_warming_up_gets_its_operators_later(device):
    """**Queue-time balancing** of one network with an initial wait: its first operators go to the engines without."""
    params = device.params
    graph = two_branches(1, depth=2, size=10, channels=8)
    inputs = random_inputs(graph, 3)
    model = device.load(compiled(graph, params, cancel_interval=0))
    known = past_of(device, model.tenant).of(model.image)  # what earlier tests have taught
    costs = [group.cost for group in job_groups(model.image, model.image.meta.steps[0], known)]
    durations = [max(cost.load, cost.compute) for cost in costs]
    wait = durations[0] + 1
    waits = [wait, *[0] * (params.engines - 1)]
    runtime = Runtime(device, "fcfs", placed=True, at_arrival=True, initial_waits=waits)
    request = runtime.submit(model, inputs)
    check(request.result(), expected(graph, inputs))
    engines = {run.index: run.decision.engine for run in runtime.groups}
    queues = list(waits)
    for index in sorted(engines):
        smallest = queues.index(min(queues))
        assert engines[index] == smallest
        queues[smallest] += durations[index]
    assert engines[0] == 1 and 0 in engines.values()
    assert {(r.job, r.engine) for r in request.results} == set(engines.items())
    device.unload(model)


@pytest.mark.parametrize("seed", range(4))
def test_random_graphs_on_the_rtl(device, seed):
    print("seed", seed)
    graph = branchy(seed)
    image = compiled(graph, device.params, lv2_limit=device.params.lv2_bytes // 2, cancel_interval=0)
    inputs = random_inputs(graph, seed)
    model = device.load(image)
    device.bus.set_stalls(seed + 1, 40 * (seed % 3))
    rng = np.random.default_rng(seed)
    session = Session(device, model)
    for _ in range(2):
        check(session.run(inputs)[0], expected(graph, inputs))
        session.store(inputs)
        device.begin(model, LIMIT)
        device.collect(place_all(device, model, rng), LIMIT)
        check(session.fetch(), expected(graph, inputs))
    device.bus.set_stalls(1, 0)
    device.unload(model)


@pytest.mark.parametrize("share", [0.1, 0.45, 0.8])
def test_preempted_on_the_rtl(device, share):
    params, rng = device.params, np.random.default_rng(int(100 * share))
    graph = two_branches(2, depth=3, size=10, channels=8)
    inputs = random_inputs(graph, 1)
    victim = device.load(compiled(graph, params, cancel_interval=2_000))
    urgent = device.load(smashing_image(params, engines=params.engines))
    session = Session(device, victim)
    _, stats = session.run(inputs)
    device.begin(victim, LIMIT)
    ids = place_all(device, victim, rng)
    device.bus.advance(int(share * stats.cycles))
    suspension = device.suspend(range(params.engines), urgent, verify=True)
    assert suspension.models == [victim]
    for halt in suspension.halts.values():
        assert halt.cycle - suspension.sent <= latency_bound(victim.image).halt
    device.admit(urgent)
    data = rng.integers(-128, 128, (1, 8, 8)).astype(np.int8)
    urgent.write_tensor("x", data)
    device.begin(urgent, LIMIT)
    device.collect(device.submit(urgent, range(params.engines), limit=LIMIT), LIMIT)
    device.resume(suspension)
    device.collect(ids, LIMIT)
    check(session.fetch(), expected(graph, inputs))
    device.unload(victim)
    device.unload(urgent)
