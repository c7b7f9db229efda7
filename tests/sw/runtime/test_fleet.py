"""Requests on several devices: each goes where it ends first, and none is lost with a device that dies."""

import numpy as np
import pytest

from hw.contract.bus import BusError, BusTimeout
from hw.contract.params import preset
from sw.driver import Device, DriverError
from sw.runtime import Fleet
from tests.support.fake_soc import FakeSoc
from tests.support.preempt_images import walking_image

TINY = preset("tiny")
X = np.random.default_rng(0).uniform(-60, 60, (1, 8, 8)).astype(np.float32)
EXPECTED = ((np.clip(np.rint(X / np.float32(0.5)) + 3, -128, 127) - 3) * np.float32(0.5)).reshape(1, 64)


def image(jobs=6, compute=4000, name="walk"):
    made = walking_image(TINY, jobs=jobs, name=name)
    for layer in made.meta.layers:
        layer.estimated_compute = compute
    return made


def fleet_of(count):
    devices = [Device(FakeSoc(TINY)) for _ in range(count)]
    return Fleet(devices, "fcfs"), devices


def served(fleet, models, arrivals):
    requests = [fleet.submit(models[i % len(models)], X, arrival=arrival) for i, arrival in enumerate(arrivals)]
    fleet.run_until_done()
    return requests


def check(requests):
    for request in requests:
        np.testing.assert_array_equal(request.result()["out"], EXPECTED)


def test_two_devices_serve_twice_as_many():
    ends = {}
    for count in (1, 2):
        fleet, _ = fleet_of(count)
        models = [fleet.load(image(name=f"m{i}")) for i in range(2)]
        requests = served(fleet, models, [0] * 12)
        check(requests)
        ends[count] = max(request.ended for request in requests)
    assert {request.device for request in requests} == {0, 1}
    assert ends[1] > 1.8 * ends[2]


def test_a_request_goes_where_it_waits_least():
    """A long one is on the first device; short ones that come later go to the other until that waits for more."""
    fleet, _ = fleet_of(2)
    long, short = fleet.load(image(12, 100_000, "long")), fleet.load(image(2, 1000, "short"))
    first = fleet.submit(long, X)
    later = [fleet.submit(short, X, arrival=3000 + 100 * i) for i in range(3)]
    fleet.run_until_done()
    check([first, *later])
    assert first.device == 0 and [request.device for request in later] == [1, 1, 1]


@pytest.mark.parametrize("error", [BusError, BusTimeout, DriverError])
def test_a_device_that_dies_is_taken_out(monkeypatch, error):
    fleet, devices = fleet_of(2)
    models = [fleet.load(image(name=f"m{i}")) for i in range(2)]
    bus, genuine = devices[1].bus, devices[1].bus.read_reg

    def read(address):
        if bus.cycle > 9000:
            raise error("the device has gone")
        return genuine(address)

    monkeypatch.setattr(bus, "read_reg", read)
    requests = served(fleet, models, [0] * 8)
    check(requests)
    assert fleet.alive == [0] and any(request.repeated for request in requests)
    assert all(request.device == 0 for request in requests if request.repeated)
    late = fleet.submit(models[0], X)
    fleet.run_until_done()
    check([late])


def test_without_any_device_requests_fail_with_its_error(monkeypatch):
    fleet, devices = fleet_of(1)
    model = fleet.load(image())

    def read(address):
        raise BusError("the device has gone")

    monkeypatch.setattr(devices[0].bus, "read_reg", read)
    (request,) = served(fleet, [model], [0])
    with pytest.raises(BusError, match="the device has gone"):
        request.result()
    assert fleet.alive == []


def test_a_model_that_one_device_refuses_is_on_none():
    fleet, devices = fleet_of(2)
    free = devices[0].dram.largest_block
    devices[1].dram.allocate(devices[1].dram.largest_block - 64, 64, "all but a little")
    with pytest.raises(DriverError, match="DRAM"):
        fleet.load(image())
    assert devices[0].dram.largest_block == free


def test_what_cannot_be_is_that_requests_own():
    fleet, _ = fleet_of(2)
    model = fleet.load(image())
    bad, good = fleet.submit(model, X, engines=[7]), fleet.submit(model, X)
    with pytest.raises(DriverError, match="call run_until_done"):
        good.result()
    fleet.run_until_done()
    check([good])
    with pytest.raises(DriverError, match="no engine 7"):
        bad.result()
    with pytest.raises(ValueError, match="at least one device"):
        Fleet([])
