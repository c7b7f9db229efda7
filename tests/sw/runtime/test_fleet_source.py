"""Requests that come to a fleet while it serves: from a source, and from what it calls at the end of others."""

import pytest

from hw.contract.bus import BusError
from hw.contract.params import preset
from sw.driver import Device, DriverError
from sw.runtime import Fleet, Mechanism
from tests.support.fake_soc import FakeSoc
from tests.support.preempt_images import walking_image
from tests.sw.runtime.test_fleet import X, check, image
from tests.sw.runtime.test_request_source import Script

TINY = preset("tiny")


def fleet_of(count, **options):
    devices = [Device(FakeSoc(TINY)) for _ in range(count)]
    return Fleet(devices, "fcfs", **options), devices


@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_a_source_brings_goes_where_it_would_have_gone(count):
    ways = []
    for source in (False, True):
        fleet, _ = fleet_of(count)
        models = [fleet.load(image(name=f"m{i}")) for i in range(2)]
        found = []
        plan = [(1000 + 1700 * i, models[i % 2], 0) for i in range(10)]

        class Keeping:
            def submit(self, *arguments, fleet=fleet, found=found, **how):
                found.append(fleet.submit(*arguments, **how))

        script = Script(Keeping(), plan, idle=[500, 90_000])
        if not source:
            script.run_until(10**9)
        fleet.run_until_done(script if source else None)
        check(found)
        assert not script.left
        ways.append([(request.device, request.ended) for request in found])
    devices, ends = zip(*(zip(*way, strict=True) for way in ways), strict=True)
    assert devices[0] == devices[1] and len(set(devices[0])) == count
    # A source that wakes the host in between moves the phase in which it looks for the next end.
    assert all(abs(one - other) <= 100 for one, other in zip(*ends, strict=True))


def test_a_request_may_follow_another_on_any_device():
    """The next arrives when one has ended, also while another device is in the middle of something long."""
    done = []

    def ended(request):
        done.append(request)
        if request.model is short and len(done) < 4:
            fleet.submit(short, X, arrival=request.ended)

    fleet, _ = fleet_of(2, on_end=ended)
    long, short = fleet.load(image(12, 100_000, "long")), fleet.load(image(2, 1000, "short"))
    first = fleet.submit(long, X)
    fleet.submit(short, X, arrival=100)
    fleet.run_until_done()
    check(done)
    follow = [request for request in done if request.model is short]
    assert first.device == 0 and [request.device for request in follow] == [1] * len(follow)
    assert [later.arrival for later in follow[1:]] == [one.ended for one in follow[:-1]]
    assert all(0 <= later.request.arrival - later.arrival < 1000 for later in follow)  # when its device looked


def test_each_request_ends_once_also_if_its_device_dies(monkeypatch):
    done = []
    fleet, devices = fleet_of(2, on_end=done.append)
    models = [fleet.load(image(name=f"m{i}")) for i in range(2)]
    genuine = devices[1].bus.read_reg

    def read(address):
        if devices[1].bus.cycle > 9000:
            raise BusError("the device has gone")
        return genuine(address)

    monkeypatch.setattr(devices[1].bus, "read_reg", read)
    requests = [fleet.submit(models[i % 2], X) for i in range(8)]
    fleet.run_until_done()
    check(requests)
    assert sorted(done, key=id) == sorted(requests, key=id)
    assert list(fleet.dead) == [1] and "has gone" in str(fleet.dead[1])
    again = [request for request in requests if request.repeated]
    assert again and all(one.request.repeated == one.repeated == 1 for one in again)


def test_one_that_nobody_can_serve_ends_too(monkeypatch):
    done = []
    fleet, _ = fleet_of(2, on_end=done.append)
    request = fleet.submit(fleet.load(image()), X, engines=[7])
    fleet.run_until_done()
    assert done == [request]
    with pytest.raises(DriverError, match="no engine 7"):
        request.result()


def test_an_announced_request_is_known_before_it_arrives():
    ends = []
    for announced in (False, True):
        fleet, _ = fleet_of(2, preemptive=True, rule=lambda situation: Mechanism.DUMP)
        long = fleet.load(walking_image(TINY, jobs=12, name="long"))
        short = fleet.load(image(1, 1000, "short"))
        for _ in range(2):
            fleet.submit(long, X)
        urgent = fleet.submit(short, X, priority=1, arrival=12_000, announced=announced)
        assert (urgent.device is not None) == announced
        fleet.run_until_done()
        check([urgent])
        ends.append(urgent.ended)
    assert ends[1] < ends[0]


def test_what_comes_at_once_to_idle_devices_is_shared():
    """Also long after their last request, where their own time is behind."""
    fleet, _ = fleet_of(2)
    model = fleet.load(image())
    requests = [fleet.submit(model, X, arrival=90_000) for _ in range(2)]
    fleet.run_until_done()
    check(requests)
    assert [request.device for request in requests] == [0, 1]
