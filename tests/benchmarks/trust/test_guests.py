"""Guests see what others left, and what they lost themselves: the oracle of the campaigns of residue and exchange."""

import random

import numpy as np
import pytest

from benchmarks.trust.fleet import PARAMS
from benchmarks.trust.guests import Guest, Style
from sim.simulators import open_simulator
from sw.driver import Device, NotSuspendable
from sw.runtime import Mechanism, Runtime

WINDOWS = (8192, 3001)


@pytest.fixture
def device():
    bus = open_simulator(PARAMS, "model")
    yield Device(bus)
    bus.close()


def looks(device, guest, model):
    return guest.found(device.bus.read_mem(*model.segments[4], charge=False))


def run(device, *calls):
    """Requests (guest, model, priority, arrival from now)."""
    runtime = Runtime(device, preemptive=True, rule=lambda situation: Mechanism.DUMP)
    now = device.bus.cycle
    requests = [
        runtime.submit(model, {"in": guest.inputs}, priority=priority, arrival=now + arrival)
        for guest, model, priority, arrival in calls
    ]
    runtime.run_until_done()
    assert [request.exception() for request in requests] == [None] * len(requests)
    return requests


def test_a_guest_reads_all_that_one_of_the_same_tenant_left(device):
    guests = [Guest(random.Random(number), PARAMS, number, WINDOWS) for number in (3, 5)]
    models = [device.load(guest.image()) for guest in guests]
    models[1].move_windows(*(base for base, _ in models[0].lv2_parts()))
    for guest, model in zip(guests, models, strict=True):
        run(device, (guest, model, 0, 0))
    first, second = looks(device, guests[1], models[1])
    assert guests[1].lost(second) == ""
    # What the reading itself leaves: units in LV0, and what passes through LV1 and accumulators on its way.
    for memory, share in (("lv2", 0.1), ("lv1", 0.7), ("act", 0.9)):
        assert np.mean(first.memories[memory] >> 4 == 3) > share, memory
    assert "bytes of others in" in first.foreign(5) and second.foreign(5) == ""


@pytest.mark.parametrize("memory", ["lv2", "lv1", "acc", "act", "wgt"])
def test_a_byte_that_changed_while_it_was_live_is_told(device, memory):
    guests = (Guest(random.Random(seed), PARAMS, 3, WINDOWS) for seed in range(100))
    guest = next(guest for guest in guests if len({name for name, _ in guest._live_bytes()}) == 5)
    model = device.load(guest.image())
    run(device, (guest, model, 0, 0))
    _, second = looks(device, guest, model)
    assert guest.lost(second) == ""
    where = next(live.start for name, live in guest._live_bytes() if name == memory)
    second.memories[memory] = second.memories[memory].copy()
    second.memories[memory][where] ^= 1
    assert f"1 live bytes of {memory} differ" in guest.lost(second)


def test_one_that_was_suspended_finds_what_was_live_and_nothing_else(device):
    one, other = (Guest(random.Random(seed), PARAMS, seed, (40_000, 3001)) for seed in (4, 6))
    models = [device.load(guest.image(), tenant=name) for guest, name in ((one, "a"), (other, "b"))]
    requests = run(device, (one, models[0], 0, 0), (other, models[1], 1, 30_000))
    assert requests[0].preempted == 1
    for guest, model in zip((one, other), models, strict=True):
        first, second = looks(device, guest, model)
        assert (first.foreign(guest.tenant), second.foreign(guest.tenant), guest.lost(second)) == ("", "", "")


def test_weights_that_stay_and_are_not_there_are_told(device):
    guest = Guest(random.Random(0), PARAMS, 3, (4096, 20_000), Style.KEEPER)
    model = device.load(guest.image(), keep_weights=True)
    for left_out in (False, True):
        run(device, (guest, model, 0, 0))
        assert guest.missing(looks(device, guest, model)[0]) == ""
        ((where, digest),) = [model.kept_weights(0)]
        assert device.lv2.has_weights(where, None, digest), left_out
    smaller = device.load(Guest(random.Random(1), PARAMS, 3, (4096, 0)).image())
    smaller.move_windows(where[1] - 4096, 0)
    run(device, (Guest(random.Random(1), PARAMS, 3, (4096, 0)), smaller, 0, 0))
    device.lv2.put(where, None, digest)  # which is not so
    run(device, (guest, model, 0, 0))
    assert "bytes are not what its prologue brings" in guest.missing(looks(device, guest, model)[0])


def test_one_that_is_astray_is_not_suspended_and_ends(device):
    guests = [
        Guest(random.Random(seed), PARAMS, 3, WINDOWS, style) for seed, style in enumerate((Style.ASTRAY, Style.PLAIN))
    ]
    models = [device.load(guest.image()) for guest in guests]
    runtime = Runtime(device, preemptive=True, rule=lambda situation: Mechanism.DUMP)
    astray, urgent = (
        runtime.submit(model, {"in": guest.inputs}, priority=priority, arrival=priority * 30_000)
        for priority, (guest, model) in enumerate(zip(guests, models, strict=True))
    )
    runtime.run_until_done()
    assert isinstance(astray.exception(), NotSuspendable) and urgent.exception() is None
