"""One device has one owner: others are refused, and nobody gets the result of another."""

import threading

import numpy as np
import pytest

from hw.contract.params import preset
from sw.driver import Device, DriverError
from sw.runtime import Runtime, Session
from tests.support.fake_soc import FakeSoc
from tests.support.images import copy_image

TINY = preset("tiny")
X, Y = np.full((1, 8, 8), 20, np.float32), np.full((1, 8, 8), -7, np.float32)


def test_two_run_times_with_requests_are_refused_and_one_after_the_other_works():
    device = Device(FakeSoc(TINY))
    model = device.load(copy_image(TINY))
    first, second = Runtime(device), Runtime(device)
    mine = first.submit(model, X)
    with pytest.raises(DriverError, match="a run time with requests that have not ended uses this device"):
        second.submit(model, Y)
    np.testing.assert_array_equal(mine.result()["out"], X.reshape(1, 64))
    np.testing.assert_array_equal(second.submit(model, Y).result()["out"], Y.reshape(1, 64))


def test_a_session_beside_a_run_time_is_refused_and_stores_nothing():
    device = Device(FakeSoc(TINY))
    model = device.load(copy_image(TINY))
    runtime, session = Runtime(device), Session(device, model)
    request = runtime.submit(model, X)
    with pytest.raises(DriverError, match="a session of model 'copy' cannot"):
        session.run(Y)
    np.testing.assert_array_equal(request.result()["out"], X.reshape(1, 64))
    np.testing.assert_array_equal(session.run(Y)[0]["out"], Y.reshape(1, 64))


def test_a_run_inside_a_run_is_refused():
    soc = FakeSoc(TINY)
    device = Device(soc)
    session = Session(device, device.load(copy_image(TINY)))
    refused = []

    def inject(engine, insn):
        with pytest.raises(DriverError, match="uses this device"):
            session.run(Y)
        refused.append(insn)

    soc.inject = inject
    np.testing.assert_array_equal(session.run(X)[0]["out"], X.reshape(1, 64))
    assert refused


@pytest.mark.parametrize("use", ["submit", "step", "run", "load", "unload", "cancel"])
def test_a_second_thread_is_refused(use):
    soc = FakeSoc(TINY)
    device = Device(soc)
    model = device.load(copy_image(TINY))
    runtime, errors = Runtime(device), []
    calls = {
        "submit": lambda: runtime.submit(model, Y),
        "step": runtime.step,
        "load": lambda: device.load(copy_image(TINY)),
        "unload": lambda: device.unload(model),
        "cancel": lambda: request.cancel(),
        "run": lambda: Session(device, model).run(Y),
    }

    def other():
        try:
            calls[use]()
        except DriverError as error:
            errors.append(str(error))

    def inject(engine, insn):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    soc.inject = inject
    request = runtime.submit(model, X)
    np.testing.assert_array_equal(request.result()["out"], X.reshape(1, 64))
    assert errors and all("another thread uses this device" in error for error in errors)
    assert len(runtime.requests) == 1


def test_threads_one_after_the_other_work():
    device = Device(FakeSoc(TINY))
    runtime, model = Runtime(device), device.load(copy_image(TINY))
    outputs = []
    for _ in range(3):
        thread = threading.Thread(target=lambda: outputs.append(runtime.submit(model, X).result()["out"]))
        thread.start()
        thread.join()
    assert len(outputs) == 3


def test_a_second_driver_of_a_bus_is_refused_or_takes_it_over():
    soc = FakeSoc(TINY)
    first = Device(soc)
    model = first.load(copy_image(TINY))
    with pytest.raises(DriverError, match="this bus has a driver already, with 1 models"):
        Device(soc)
    first.unload(model)
    second = Device(soc)
    with pytest.raises(DriverError, match="another driver was opened for this bus"):
        first.load(copy_image(TINY))
    second.load(copy_image(TINY))
