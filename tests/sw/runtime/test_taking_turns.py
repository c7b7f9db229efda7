"""Whoever loads models that take turns can ask who claims what, and what mends it: what is told does mend it."""

import re

import numpy as np
import pytest

import caesura
from compiler.plan.options import ALL_LV2, Options
from examples.digits import MODEL
from hw.contract.params import preset
from sw.runtime import Runtime

TINY = preset("tiny")


def image(limit, name):
    made = caesura.compile(MODEL, TINY, options=Options(lv2_limit=limit))
    made.meta.model = name
    return made


def told(*images):
    with caesura.open(TINY, "model") as device:
        for one in images:
            device.load(one)
        assert Runtime(device).taking_turns == device.taking_turns
        return device.taking_turns


def mended(text):
    found = re.search(r"compile (?:each of the \d|(\w+)) with --lv2-limit (\d+)", text)
    assert found is not None
    return found[1], int(found[2])


def test_default_claims_lie_side_by_side():
    assert told(image(None, "a"), image(None, "b")) is None


def test_the_largest_makes_room():
    whole, small = image(ALL_LV2, "whole"), image(40_000, "small")
    text = told(whole, small)
    assert text.startswith("models take turns: of the 131,072 bytes of LV2 claims whole 131,072, small 40,000; ")
    name, limit = mended(text)
    assert name == "whole" and limit == 131_072 - 40_000 and "or without that flag if it had one" in text
    assert told(image(limit, "whole"), small) is None


def test_all_make_room_where_one_cannot():
    images = [image(ALL_LV2, name) for name in "abc"]
    name, limit = mended(told(*images))
    assert name is None and told(*(image(limit, name) for name in "abc")) is None


def test_all_are_named_where_two_fit_but_not_three():
    text = told(image(60_000, "a"), image(60_000, "b"), image(60_000, "c"))
    assert re.search(r"claims a 60,000, b 60,000, c 60,000;", text)


def test_a_hole_is_no_reason():
    """The last one has no window of its own, and finds one when it runs."""
    with caesura.open(TINY, "model") as device:
        kept = [device.load(image(limit, name)) for limit, name in ((40_000, "a"), (40_000, "b"), (40_000, "c"))]
        device.unload(kept[1])
        device.load(image(48_000, "d"))
        assert Runtime(device).taking_turns is None


@pytest.mark.parametrize("preemptive", [False, True])
def test_it_can_be_asked_while_requests_run(preemptive):
    with caesura.open(TINY, "model") as device:
        model = device.load(image(None, "a"))
        runtime = Runtime(device, preemptive=preemptive)
        assert runtime.taking_turns is None
        x = {port.name: np.zeros(port.shape, port.dtype) for port in model.image.meta.inputs}
        runtime.submit(model, x).result()
        assert runtime.taking_turns is None
