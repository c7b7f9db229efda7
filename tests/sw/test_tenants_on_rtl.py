"""What tenants leave in LV2 when they preempt each other, on the real RTL: no other can read it."""

import numpy as np
import pytest

from hw.contract.params import preset
from sim.backends import DEFAULT_BACKEND
from sim.simulators import open_simulator
from sw.driver import Device
from sw.runtime import Mechanism, Runtime, Session
from tests.support.peeping_images import Peeper

TINY = preset("tiny")
LV2 = TINY.lv2_bytes
#: Windows of a long model, of an urgent one, and of one that comes later: most share bytes, some sizes are odd.
SHAPES = [
    ((LV2 // 2, LV2 // 4), (LV2 // 2, LV2 // 2), (LV2, 0)),
    ((LV2 // 4, 1000), (LV2 // 4, 3001), (LV2 // 2, LV2 // 2)),
    ((LV2 // 2 - 64, 4097), (LV2, 0), (71, LV2 // 2)),
]


@pytest.fixture
def device():
    bus = open_simulator(TINY, DEFAULT_BACKEND)
    yield Device(bus)
    bus.close()


def preempted(device, peepers, tenants, arrival):
    """What a long model, an urgent one that preempts it and a later one find of others; and the three requests."""
    runtime = Runtime(device, preemptive=True, rule=lambda situation: Mechanism.DUMP)
    models = [device.load(p.image(), tenant=t) for p, t in zip(peepers, tenants, strict=True)]
    now = device.bus.cycle
    when = [0, now + arrival, now + 10**6]
    requests = [
        runtime.submit(model, peeper.inputs(), priority=i, arrival=at)
        for i, (model, peeper, at) in enumerate(zip(models, peepers, when, strict=True))
    ]
    runtime.run_until_done()
    for request, peeper in zip(requests, peepers, strict=True):
        np.testing.assert_array_equal(request.result()["out"], peeper.inputs().reshape(1, 64))
    found = [peeper.strange(model) for peeper, model in zip(peepers, models, strict=True)]
    for model in models:
        device.unload(model)
    return found, requests


def latency(device, peeper):
    """Cycles that a model takes alone, of the tenant ``a``."""
    model = device.load(peeper.image(), tenant="a")
    _, stats = Session(device, model).run(peeper.inputs())
    device.unload(model)
    return stats.cycles


@pytest.mark.parametrize("windows", SHAPES)
def test_no_byte_of_another_tenant_is_found_in_lv2(device, windows):
    peepers = [Peeper(TINY, own, w) for own, w in zip((0x21, 0x42, 0x63), windows, strict=True)]
    stopped, alone = 0, latency(device, peepers[0])
    for arrival in range(alone // 3, alone, alone // 13):
        found, requests = preempted(device, peepers, "abc", arrival)
        assert found == [{}, {}, {}], f"arrival {arrival}"
        stopped += requests[0].preempted
    assert stopped >= 4


def test_one_tenant_finds_what_its_models_left_and_pays_nothing(device):
    peepers = [Peeper(TINY, own, w) for own, w in zip((0x21, 0x42, 0x63), SHAPES[0], strict=True)]
    arrival = latency(device, peepers[0]) // 2
    latency(device, peepers[2])  # the whole of LV2 is this tenant's from now on
    before = device.scrubber.cleared
    found, requests = preempted(device, peepers, "aaa", arrival)
    assert requests[0].preempted and any(found) and device.scrubber.cleared == before
