import numpy as np
import pytest

import caesura
from sim.model.bus import ModelBus
from tests.support.images import COPY_CYCLES, copy_image

TINY = caesura.PRESETS["tiny"]
X = np.ones((1, 8, 8), np.float32)


@pytest.fixture
def device():
    return caesura.Device(ModelBus(TINY))


def test_call_returns_the_only_output(device):
    model = device.load(copy_image(TINY))
    assert model.stats is None
    np.testing.assert_array_equal(model(X), np.ones((1, 64)))
    assert model.stats.cycles == COPY_CYCLES


def test_call_returns_several_outputs_by_name(device):
    image = copy_image(TINY)
    image.meta.outputs.append(type(image.meta.outputs[0])(**{**vars(image.meta.outputs[0]), "name": "again"}))
    assert set(device.load(image)(X)) == {"out", "again"}


def test_load_takes_a_file(device, tmp_path):
    copy_image(TINY).save(tmp_path / "m.cimg")
    assert device.load(tmp_path / "m.cimg")(X).shape == (1, 64)


def test_unload_gives_memory_back(device):
    before = device.driver.dram.free_bytes
    model = device.load(copy_image(TINY))
    device.unload(model)
    assert device.driver.dram.free_bytes == before
    with pytest.raises(caesura.DriverError, match="not loaded"):
        model(X)


def test_leaving_the_context_closes_the_bus(device):
    with device:
        device.bus.advance(1)
    with pytest.raises(RuntimeError, match="was closed"):
        device.bus.advance(1)


def test_wrong_input_leaves_the_model_usable(device):
    model = device.load(copy_image(TINY))
    with pytest.raises(caesura.InputError, match="expected float32"):
        model(X.astype(np.int8))
    model(X)


def test_a_model_is_of_a_tenant_and_memories_are_cleared_between_them(device):
    ours, mine, yours = (device.load(copy_image(TINY), tenant=tenant) for tenant in (None, "a", "b"))
    assert (ours.tenant, mine.tenant, yours.tenant) == (None, "a", "b")
    cleared = device.driver.scrubber
    ours(X), ours(X)
    assert cleared.cleared == 0
    mine(X), mine(X)
    once = cleared.cleared
    assert once >= 1
    yours(X), yours(X)
    assert cleared.cleared > once


def test_a_request_is_of_the_tenant_of_its_model(device):
    runtime = caesura.Runtime(device)
    models = [device.load(copy_image(TINY), tenant=tenant) for tenant in ("a", None)]
    requests = [runtime.submit(model, X) for model in models]
    runtime.run_until_done()
    assert [request.tenant for request in requests] == ["a", None]
    assert device.driver.scrubber.cleared >= 2
