"""Counters of completions on the model against the RTL: what MAC and VEC waited for, and the fetch of instructions."""

from collections import Counter
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, strategies as st

from benchmarks.accuracy_cases import whole_networks
from compiler.compile import compile_model
from hw.contract.isa import Insn, Op, Unit
from hw.contract.job import COUNTERS, SEQUENCER_COUNTERS
from hw.contract.params import preset
from sim import backends
from sim.cost.exact.program import ProgramTable
from sim.model import completion
from sim.model.completion import BodyCounters, Spans, body_counters
from sim.model.jobs import no_job
from sim.model.pipes import MacPipe
from sim.model.queues import QueueModel, SemaphoreModel
from sim.model.waiting import CycleRanges, united, without
from sim.simulators import open_simulator
from sw.driver import Device

TINY = preset("tiny")
NAMES = [name for name, _ in SEQUENCER_COUNTERS] + [
    name for name, _ in COUNTERS if any(what in name for what in ("_waiting", "_starved", "_missing"))
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


def test_counters_of_bodies_that_go_alike_are_worked_out_once(monkeypatch):
    """Whenever they are looked at, also while a body runs."""
    path = next(case for case in whole_networks(TINY) if case.name == "digits").path()
    image, counted_by = compile_model(path, TINY, engines=1), BodyCounters.counted
    worked_out, asked = [], []

    def counting(*what):
        worked_out.append(what)
        return body_counters(*what)

    def compared(self, *what):
        asked.append(what)
        found = counted_by(self, *what)
        assert found == body_counters(*what)
        return found

    monkeypatch.setattr(completion, "body_counters", counting)
    monkeypatch.setattr(BodyCounters, "counted", compared)
    with closing(open_simulator(TINY, "model")) as bus:
        device = Device(bus)
        model = device.load(image)
        for inference in range(48):
            device.begin(model, 10**7)
            ids = device.submit(model, range(len(image.meta.jobs)), limit=10**7)
            if inference == 47:
                assert 2 * len(worked_out) < len(asked)
                device.counters(0)
                bus.advance(97)
                device.counters(0)
            device.collect(ids, 10**7)


def test_counters_are_those_of_the_code_as_it_is_now():
    counters, job, spans = BodyCounters(), no_job(), Spans([], [], [])
    job.times["start"] = 10
    memory = np.zeros(128, np.uint8)
    program = ProgramTable(memory, TINY)
    queues = [QueueModel(unit, SemaphoreModel(32), program, MacPipe(8)) for unit in Unit]
    load = queues[Unit.LD1]
    for times, at in ((load.pcs, 0), (load.issued, 12), (load.granted, 13), (load.taken, 14), (load.done, 30)):
        times.append(at)
    for length in (64, 128):
        fields = {"src_seg": 6, "len": length, "hi": length, "hi1": 1, "hi0": 1}
        memory[:64] = np.frombuffer(Insn(Op.LD1, fields).encode(), np.uint8)
        program.forget(0)
        program.decode(0, 1)
        assert counters.counted(queues, program, job, spans, 40)["ld1_bytes"] == length


def members(found) -> set[int]:
    return {cycle for begin, end in found for cycle in range(begin, end)}


@given(spans, spans, st.integers(0, 45), st.integers(0, 45))
def test_sets_of_cycles(some, others, begin, end):
    left = without(united(some), united(others))
    assert members(left) == members(some) - members(others)
    assert all(low < high for low, high in left)
    wanted = {cycle for cycle in members(left) if begin <= cycle < end}
    assert CycleRanges(left).within(begin, end) == len(wanted)
