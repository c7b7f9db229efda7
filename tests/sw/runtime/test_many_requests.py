"""What a request costs the host does not grow with the number of those that wait."""

import sys
from pathlib import Path

import numpy as np
import pytest

import sw
from hw.contract.params import preset
from sim.model.bus import ModelBus
from sw.driver import Device
from sw.runtime import Runtime
from tests.support.images import copy_image

TINY = preset("tiny")
SW = str(Path(sw.__path__[0]))
X = np.full((1, 8, 8), 20, np.float32)


class Counted(int):
    """A number that counts how often it is compared: requests are chosen by such numbers."""

    looks = 0

    def _counted(compare):
        def counting(self, other):
            Counted.looks += 1
            return compare(self, other)

        return counting

    __lt__, __le__ = _counted(int.__lt__), _counted(int.__le__)
    __gt__, __ge__ = _counted(int.__gt__), _counted(int.__ge__)
    __eq__, __hash__ = _counted(int.__eq__), int.__hash__


def work(count, models, **options):
    """Comparisons, and calls of functions of the driver and the run time, while so many requests are served."""
    device = Device(ModelBus(TINY))
    loaded = [device.load(copy_image(TINY)) for _ in range(models)]
    runtime, calls = Runtime(device, **options), 0
    soon, late = device.bus.cycle + 1, 10**12

    def profiled(frame, event, _):
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename.startswith(SW)

    Counted.looks = 0
    sys.setprofile(profiled)
    try:
        for i in range(count):
            runtime.submit(
                loaded[i % models], X, arrival=Counted(soon), priority=Counted(0), deadline=Counted(late + i)
            )
        runtime.run_until_done()
    finally:
        sys.setprofile(None)
    for request in runtime.requests:
        np.testing.assert_array_equal(request.result()["out"], X.reshape(1, 64))
    return Counted.looks, calls


@pytest.mark.parametrize("models", [1, 3])
@pytest.mark.parametrize("options", [{}, {"preemptive": True}], ids=["in turn", "preemptive"])
def test_the_work_for_a_request_does_not_grow_with_those_that_wait(models, options):
    few, many = work(60, models, **options), work(240, models, **options)
    for less, more in zip(few, many, strict=True):
        assert less and more <= 4 * 1.25 * less, (few, many)  # a heap of four times as many is two levels higher
