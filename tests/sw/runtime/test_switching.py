"""Switching ahead of announced arrivals: when to begin, and that nothing of it shows in the results."""

import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from hw.contract.params import preset
from sw.driver import Device
from sw.driver.memory.allocator import Allocator
from sw.driver.preempt.state_transfer import CopyResult, Dump
from sw.driver.preempt.suspended_tasks import SuspendedTasks
from sw.driver.queues.descriptor import Descriptor
from sw.driver.queues.job import DeviceJob, DmaTraffic, DramTraffic, JobState
from sw.runtime.preemption_mechanism import Mechanism, Situation, choose
from sw.runtime.request import State
from sw.runtime.runtime import Runtime
from sw.runtime.switching import Switching
from tests.support.fake_soc import FakeSoc
from tests.support.preempt_images import smashing_image, walking_image

TINY, BASE = preset("tiny"), preset("base")
X = np.random.default_rng(0).uniform(-60, 60, (1, 8, 8)).astype(np.float32)
EXPECTED = ((np.clip(np.rint(X / np.float32(0.5)) + 3, -128, 127) - 3) * np.float32(0.5)).reshape(1, 64)
NOW = Situation(remaining=9000, elapsed=0, halt=500, dump_bytes=800, restore_bytes=800, bandwidth=8, switch=2000)
MODEL, OTHER = SimpleNamespace(number=0), SimpleNamespace(number=1)

NO_TRAFFIC = DramTraffic(DmaTraffic(), DmaTraffic(), DmaTraffic())


def _operation(*ends):
    operation = Dump(SuspendedTasks(Allocator("DRAM", 0, 64), FakeSoc(TINY)), [], {}, {})
    operation.results = [CopyResult(0, 0, end, 64, NO_TRAFFIC) for end in ends]
    return operation


def _switched(switching, number, begin, dump, cycle, model=MODEL):
    request = SimpleNamespace(number=number, model=model)
    switching.begin(request, begin)
    switching.admitted(request, dump, cycle)


def _lead(switching, model=MODEL):
    return switching.lead(model, lambda: NOW)


def test_the_first_lead_is_estimated():
    assert _lead(Switching(choose, 0.5)) == 500 + 2000 + 100


def test_later_ones_are_measured():
    switching = Switching(choose, 0.5)
    _switched(switching, 0, 1000, _operation(3000, 4000), 2500)
    assert _lead(switching) == 3000
    assert _lead(switching, OTHER) == 2600
    _switched(switching, 1, 10_000, None, 11_000)
    assert _lead(switching) == 2000


def test_a_dump_counts_once_it_has_ended_and_not_if_it_failed():
    switching, dump = Switching(choose, 1.0), _operation()
    dump.jobs.append(DeviceJob(7, 0, Descriptor((), 0, 0), party=None, state=JobState.QUEUED))
    _switched(switching, 0, 1000, dump, 2500)
    assert _lead(switching) == 2600
    dump.jobs.clear()
    assert _lead(switching) == 2600
    dump.results = _operation(9000).results
    assert _lead(switching) == 2600


def test_what_was_not_begun_is_not_measured():
    switching = Switching(choose, 1.0)
    switching.admitted(SimpleNamespace(number=3, model=MODEL), None, 9000)
    assert _lead(switching) == 2600


def _request(number, arrival, priority=1, announced=True):
    return SimpleNamespace(number=number, arrival=arrival, priority=priority, announced=announced, model=MODEL)


def test_the_next_announced_request_is_foreseen():
    switching = Switching(choose, 1.0)
    waiting = [_request(0, 9000), _request(1, 9500), _request(2, 5000, announced=False), _request(3, 900)]
    assert switching.foreseen(waiting, 1000, lambda request: NOW) == (waiting[0], 9000 - 2600)
    assert switching.foreseen(waiting[2:], 1000, lambda request: NOW) is None
    assert switching.decide(waiting[0], replace(NOW, notice=8000, remaining=20_000, killable=False)) is Mechanism.DUMP
    assert switching.expected == {0} and switching.decided(waiting[0]) and not switching.decided(waiting[1])
    found = switching.foreseen(waiting, 1000, lambda request: NOW)
    assert found is not None and found[0] is waiting[1]  # the first was decided on


def test_a_refusal_holds_until_a_running_request_has_ended():
    switching, request = Switching(lambda now: Mechanism.WAIT, 1.0), _request(0, 500)
    assert switching.decide(request, replace(NOW, notice=500)) is Mechanism.WAIT
    assert not switching.declined(request)  # it has not arrived
    assert switching.decide(request, NOW) is Mechanism.WAIT
    assert switching.declined(request)
    switching.reconsider()
    assert not switching.declined(request)


def _check(request):
    np.testing.assert_array_equal(request.result()["out"], EXPECTED)
    assert request.state is State.DONE


def _dump(situation):
    return Mechanism.DUMP


class Scene:
    """A long model that runs, an urgent one that arrives after ``delay`` cycles, and when the pause was sent."""

    def __init__(self, params, delay, rule=_dump, announced=True):
        device = Device(FakeSoc(params))
        self.runtime = Runtime(device, preemptive=True, rule=rule)
        long, urgent = device.load(walking_image(params, jobs=8)), device.load(smashing_image(params))
        for model in (long, urgent):
            for layer in model.image.meta.layers:
                layer.estimated_compute = 20_000
        self.pauses = []
        suspend = device.suspend

        def watched(*arguments, **options):
            self.pauses.append(device.bus.cycle)
            return suspend(*arguments, **options)

        device.suspend = watched
        self.long = self.runtime.submit(long, X)
        arrival = device.bus.cycle + delay
        self.urgent = self.runtime.submit(urgent, X, priority=1, arrival=arrival, announced=announced)
        self.runtime.run_until_done()
        _check(self.long), _check(self.urgent)


@pytest.mark.parametrize("params", [TINY, BASE], ids=lambda p: p.name)
def test_the_engines_are_free_when_an_announced_request_arrives(params):
    ahead, late = Scene(params, 8000), Scene(params, 8000, announced=False)
    for scene in (ahead, late):
        assert len(scene.pauses) == scene.runtime.switches == 1
        assert scene.urgent.started >= scene.urgent.arrival
        assert scene.urgent.ended < scene.long.ended
    assert ahead.pauses[0] < ahead.urgent.arrival <= late.pauses[0]
    assert ahead.urgent.ended - ahead.urgent.arrival < late.urgent.ended - late.urgent.arrival


def test_nothing_is_paused_that_ends_before_the_arrival():
    scene = Scene(TINY, 100_000)
    assert not scene.pauses and scene.long.ended < scene.urgent.arrival


def test_a_refusal_ahead_is_decided_again_at_the_arrival():
    asked = []

    def rule(situation):
        asked.append(situation.notice)
        return Mechanism.WAIT if situation.notice else Mechanism.DUMP

    scene = Scene(TINY, 8000, rule)
    assert len(asked) == 2 and asked[0] > 0 == asked[1]
    assert scene.pauses[0] >= scene.urgent.arrival


def test_a_refusal_at_the_arrival_holds():
    scene = Scene(TINY, 8000, lambda situation: Mechanism.WAIT)
    assert not scene.pauses and scene.long.ended <= scene.urgent.ended


@pytest.mark.parametrize("seed", range(20))
def test_random_announced_arrivals(seed):
    rng = random.Random(seed)
    print("seed", seed)
    device = Device(FakeSoc(rng.choice([TINY, BASE]), seed=seed))
    runtime = Runtime(device, "round_robin", preemptive=True, rule=_dump)
    requests = []
    for i in range(8):
        make = rng.choice([walking_image, smashing_image])
        model, arrival = device.load(make(device.params, name=f"model{i}")), rng.randrange(20_000)
        announced = rng.random() < 0.7
        requests.append(runtime.submit(model, X, priority=rng.randrange(3), arrival=arrival, announced=announced))
    for request in rng.sample(requests, 2):
        for _ in range(rng.randrange(6)):
            runtime.step()
        request.cancel()
    runtime.run_until_done()
    assert not device.suspensions
    for request in requests:
        assert request.started is None or request.started >= request.arrival
        if request.state is not State.CANCELLED:
            _check(request)
