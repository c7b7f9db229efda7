"""Use after the end is told, and what a run time left that nobody holds any more is in nobody's way."""

import numpy as np
import pytest

import caesura
from hw.contract.params import preset
from sw.driver import Device, DriverError
from sw.runtime import Mechanism, RequestCancelled, Runtime, Session
from tests.support.fake_soc import FakeSoc
from tests.support.images import copy_image
from tests.support.preempt_images import smashing_image, walking_image
from tests.support.sampled import sampled

TINY = preset("tiny")
X = np.full((1, 8, 8), 20, np.float32)


def check(outputs):
    np.testing.assert_array_equal(outputs["out"], X.reshape(1, 64))


# -- closed --------------------------------------------------------------------------------------------------
USES = {
    "load": lambda device, model, runtime, session, request: device.load(copy_image(TINY)),
    "unload": lambda device, model, runtime, session, request: device.unload(model),
    "run": lambda device, model, runtime, session, request: session.run(X),
    "submit": lambda device, model, runtime, session, request: runtime.submit(model, X),
    "step": lambda device, model, runtime, session, request: runtime.step(),
    "run until done": lambda device, model, runtime, session, request: runtime.run_until_done(),
    "result": lambda device, model, runtime, session, request: request.result(),
    "cancel": lambda device, model, runtime, session, request: request.cancel(),
}


@pytest.mark.parametrize("use", USES)
def test_every_use_of_a_closed_device_is_told(use):
    device = Device(FakeSoc(TINY))
    model = device.load(copy_image(TINY))
    runtime, session = Runtime(device), Session(device, model)
    request = runtime.submit(model, X)
    device.close()
    device.close()
    with pytest.raises(DriverError, match="this device was closed: open another"):
        USES[use](device, model, runtime, session, request)
    runtime.close()
    assert request.done()


def test_the_public_device_and_model_after_close():
    with caesura.open(TINY, "model") as device:
        model = device.load(copy_image(TINY))
        check(model.run(X)[0])
    for use in (lambda: model(X), lambda: device.load(copy_image(TINY)), lambda: device.unload(model)):
        with pytest.raises(DriverError, match="this device was closed"):
            use()


def test_a_device_is_not_closed_under_a_call_that_uses_it():
    soc = FakeSoc(TINY)
    device, told = Device(soc), []
    session = Session(device, device.load(copy_image(TINY)))

    def inject(engine, insn):
        with pytest.raises(DriverError, match="in use by the call that closes it"):
            device.close()
        told.append(insn)

    soc.inject = inject
    check(session.run(X)[0])
    assert told and not soc.closed


@pytest.mark.parametrize("turns", range(7))
def test_a_run_time_that_is_closed_cancels_what_it_has(turns):
    device = Device(FakeSoc(TINY))
    long, urgent = device.load(walking_image(TINY, jobs=12)), device.load(smashing_image(TINY))
    with Runtime(device, preemptive=True, rule=lambda situation: Mechanism.DUMP) as runtime:
        requests = [runtime.submit(long, X), runtime.submit(long, X)]
        requests.append(runtime.submit(urgent, X, priority=1, arrival=device.bus.cycle + 2000))
        for _ in range(turns):
            runtime.step()
        ended = [request for request in requests if request.done()]
    left = [request for request in requests if request not in ended]
    assert left and all(isinstance(request.error, RequestCancelled) for request in left)
    with pytest.raises(DriverError, match="this run time was closed: open another"):
        runtime.submit(long, X)
    assert not device.outstanding and not device.suspensions and not long.users and not urgent.users
    for model in (long, urgent):
        assert Runtime(device).submit(model, X).result()
        device.unload(model)


def test_a_run_time_is_not_closed_within_its_turn():
    device, told = Device(FakeSoc(TINY)), []

    def on_end(request):
        with pytest.raises(DriverError, match="in a turn already"):
            runtime.close()
        told.append(request)

    runtime = Runtime(device, on_end=on_end)
    check(runtime.submit(device.load(copy_image(TINY)), X).result())
    assert told


# -- abandoned -----------------------------------------------------------------------------------------------
def abandon(device, models, turns):
    """A run time that nobody holds any more, and that was at work."""
    runtime = Runtime(device, preemptive=True, rule=lambda situation: Mechanism.DUMP)
    for i, model in enumerate(models):
        runtime.submit(model, X, priority=i, arrival=device.bus.cycle + 2000 * i)
    for _ in range(turns):
        runtime.step()


@pytest.mark.parametrize("turns", sampled(range(8), 5))
@pytest.mark.parametrize("then", ["run time", "session", "unload"])
def test_what_an_abandoned_run_time_left_is_dropped(turns, then):
    device = Device(FakeSoc(TINY))
    models = [device.load(walking_image(TINY, jobs=12)), device.load(smashing_image(TINY))]
    abandon(device, models, turns)
    for model in models:
        if then == "run time":
            assert Runtime(device).submit(model, X).result()
        elif then == "session":
            assert Session(device, model).run(X)[0]
        else:
            device.unload(model)
    assert not device.outstanding and not device.suspensions and not any(model.users for model in models)


def test_one_whose_creator_raised():
    device = Device(FakeSoc(TINY))
    model = device.load(copy_image(TINY))

    def creator():
        Runtime(device).submit(model, X)
        raise OSError("of the creator")

    with pytest.raises(OSError, match="creator"):
        creator()
    check(Session(device, model).run(X)[0])
    with pytest.raises(ValueError, match="nonsense"):
        Runtime(device, "nonsense")
    check(Runtime(device).submit(model, X).result())


def test_one_whose_request_is_held_goes_on():
    device = Device(FakeSoc(TINY))
    model = device.load(copy_image(TINY))
    request = Runtime(device).submit(model, X)
    with pytest.raises(DriverError, match="wait until it is done, close it, or open another device"):
        Session(device, model).run(X)
    check(request.result())
