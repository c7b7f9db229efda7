"""Requests on sets of engines: who uses others is left alone, who shares some waits, and nothing is lost."""

import itertools

import numpy as np
import pytest

from hw.contract.params import preset
from sw.driver import Device
from sw.runtime.engine_sets import apart
from sw.runtime.preemption_mechanism import Mechanism
from sw.runtime.runtime import Runtime
from tests.support.fake_soc import FakeSoc
from tests.support.preempt_images import smashing_image, walking_image
from tests.support.sampled import sampled

BASE = preset("base")
X = np.random.default_rng(0).uniform(-60, 60, (1, 8, 8)).astype(np.float32)
EXPECTED = ((np.clip(np.rint(X / np.float32(0.5)) + 3, -128, 127) - 3) * np.float32(0.5)).reshape(1, 64)


def device_of(engines, **options):
    return Device(FakeSoc(BASE.replace(engines=engines)), **options)


def runtime_of(device, rule=Mechanism.DUMP):
    return Runtime(device, "fcfs", preemptive=True, rule=lambda situation: rule)


def walking(device, engines, jobs=6, name="walk"):
    image = walking_image(device.params, jobs=jobs, name=name, engines=len(engines))
    return device.load(image, engines)


def smashing(device, engines, name="smash", windows=(8192, 8192)):
    return device.load(smashing_image(device.params, engines=1, name=name, windows=windows), engines)


def check(*requests):
    for request in requests:
        assert request.error is None
        np.testing.assert_array_equal(request.outputs["out"], EXPECTED)


def first_body(request):
    return min(result.start for result in request.results)


def test_apart():
    sets = [{0}, {1, 2}, {3}, {2, 4}, {4, 0}]
    assert apart(map(frozenset, sets), lambda one: one) == [[{3}], [{0}, {1, 2}, {2, 4}, {4, 0}]]
    assert apart([frozenset({0}), frozenset()], lambda one: one) == [[{0}, set()]]  # none stand for all


def test_an_urgent_request_for_a_free_engine_suspends_nobody():
    """It begins as soon as on an idle device, and pays for no decision."""
    alone = device_of(2)
    first = runtime_of(alone).submit(smashing(alone, [1]), X)
    first.result()
    device = device_of(2)
    runtime = runtime_of(device)
    long = runtime.submit(walking(device, [0]), X)
    urgent = runtime.submit(smashing(device, [1]), X, priority=1, arrival=device.bus.cycle + 4500)
    runtime.run_until_done()
    check(long, urgent)
    assert long.preempted == 0 and runtime.switches == 0
    assert first_body(urgent) - urgent.arrival <= first_body(first) - first.arrival + 1200  # an interrupt of the other


@pytest.mark.parametrize("rule", [Mechanism.DUMP, Mechanism.KILL])
def test_an_urgent_request_stops_only_who_is_on_its_engine(rule):
    device = device_of(3)
    runtime = runtime_of(device, rule)
    victim, bystander = runtime.submit(walking(device, [1]), X), runtime.submit(walking(device, [0, 2]), X)
    urgent = runtime.submit(smashing(device, [1]), X, priority=1, arrival=device.bus.cycle + 4500)
    runtime.run_until_done()
    check(victim, bystander, urgent)
    assert (victim.preempted, bystander.preempted, bystander.repeated) == (1, 0, 0)
    assert urgent.ended < victim.ended


def test_two_urgent_requests_on_two_engines_run_at_once():
    device = device_of(2)
    runtime = runtime_of(device)
    below = [runtime.submit(walking(device, [engine]), X) for engine in range(2)]
    at = device.bus.cycle + 4500
    urgent = [runtime.submit(walking(device, [e], name=f"u{e}"), X, priority=1, arrival=at) for e in range(2)]
    runtime.run_until_done()
    check(*below, *urgent)
    assert all(request.preempted == 1 for request in below)
    spans = [(first_body(request), request.ended) for request in urgent]
    both = min(end for _, end in spans) - max(begin for begin, _ in spans)
    assert both > 0.5 * min(end - begin for begin, end in spans)  # small ones: the host starts them in turn


def test_a_bystander_whose_body_was_stopped_goes_on_at_once():
    """A{0} and B{1} are beside C{0,1} when U{1} arrives: C stands on engine 0 as well, so A stops, too."""
    stopped = 0
    for phase in range(2500, 12_000, 700):
        device = device_of(2)
        runtime = runtime_of(device)
        a, b = runtime.submit(walking(device, [0], name="A"), X), runtime.submit(walking(device, [1], name="B"), X)
        c = runtime.submit(walking(device, [0, 1], name="C"), X)
        at = device.bus.cycle + phase
        u = runtime.submit(walking(device, [1], jobs=12, name="U"), X, priority=1, arrival=at)
        runtime.run_until_done()
        check(a, b, c, u)
        assert not device.suspensions and not device.outstanding
        if a.preempted:
            stopped += 1
            assert a.ended < u.ended  # it went on beside the urgent one
    assert stopped


def test_a_less_urgent_request_waits_for_those_that_are_suspended_on_its_engines():
    device = device_of(2)
    runtime = runtime_of(device)
    both = runtime.submit(walking(device, [0, 1]), X)
    start = device.bus.cycle
    urgent = runtime.submit(walking(device, [1], name="U"), X, priority=1, arrival=start + 4500)
    late = runtime.submit(walking(device, [0], name="late"), X, arrival=start + 5000)
    runtime.run_until_done()
    check(both, urgent, late)
    assert both.preempted == 1 and late.started > urgent.ended


@pytest.mark.parametrize("seed", sampled(range(40), 15))
def test_random_sets_of_engines(seed):
    """Whoever arrives when, on whatever engines and windows: all outputs are right, none waits for ever, and after
    every turn what is said of requests holds."""
    print("seed", seed)
    random = np.random.default_rng(seed)
    count = int(random.integers(2, 5))
    device = device_of(count, ring_log2=int(random.integers(2, 5)))

    def some():
        return [int(e) for e in random.permutation(count)[: random.integers(1, count + 1)]]

    def one():
        return [int(random.integers(count))]

    models = [walking(device, some(), int(random.integers(4, 8)), f"m{i}") for i in range(5)]
    models += [smashing(device, one(), f"s{i}", (int(4096 << random.integers(0, 8)),) * 2) for i in range(3)]
    choices = [Mechanism(name) for name in ("dump", "dump", "dump", "kill", "wait")]
    runtime = Runtime(
        device, str(random.choice(["fcfs", "idle_time", "round_robin"])), preemptive=True,
        rule=lambda situation: choices[random.integers(len(choices))],
    )  # fmt: skip
    for _ in range(14):
        runtime.submit(
            models[random.integers(len(models))], X, priority=int(random.integers(0, 4)),
            arrival=int(random.integers(0, 60_000)), announced=bool(random.integers(2)),
        )  # fmt: skip
    while runtime._waiting or runtime._started.requests or runtime._priorities.suspended:
        runtime.step()
        holds(runtime)
    runtime.run_until_done()
    check(*runtime.requests)
    assert not device.suspensions and not device.outstanding and not device.transferring


def holds(runtime):
    """Assert what is true after every turn."""
    running, suspended = runtime._priorities.running, runtime._priorities.suspended
    for a, b in itertools.combinations(running, 2):
        assert not a.model.overlaps(b.model), "two that run have common bytes of LV2"
        if not set(a.model.engines).isdisjoint(b.model.engines):
            assert a.priority == b.priority, "a less urgent one runs on the engine of a more urgent one"
    for group in suspended:
        for request in group.requests:
            assert request not in running and runtime._priorities.group_of(request) is group
            outstanding = {job.model.number for job in runtime.device.outstanding}
            assert request.model.number not in outstanding, "a suspended one has jobs on an engine"


def test_models_for_which_lv2_has_no_window_of_their_own_find_one_at_run_time():
    """Three that want a third of LV2, loaded beside one that has all of it: they do not wait for each other."""
    device = device_of(3)
    half = device.params.lv2_bytes // 2
    device.load(smashing_image(device.params, engines=1, name="all", windows=(half, half)), [0])
    models = [smashing(device, [engine], f"s{engine}", (half // 2, half // 8)) for engine in range(3)]
    assert all(model.windows()[0][0] == 0 for model in models)
    runtime = Runtime(device)
    requests = [runtime.submit(model, X) for model in models]
    runtime.run_until_done()
    check(*requests)
    assert len({tuple(model.windows()) for model in models}) == 3
    assert max(request.started for request in requests) < min(request.ended for request in requests)


def test_one_that_needs_the_place_of_others_takes_only_as_many_as_it_must():
    device = device_of(4)
    half = device.params.lv2_bytes // 2
    runtime = runtime_of(device)
    below = [runtime.submit(smashing(device, [e], f"s{e}", (half // 2, half // 8)), X) for e in range(3)]
    urgent = runtime.submit(smashing(device, [3], "U", (half, 64)), X, priority=1, arrival=device.bus.cycle + 4500)
    runtime.run_until_done()
    check(*below, urgent)
    assert sum(request.preempted for request in below) == 1 and urgent.ended < max(r.ended for r in below)


def test_requests_go_to_the_engines_that_are_least_busy():
    """Four equal ones to four engines, a longer one and a short one in its place; those that run count what is left."""
    device = device_of(4)
    runtime = Runtime(device, "fcfs")
    models = [walking(device, [0], name=f"m{i}") for i in range(5)]
    pair = walking(device, [0, 1], name="pair")
    for model in [*models, pair]:
        for layer in model.image.meta.layers:
            layer.estimated_compute = 1000
    asked = [runtime.submit(model, X, engines="least_busy") for model in models]
    asked.append(runtime.submit(pair, X, engines="least_busy"))
    assert [tuple(request.engines) for request in asked] == [(0,), (1,), (2,), (3,), (0,), (1, 2)]
    runtime.run_until_done()
    check(*asked)
    again = [runtime.submit(model, X, engines="least_busy") for model in models[:2]]
    runtime.step()
    late = runtime.submit(models[2], X, engines="least_busy")
    runtime.run_until_done()
    check(*again, late)
    assert late.engines == (2,)


def test_who_was_suspended_first_waits_for_who_goes_first():
    """A is below B, and B below U. While U has an engine of B, the other one is kept for B, and A does not get it."""
    device = device_of(2)
    runtime = runtime_of(device)
    start = device.bus.cycle
    a = runtime.submit(walking(device, [0], jobs=12, name="A"), X)
    b = runtime.submit(walking(device, [0, 1], name="B"), X, priority=1, arrival=start + 4500)
    u = runtime.submit(walking(device, [1], jobs=16, name="U"), X, priority=2, arrival=start + 9000)
    runtime.run_until_done()
    check(a, b, u)
    assert (a.preempted, b.preempted) == (1, 1)
    assert u.ended < b.ended < a.ended


def test_a_less_urgent_one_leaves_what_is_suspended_where_it_is():
    """It would have an engine, but no place in LV2 beside one that goes on first."""
    device = device_of(2)
    half = device.params.lv2_bytes // 2
    wide = walking_image(device.params, jobs=6, name="wide", windows=(half + half // 4, 1024), engines=1)
    first = device.load(wide, [0])
    runtime, start = runtime_of(device), device.bus.cycle
    urgent, late = smashing(device, [0], "U"), smashing(device, [1], "late", (half, 64))
    below = runtime.submit(first, X, priority=1)
    above = [runtime.submit(urgent, X, priority=2, arrival=start + 4500)]
    waits = runtime.submit(late, X, arrival=start + 4600)
    runtime.run_until_done()
    check(below, *above, waits)
    assert below.preempted == 1 and waits.started >= below.ended


def test_the_parts_of_a_suspension():
    """Two models on one engine, of which one has halted in its body: each has what is its own."""
    device = device_of(1)
    models = [walking(device, [0], name=name) for name in "ab"]
    for model in models:
        device.begin(model, None)
    for job in range(3):
        for model in models:
            device.submit(model, [job], limit=None)
    device.bus.advance(700)
    whole = device.suspend([0])
    assert whole.halts[0].in_job and len(whole.queues[0]) > 2
    part = device.divide(whole, [models[1]])
    standing = [one for one in (whole, part) if one.points]
    assert len(standing) == 1 and sum(one.halts[0].in_job for one in (whole, part)) == 1
    assert standing[0].halts[0].in_job
    assert [model.name for model in part.models] == ["b"] and [model.name for model in whole.models] == ["a"]
    assert {job.model.name for job in part.queues[0]} == {"b"} and {job.model.name for job in whole.queues[0]} == {"a"}
    for one in sorted((whole, part), key=lambda one: not one.points):
        device.resume(one)
        device.settle()
        device.collect([job for jobs in one.queues.values() for job in jobs], None)
    assert not device.suspensions


def test_what_lies_in_lv2_between_two_jobs_is_in_use():
    device = device_of(2)
    between, other = walking(device, [0], name="between"), walking(device, [1], name="other")
    device.begin(between, None)
    device.collect(device.submit(between, [0], limit=None), None)
    assert not device.outstanding and between.in_flight
    taken = device.preemption.transfers.running()
    assert all(any(a <= start and end <= b for a, b in taken) for start, end in between.windows())
    assert device.has_place(other, [between])
    device.end(between)
    assert device.preemption.transfers.running() == []


@pytest.mark.parametrize(("policy", "first"), [("fcfs", "short"), ("idle_time", "long")])
def test_who_gets_the_path_to_memory(policy, first):
    """Both load as long as they compute, on engines of their own. ``idle_time`` leaves the path to the longer one, as
    the other has time to spare; under ``fcfs`` nobody waits for other engines."""
    device = device_of(2)
    long, short = walking(device, [0], jobs=16, name="long"), walking(device, [1], jobs=6, name="short")
    for model, cycles in ((long, 40_000), (short, 4000)):
        for layer in model.image.meta.layers:
            layer.estimated_compute = layer.estimated_load = cycles
    runtime = Runtime(device, policy)
    requests = [runtime.submit(short, X), runtime.submit(long, X)]
    runtime.run_until_done()
    check(*requests)
    assert min(requests, key=lambda request: request.ended).model.name == first
