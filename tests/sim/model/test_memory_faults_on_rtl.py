"""Errors, freezes and stalls of the memory on the fast model: what they do is what they do on the RTL."""

import random

import pytest

from hw.contract.bus import HostCosts
from hw.contract.isa import Op
from hw.contract.job import FaultUnit
from hw.contract.params import preset
from hw.contract.regs import EngineState
from sim.dram import DramFault
from sim.model.bus import ModelBus
from sim.rtl import open_bus
from tests.hw.soc_bench import CODE, CPL, DATA, END, ENGINE_MEMORY, SocBench, copy

PARAMS = preset("tiny").replace(name="tiny2", engines=2)
JOBS = 3
TOLD = ("job_id", "status", "unit", "pc", "address", "index")
OUTPUTS, LONGEST = 0x2000, 0x600
#: Rings, completions, code, what is loaded, what is stored.
PARTS = ((0, 0x800), (CPL, 0x800), (CODE, 0x800), (DATA, OUTPUTS), (DATA + OUTPUTS, OUTPUTS))


def buses():
    return open_bus(PARAMS, costs=HostCosts.free()), ModelBus(PARAMS, costs=HostCosts.free())


def prepared(bus, rng) -> SocBench:
    """Jobs on both engines, each with loads in its prologue and its body, and a store."""
    bench = SocBench(PARAMS, bus=bus)
    for engine in range(2):
        bench.setup(engine)
    queue(bench, rng)
    return bench


def queue(bench, rng) -> None:
    for engine in range(2):
        bench.code[engine] = 0
        there = bytes((7 * i + engine) & 255 for i in range(OUTPUTS))
        bench.bus.write_mem(bench.data(engine), there + bytes(OUTPUTS))
        for number in range(JOBS):
            size = rng.choice((512, 1024, LONGEST))
            load = [copy(Op.LD2, len=size, dst=2048), copy(Op.LD2, len=512, dst=3072), END]
            store = copy(Op.ST2, wait=1, len=size, dst=OUTPUTS + LONGEST * number, signal=2)
            body = [copy(Op.LD2, len=size, signal=1), store, copy(Op.LD2, len=64, src=size, wait=2), END]
            bench.job(body, load, engine=engine, window_after=1)


def ring(bench) -> None:
    for engine in range(2):
        bench.ring(engine)


def ended(bench) -> None:
    """Run until each engine has done its jobs, or stands."""
    for _ in range(800):
        if all(
            bench.read("RING_HEAD", e) == JOBS or bench.read("STATUS", e) & 15 == EngineState.FAULT for e in range(2)
        ):
            return
        bench.bus.advance(50)
    raise AssertionError("neither done nor failed")


def verdict(bench) -> list:
    """State, fault and completions of each engine."""
    found: list = []
    for e in range(2):
        fault = [bench.read(name, e) for name in ("FAULT_CODE", "FAULT_JOB", "FAULT_PC", "FAULT_ADDR")]
        jobs = [[bench.completion(i, e)[name] for name in TOLD] for i in range(bench.read("RING_HEAD", e))]
        found.append((bench.read("STATUS", e) & 15, fault, jobs))
    return found


def reset(bench) -> None:
    for engine in range(2):
        bench.write("CONTROL", 2, engine)
    for _ in range(500):
        if all(bench.read("STATUS", e) & 15 == EngineState.DISABLED for e in range(2)):
            return
        bench.bus.advance(20)
    raise AssertionError("an engine was not reset")


def memory(bench, engine: int) -> tuple[bytes, bytes]:
    """All of one engine but its completions, which tell times."""
    base = bench.base(engine)
    return bench.bus.read_mem(base, CPL), bench.bus.read_mem(base + CODE, ENGINE_MEMORY - CODE)


def last_ends(bench) -> list[int]:
    return [bench.completion(JOBS - 1, engine)["end"] for engine in range(2)]


def outputs(bench) -> list[bytes]:
    return [bench.bus.read_mem(bench.data(e) + OUTPUTS, OUTPUTS) for e in range(2)]


def struck(bus, seed: int):
    """What one fault does: how the jobs end, and the memory of engines that go on; then what the next jobs compute."""
    rng = random.Random(seed)
    with bus:
        bench = prepared(bus, rng)
        offset, size = PARTS[seed % len(PARTS)]
        kind = rng.choice((DramFault.SLVERR, DramFault.DECERR))
        ring(bench)
        bus.set_dram_fault(
            kind, bench.base(seed & 1) + offset, size, after=rng.randrange(1500), cycles=rng.choice((10, 300, 20_000))
        )
        ended(bench)
        found = verdict(bench)
        left = [memory(bench, e) for e in range(2) if found[e][0] != EngineState.FAULT]
        times = [bench.completion(i, e)["end"] for e in range(2) for i in range(bench.read("RING_HEAD", e))]
        bus.set_dram_fault(DramFault.NONE)
        reset(bench)
        for engine in range(2):
            bench.setup(engine)
        queue(bench, rng)
        ring(bench)
        ended(bench)
        return (found, left, verdict(bench), outputs(bench)), times


@pytest.fixture(scope="module")
def sample():
    """For each seed what the RTL says, and what the model says."""
    return [[struck(bus, seed) for bus in buses()] for seed in range(40)]


def test_errors_end_the_same_job_for_the_same_reason(sample):
    for seed, (rtl, model) in enumerate(sample):
        assert model[0] == rtl[0], seed


def test_jobs_under_faults_end_when_they_do_on_the_rtl(sample):
    off = [(got - told) / told for rtl, model in sample for told, got in zip(rtl[1], model[1], strict=True)]
    assert max(map(abs, off)) < 0.12 and abs(sum(off)) / len(off) < 0.02


def test_the_sample_strikes_all_that_reads_and_writes(sample):
    """Faults of loads and stores, of code of bodies and prologues, and of rings; and some that strike nobody."""
    found = [verdicts for _, ((verdicts, *_), _) in sample]
    units = {fault[0] >> 8 for verdicts in found for state, fault, _ in verdicts if state == EngineState.FAULT}
    assert units >= {FaultUnit.LD2, FaultUnit.ST2, FaultUnit.EXECUTOR, FaultUnit.RING}
    assert any(all(state != EngineState.FAULT for state, _, _ in verdicts) for verdicts in found)


@pytest.mark.parametrize("after", [0, 137, 411, 959, 1233])
@pytest.mark.parametrize("early", [False, True])
def test_a_frozen_memory_goes_on_when_it_thaws(after, early):
    found = []
    for bus in buses():
        with bus:
            bench = prepared(bus, random.Random(after))
            ring(bench)
            bus.set_dram_fault(DramFault.FREEZE, after=after, cycles=300_000 if early else 3000)
            if early:
                bus.advance(5000)
                bus.set_dram_fault(DramFault.NONE)
            ended(bench)
            found.append((verdict(bench), outputs(bench), last_ends(bench)))
    rtl, model = found
    assert model[:2] == rtl[:2]
    assert min(model[2]) > 3000 and model[2] == pytest.approx(rtl[2], rel=0.06)


@pytest.mark.parametrize("after", [60, 333, 606, 879])
def test_a_reset_under_a_memory_that_never_answers_is_hung_until_it_does(after):
    """The other engine, whose jobs stood still as well, goes on behind it."""
    found = []
    for bus in buses():
        with bus:
            bench = prepared(bus, random.Random(after))
            ring(bench)
            bus.set_dram_fault(DramFault.FREEZE, after=after, cycles=1_000_000)
            bus.advance(2000)
            bench.write("CONTROL", 2)
            states = []
            for cycles in (100, 130_880, 200, 100_000):
                bus.advance(cycles)
                states.append(bench.read("STATUS") & 15)
            bus.set_dram_fault(DramFault.NONE)
            bus.advance(400)
            states.append(bench.read("STATUS") & 15)
            bench.wait(JOBS, 1, limit=20_000)
            bench.setup()
            bench.code[0] = 0
            bench.job([copy(Op.LD2, len=512, signal=1), copy(Op.ST2, wait=1, len=512, dst=0x3000), END])
            bench.ring()
            bench.wait(1)
            statuses = [bench.completion(i, 1)["status"] for i in range(JOBS)]
            found.append((states, bench.completion(0)["status"], bus.read_mem(bench.data() + 0x3000, 512), statuses))
    assert found[0] == found[1]
    hung, resetting = EngineState.HUNG, EngineState.RESETTING
    assert found[0][0] == [resetting, resetting, hung, hung, EngineState.DISABLED]


@pytest.mark.parametrize("after", [200, 700])
def test_a_body_that_waits_for_a_frozen_memory_meets_its_cycle_limit(after):
    found = []
    for bus in buses():
        with bus:
            bench = SocBench(PARAMS, bus=bus)
            bench.setup()
            bench.bus.write_mem(bench.data(), bytes(range(256)) * 8)
            bench.job([copy(Op.LD2, len=2048), copy(Op.LD2, len=2048), END], cycle_limit=3000)
            bench.ring()
            bus.set_dram_fault(DramFault.FREEZE, after=after, cycles=20_000)
            bench.wait(1, limit=40_000)
            entry = bench.completion(0)
            found.append([entry[name] for name in ("status", "unit")])
            assert entry["end"] > 20_000 or after == 700
    assert found[0] == found[1]


@pytest.mark.parametrize(("rate", "off"), [(32, 0.05), (96, 0.15)])
def test_stalls_are_drawn_as_on_the_rtl(rate, off):
    """The same channels stall in the same cycles; that reads and writes fill each other's gaps is not followed."""
    ends: list[list[int]] = []
    for bus in buses():
        with bus:
            bench = prepared(bus, random.Random(rate))
            bus.set_stalls(rate + 1, rate)
            ring(bench)
            ended(bench)
            ends.append(last_ends(bench))
            assert all(state == EngineState.IDLE for state, _, _ in verdict(bench))
    assert ends[1] == pytest.approx(ends[0], rel=off)
    with pytest.raises(ValueError, match="seed must be"):
        ModelBus(PARAMS).set_stalls(0, 5)


def test_a_descriptor_that_is_refused_still_says_whose_it_was():
    found = []
    for bus in buses():
        with bus:
            bench = SocBench(PARAMS, bus=bus)
            bench.setup()
            bench.job([END], magic=1, signal_id=3, tag=77, flags=8)
            bench.ring()
            bench.wait(1)
            found.append([bench.completion(0)[name] for name in (*TOLD, "tag")])
    assert found[0] == found[1] and found[1][0] == 0x100
