"""Counters of the DMAs on the real RTL: what a job is said to have moved is what its instructions move."""

import numpy as np
import pytest

from benchmarks.scenarios.rtl_long_operator import HARDWARE
from caesura.samples import random_samples
from compiler.compile import compile_model
from compiler.plan.options import Options
from hw.contract.isa import FORMATS, INSN_BYTES, Insn, Op
from hw.contract.params import preset
from sim.rtl import open_bus
from sw.driver import Device
from sw.runtime import Session
from tests.support.networks import DIGITS
from tests.support.preempt_images import smashing_image

TWO = preset(HARDWARE["preset"]).replace(**HARDWARE["params"]).replace(engines=2)
COUNTED = {Op.LD2: "ld2", Op.ST2: "st2", Op.LD1: "ld1", Op.ST1: "st1"}
LIMIT = 10_000_000


@pytest.fixture(scope="module")
def bus():
    bus = open_bus(TWO)
    yield bus
    bus.close()


@pytest.fixture(params=[0, 64, 200], ids=["no stalls", "stalls", "many stalls"])
def stalls(request, bus):
    bus.set_stalls(request.param + 1, request.param)
    yield request.param
    bus.set_stalls(1, 0)


def instructions(image, pc):
    """From ``pc`` to END."""
    while True:
        insn = Insn.decode(image.code[pc * INSN_BYTES : (pc + 1) * INSN_BYTES])
        if insn.op is Op.END:
            return
        yield insn
        pc += 1


def bytes_read(insn):
    """By the rule of ``hw.contract.isa``: of all runs, the bytes that are not padding."""
    f = {field.name: field.default for field in FORMATS[insn.op]} | insn.fields
    inside = (f["n2"], f["hi1"] - f["lo1"], f["hi0"] - f["lo0"], f["hi"] - f["lo"])
    most = (f["n2"], f["n1"] - f["lo1"], f["n0"] - f["lo0"], f["len"] - f["lo"])
    return int(np.prod([max(0, min(pair)) for pair in zip(inside, most, strict=True)]))


def moved(image, job):
    """Bytes by counter that the instructions of a job read."""
    result = dict.fromkeys(("prologue", *COUNTED.values()), 0)
    if job.prologue_pc is not None:
        result["prologue"] = sum(map(bytes_read, instructions(image, job.prologue_pc)))
    for insn in instructions(image, job.body_pc):
        if insn.op in COUNTED:
            result[COUNTED[insn.op]] += bytes_read(insn)
    return result


@pytest.mark.parametrize("engines", [1, 2])
@pytest.mark.parametrize("limit", [0, 40_000], ids=["all of LV2", "little of LV2"])
def test_a_job_counts_the_bytes_its_instructions_move(bus, stalls, engines, limit):
    image = compile_model(DIGITS, TWO, engines=engines, options=Options(lv2_limit=limit))
    device = Device(bus)
    _, stats = Session(device, device.load(image)).run(random_samples(image, 1, 5)[0])
    for result in stats.jobs:
        expected = moved(image, image.meta.jobs[result.job])
        assert {name: result.counters[f"{name}_bytes"] for name in expected} == expected
        traffic = result.traffic
        assert (traffic.ahead.bytes, traffic.loads.bytes) == (expected["prologue"], expected["ld2"])
        assert traffic.total.bytes == expected["prologue"] + expected["ld2"] + expected["st2"]
        for dma in (traffic.ahead, traffic.loads, traffic.stores):
            assert dma.stalled <= dma.busy
            assert dma.busy >= dma.bytes / TWO.dram_word
    whole = sum((layer.traffic.total.stalled for layer in stats.layers if layer.traffic), 0)
    assert whole == sum(result.traffic.total.stalled for result in stats.jobs)


def test_stalls_of_the_memory_show_as_stalled_cycles(bus):
    image = compile_model(DIGITS, TWO, engines=1, options=Options(lv2_limit="all"))
    device = Device(bus)
    session = Session(device, device.load(image))
    sample = random_samples(image, 1, 5)[0]
    seen = []
    for rate in (0, 64, 200):
        bus.set_stalls(7, rate)
        _, stats = session.run(sample)
        seen.append([sum(getattr(job.traffic.total, what) for job in stats.jobs) for what in ("stalled", "busy")])
    bus.set_stalls(1, 0)
    assert seen[0][0] < seen[1][0] < seen[2][0]
    assert seen[0][1] < seen[1][1] < seen[2][1]


def test_a_dump_counts_what_it_moves_as_its_own(bus):
    """Bytes of dumps and restores belong to the transfer, not to the jobs of the model."""
    device = Device(bus)
    image = compile_model(DIGITS, TWO, engines=1, options=Options(lv2_limit="all"))
    victim, urgent = device.load(image), device.load(smashing_image(TWO, engines=2))
    session = Session(device, victim)
    session.store(random_samples(image, 1, 5)[0])
    device.begin(victim, LIMIT)
    ids = device.submit(victim, range(len(image.meta.jobs)), limit=LIMIT)
    bus.advance(3000)
    suspension = device.suspend([0, 1], urgent)
    dump = device.admit(urgent)
    urgent.write_tensor("x", np.zeros((1, 8, 8), np.int8))
    device.begin(urgent, LIMIT)
    device.collect(device.submit(urgent, range(2), limit=LIMIT), LIMIT)
    restore = device.resume(suspension)
    results = device.collect(ids, LIMIT)
    device.settle()
    assert sum(part.bytes for part in dump.results) > 0
    for part in dump.results:
        assert part.traffic.stores.bytes == part.bytes
    assert sum(part.traffic.total.bytes for part in restore.results) == sum(part.bytes for part in restore.results)
    for result in (r for r in results if not r.resumed):
        expected = moved(image, image.meta.jobs[result.job])
        assert result.traffic.loads.bytes == expected["ld2"] and result.traffic.stores.bytes == expected["st2"]
