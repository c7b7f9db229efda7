"""Counters of completions on the model against the RTL: what MAC and VEC waited for, and the fetch of instructions."""

from collections import Counter
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.accuracy_cases import whole_networks
from compiler.compile import compile_model
from hw.contract.params import preset
from sim import backends
from sim.model.waiting import Stretches, united, without
from sim.simulators import open_simulator
from sw.driver import Device

TINY = preset("tiny")
NAMES = ["mac_waiting", "vec_waiting", "mac_empty", "fetch_stalled", "mac_starved"] + [
    f"{unit}_missing{kind}" for unit in ("mac", "vec") for kind in range(4)
]
spans = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=8)


def counted(image, backend) -> tuple[Counter, int]:
    """The counters of all jobs of an inference, and its cycles."""
    with closing(open_simulator(TINY, backend)) as bus:
        device, found = Device(bus), Counter()
        model = device.load(image)
        device.begin(model, 10**7)
        results = device.collect(device.submit(model, range(len(image.meta.jobs)), limit=10**7), 10**7)
        for result in results:
            found.update(result.counters)
        return found, sum(result.end - result.start for result in results)


@pytest.mark.parametrize("name", ["digits", "squeezenet_small"])
def test_what_units_waited_for(name):
    path = next(case for case in whole_networks(TINY) if case.name == name).path()
    image = compile_model(path, TINY, engines=1)
    rtl, cycles = counted(image, backends.DEFAULT_BACKEND)
    model, _ = counted(image, "model")
    for counter in NAMES:
        assert model[counter] == pytest.approx(rtl[counter], abs=0.05 * cycles), counter
    assert rtl["mac_starved"] and model["mac_starved"] and rtl["fetch_stalled"] and rtl["mac_missing2"]
    for unit in ("mac", "vec"):
        parts = sum(model[f"{unit}_missing{kind}"] for kind in range(4)) + model[f"{unit}_starved"]
        assert parts == model[f"{unit}_waiting"] > 0


def members(found) -> set[int]:
    return {cycle for begin, end in found for cycle in range(begin, end)}


@given(spans, spans, st.integers(0, 45), st.integers(0, 45))
def test_sets_of_cycles(some, others, begin, end):
    left = without(united(some), united(others))
    assert members(left) == members(some) - members(others)
    assert all(low < high for low, high in left)
    wanted = {cycle for cycle in members(left) if begin <= cycle < end}
    assert Stretches(left).within(begin, end) == len(wanted)
