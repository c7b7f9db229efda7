"""Memory of a model is its own from load to unload: nothing lands there before or after."""

import numpy as np
import pytest

from hw.contract.bus import BusError
from hw.contract.params import preset
from sim.model.bus import ModelBus
from sw.driver import Device, DriverError
from sw.runtime import Runtime, Session
from tests.support.images import SIZE, copy_image

TINY = preset("tiny")
X = np.full((1, 8, 8), 20, np.float32)


def test_inputs_of_an_unloaded_model_do_not_reach_the_next_tenant():
    device = Device(ModelBus(TINY))
    gone = device.load(copy_image(TINY, name="gone"))
    session = Session(device, gone)
    session.run(X)
    device.unload(gone)
    tenant = device.load(copy_image(TINY, name="tenant"))
    assert tenant.segments == gone.segments
    before = [device.bus.read_mem(base, size) for base, size in tenant.segments[:6] if size]
    with pytest.raises(DriverError, match="'gone' is not loaded"):
        session.run(X)
    with pytest.raises(DriverError, match="'gone' was unloaded, so tensor 'x' has no memory"):
        session.store(X)
    with pytest.raises(DriverError, match="'gone' was unloaded, so tensor 'y'"):
        session.read_tensor("y")
    with pytest.raises(DriverError, match="'gone' was unloaded"):
        session.fetch()
    with pytest.raises(DriverError, match="'gone' is not loaded"):
        Runtime(device).submit(gone, X)
    with pytest.raises(DriverError, match="'gone' is not loaded"):
        device.submit(gone, [0], limit=1000)
    assert [device.bus.read_mem(base, size) for base, size in tenant.segments[:6] if size] == before


def test_a_model_with_requests_does_not_vanish_under_them():
    device = Device(ModelBus(TINY))
    model = device.load(copy_image(TINY))
    runtime = Runtime(device)
    first, second = runtime.submit(model, X), runtime.submit(model, X, arrival=50_000)
    with pytest.raises(DriverError, match="cannot be unloaded under request 0, request 1"):
        device.unload(model)
    first.result()
    with pytest.raises(DriverError, match="cannot be unloaded under request 1: wait"):
        device.unload(model)
    second.cancel()
    device.unload(model)


@pytest.mark.parametrize("fails_at", range(1, 12))
@pytest.mark.parametrize("operation", ["write_mem", "read_reg"])
def test_a_load_that_fails_gives_everything_back(monkeypatch, operation, fails_at):
    soc = ModelBus(TINY.replace(engines=2))
    device = Device(soc)
    image = copy_image(soc.params, engines=2)
    image.weights, image.meta.segment_sizes[1] = bytes(SIZE), SIZE
    before = device.dram.free_bytes, device.lv2.free_bytes, list(device.events._free)
    calls, genuine = [], getattr(soc, operation)

    def failing(*args, **named):
        calls.append(args)
        if len(calls) == fails_at:
            raise BusError(f"{operation} was answered with an error")
        return genuine(*args, **named)

    monkeypatch.setattr(soc, operation, failing)
    try:
        device.load(image)
    except BusError:
        assert (device.dram.free_bytes, device.lv2.free_bytes, device.events._free) == before
    else:
        assert len(calls) < fails_at
    monkeypatch.setattr(soc, operation, genuine)
    model = device.load(image)
    np.testing.assert_array_equal(Session(device, model).run(X)[0]["out"], X.reshape(1, 64))
