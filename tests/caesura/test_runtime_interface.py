"""The run time by its public names: what ``caesura.open`` and ``load`` return goes in, requests come out."""

import asyncio

import numpy as np
import pytest

import caesura
from sim.model.bus import ModelBus
from tests.support.documented import ROOT, documented_code
from tests.support.images import copy_image
from tests.support.preempt_images import walking_image

TINY = caesura.PRESETS["tiny"]
X = np.ones((1, 8, 8), np.float32)


@pytest.fixture
def device():
    return caesura.Device(ModelBus(TINY))


def attributes(request):
    """All that is documented, by name."""
    names = [name for name in dir(request) if not name.startswith("_") and name not in ("drive", "withdraw", "session")]
    values = {name: getattr(request, name) for name in names}
    return {name: value for name, value in values.items() if not callable(value)}


def test_requests_of_models_as_load_returns_them(device):
    one, other = device.load(walking_image(TINY, jobs=2)), device.load(copy_image(TINY, name="other"))
    runtime = caesura.Runtime(device, preemptive=True)
    requests = [runtime.submit(one, X), runtime.submit(other, X, priority=1, arrival=device.bus.cycle + 500)]
    assert all(isinstance(request, caesura.Request) and not request.done() for request in requests)
    assert requests[1].arrival == device.bus.cycle + 500
    runtime.run_until_done()
    for request, model in zip(requests, (one, other), strict=True):
        assert request.done() and request.state is caesura.State.DONE and request.exception() is None
        assert request.arrival <= request.started < request.ended
        np.testing.assert_array_equal(request.result()["out"], model(X))
    assert asyncio.run(_result(requests[0]))["out"].shape == (1, 64)


async def _result(request):
    return await request


def test_everything_can_be_read_after_the_end_however_it_came(device):
    models = [device.load(copy_image(TINY, name=name)) for name in "abc"]
    runtime = caesura.Runtime(device)
    well, badly, given_up = (
        runtime.submit(model, x) for model, x in zip(models, (X, X.astype(np.int8), X), strict=True)
    )
    given_up.cancel()
    runtime.run_until_done()
    for request in (well, badly, given_up):
        found = attributes(request)
        assert request.done() and found["ended"] is not None and not request.cancel()
        assert found["groups"] == [] or found["progress"] < 1
    assert (well.progress, well.error) == (1.0, None) and well.outputs is not None
    assert isinstance(badly.error, caesura.InputError) and badly.outputs is None
    with pytest.raises(caesura.RequestCancelled, match="request 2 was cancelled"):
        given_up.result()


def test_what_is_no_device_or_model_is_told(device):
    with pytest.raises(TypeError, match=r"needs a device, as caesura.open returns, not ModelBus"):
        caesura.Runtime(device.bus)
    with pytest.raises(TypeError, match=r"needs a loaded model, as Device.load returns, not Image"):
        caesura.Runtime(device).submit(copy_image(TINY), X)


def test_the_documented_example(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    exec(documented_code("docs/scheduling.md", "caesura.Runtime"), {})
    state, arrival, started, ended, _ = capsys.readouterr().out.split()
    assert state == "State.DONE" and int(arrival) <= int(started) < int(ended)
