"""What is no input of a model is told as such, as an error of the request or the call that brought it."""

from collections.abc import Mapping

import numpy as np
import pytest

from hw.contract.params import preset
from sim.model.bus import ModelBus
from sw.driver import Device
from sw.runtime import InputError, Runtime, Session
from tests.support.images import copy_image

TINY = preset("tiny")
X = np.full((1, 8, 8), 20, np.float32)


class Broken:
    def __array__(self, *_, **__):
        raise RuntimeError("no array today")


class Unreadable(Mapping):
    def __getitem__(self, name):
        raise OSError("gone")

    def __iter__(self):
        return iter(["x"])

    def __len__(self):
        return 1


BAD = {
    "ragged lists": ([[1.0, 2.0], [3.0]], "no array can be made of this list"),
    "None": (None, "None was given, expected an array of numbers"),
    "a list with None": ([[None] * 8] * 8, "dtype object"),
    "objects": (np.full((1, 8, 8), object()), "dtype object"),
    "text": (np.full((1, 8, 8), "7"), "expected an array of numbers"),
    "times": (np.zeros((1, 8, 8), "M8[s]"), "expected an array of numbers"),
    "records": (np.zeros((1, 8, 8), [("a", "f4")]), "expected an array of numbers"),
    "an object that breaks": (Broken(), "RuntimeError|no array today"),
    "another dtype": (X.astype(np.float64), "dtype float64, expected float32"),
    "complex numbers": (X.astype(np.complex64), "dtype complex64, expected float32"),
    "NaN where integers are stored": (np.full((1, 8, 8), np.nan, np.float32), "holds NaN"),
    "several entries": (np.zeros((3, 8, 8), np.float32), r"expected \[1, 8, 8\]: give 1 along the first axis"),
    "no entries": (np.zeros((0, 8, 8), np.float32), r"shape \[0, 8, 8\]"),
    "no dimensions": (np.float32(3), r"shape \[\], expected"),
    "another name": ({"y": X}, "'y' does not exist|is missing"),
    "a name that is none": ({3: X}, "is missing"),
    "a mapping that breaks": (Unreadable(), "cannot be read from this Unreadable"),
}


@pytest.mark.parametrize("case", BAD)
def test_it_is_an_error_of_its_request_and_the_others_are_served(case):
    value, message = BAD[case]
    device = Device(ModelBus(TINY))
    model = device.load(copy_image(TINY))
    runtime = Runtime(device)
    good = [runtime.submit(model, X)]
    bad = runtime.submit(model, value)
    good.append(runtime.submit(model, X))
    runtime.run_until_done()
    assert isinstance(bad.error, InputError)
    with pytest.raises(InputError, match=message):
        bad.result()
    for request in good:
        np.testing.assert_array_equal(request.result()["out"], X.reshape(1, 64))
    with pytest.raises(InputError, match=message):
        Session(device, model).run(value)
    np.testing.assert_array_equal(Session(device, model).run(X)[0]["out"], X.reshape(1, 64))


def test_nan_for_an_input_of_integers():
    device = Device(ModelBus(TINY))
    image = copy_image(TINY)
    port = image.meta.inputs[0]
    port.quantise, port.dtype = False, "int8"
    session = Session(device, device.load(image))
    with pytest.raises(InputError, match="holds NaN, which no int8 stands for"):
        session.run(np.full((1, 8, 8), np.nan, np.float32))
