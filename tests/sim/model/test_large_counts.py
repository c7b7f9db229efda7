"""Instructions with counts that no compiler writes: the fast model and its memory survive them, as the device does."""

import tracemalloc

import numpy as np
import pytest

from hw.contract.bus import HostCosts
from hw.contract.isa import Insn, Op
from hw.contract.job import Fault
from hw.contract.params import preset
from sim.cost.exact.copies import COPY_FIELDS, FEW_BURSTS, bus_copy, copy_steps
from sim.cost.exact.excerpt import MOST as MOST_WALKED
from sim.model.bus import ModelBus
from sim.rtl import open_bus
from tests.hw.soc_bench import END, SocBench, copy

TINY = preset("tiny")
MOST = 0xFFFF
LIMIT = 20_000  #: cycles of a job
MEGABYTES = 64 << 20
LOOPS = {"n2": MOST, "n1": MOST, "n0": MOST}
ENDLESS = {
    "LD2": copy(Op.LD2, len=64, **LOOPS, hi1=MOST, hi0=MOST),
    "LD2 of which little is read": copy(Op.LD2, len=64, **LOOPS),
    "LD2 of long runs": copy(Op.LD2, len=4096, **LOOPS, hi1=MOST, hi0=MOST),
    "ST2": copy(Op.ST2, len=64, **LOOPS, hi1=MOST, hi0=MOST),
    "LD1": copy(Op.LD1, len=64, **LOOPS, hi1=MOST, hi0=MOST),
    "ST1 of which nothing is read": copy(Op.ST1, len=64, **LOOPS, hi1=0, hi0=0),
    "LD0": copy(Op.LD0, len=4, **LOOPS, hi1=MOST, hi0=MOST, pe_mask=1, space=0),
    "VEC": Insn(
        Op.VEC, {"op": 0, "b_en": 1, "n2": 4095, "n1": 4095, "n0": 4095, "k1": 1, "k0": 1, "p": 1024, "d": 512}
    ),
    "MAC": Insn(Op.MAC, {"n2": 1, "n1": 1, "n0": 1, "p1": 4095, "p0": 8}),
}


def _jobs(bus, insn):
    """A job of one such instruction, a reset, and one that copies: how they end, and how the engine stands between."""
    bench = SocBench(TINY, bus=bus)
    bench.setup()
    bench.job([insn, END], cycle_limit=LIMIT)
    bench.ring()
    bench.wait(1, limit=4 * LIMIT)
    first, state = bench.completion(0), bench.read("STATUS") & 0xFF
    bench.write("CONTROL", 2)
    bus.advance(20_000)
    bench.setup()
    bus.write_mem(bench.data(), bytes(range(64)))  # a store that fails may have written here
    bench.job([copy(Op.LD2, signal=1, len=64), copy(Op.ST2, wait=1, len=64, dst=128), END], cycle_limit=LIMIT)
    bench.ring()
    bench.wait(1, limit=LIMIT)
    return first["status"], first["pc"], state, bench.completion(0)["status"], bus.read_mem(bench.data() + 128, 64)


@pytest.mark.parametrize("what", ENDLESS)
@pytest.mark.parametrize("data", [True, False])
def test_an_endless_instruction_ends_with_its_job_alone(what, data):
    tracemalloc.start()
    with ModelBus(TINY, costs=HostCosts.free(), data=data) as bus:
        tracemalloc.reset_peak()
        status, pc, _, then, copied = _jobs(bus, ENDLESS[what])
        peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MEGABYTES
    if what != "MAC":  # that one ends in time
        assert (status, pc) == (Fault.CYCLE_LIMIT, 1)
    assert then == 0
    assert not data or copied == bytes(range(64))


@pytest.mark.parametrize("what", ["LD2", "ST2", "LD1", "ST1 of which nothing is read", "VEC"])
def test_the_rtl_ends_it_the_same_way(what):
    with open_bus(TINY, costs=HostCosts.free()) as rtl, ModelBus(TINY, costs=HostCosts.free()) as model:
        assert _jobs(model, ENDLESS[what]) == _jobs(rtl, ENDLESS[what])


def test_an_excerpt_is_about_the_whole():
    """Copies that are just too long to be walked through, against shorter ones of the same kind."""
    fields = dict.fromkeys(COPY_FIELDS, 0) | {"len": 40, "hi": 40, "n2": 300, "n1": 20, "n0": 10, "hi1": 20, "hi0": 10}
    fields |= {"dst": 3, "src_s0": 40, "dst_s0": 56, "src_s1": 400}
    assert MOST_WALKED > 20 * 200
    kinds = []
    for count in (20, 300, 3000, 30000):
        fields["n2"] = count
        steps, work = copy_steps(16, *fields.values()), bus_copy(16, 256, True, *fields.values())
        assert steps.runs == count * 200
        assert len(work.bursts) > FEW_BURSTS and work.bursts[len(work.bursts) - 1].beats and len(work.bursts[5:9]) == 4
        kinds.append((steps.steps / steps.runs, steps.late / steps.runs, len(work.bursts) / steps.runs))
    for kind in kinds[1:]:
        np.testing.assert_allclose(kind, kinds[0], rtol=0.01)


def test_a_long_copy_does_what_it_does_on_the_rtl():
    """More runs than are walked through, in time: all of it is carried out, in about as many cycles."""
    insn = copy(Op.LD2, len=16, n2=2, n1=16, n0=1024, src_s0=16, dst_s0=0, hi1=16, hi0=1024, src_s1=0)
    found = []
    for bus in (open_bus(TINY, costs=HostCosts.free()), ModelBus(TINY, costs=HostCosts.free())):
        with bus:
            bench = SocBench(TINY, bus=bus)
            bench.setup()
            bus.write_mem(bench.data(), np.arange(0x4000, dtype=np.uint32).astype(np.uint8).tobytes())
            body = [Insn(Op.LD2, insn.fields | {"signal": 1}), copy(Op.ST2, wait=1, len=16, dst=64), END]
            bench.job(body)
            bench.ring()
            bench.wait(1, limit=8_000_000)
            entry = bench.completion(0)
            found.append((entry["status"], bus.read_mem(bench.data() + 64, 16), entry["end"] - entry["start"]))
    assert found[0][:2] == found[1][:2] == (0, found[0][1])
    assert abs(found[1][2] / found[0][2] - 1) < 0.03


def test_a_long_fill_behind_a_short_load_ends_and_lets_the_next_load_in():
    """Of 80,000 runs only the first reads: one burst, and LD2 is free for the next job's load when the fill is over."""
    insn = copy(Op.LD2, len=16, n1=8, n0=10_000, src_s0=16, dst_s0=0, hi1=1, hi0=1)
    fields = dict.fromkeys(COPY_FIELDS, 0) | {"n2": 1} | insn.fields
    work = bus_copy(16, 256, True, *(fields[name] for name in COPY_FIELDS))
    assert len(work.bursts) == 1 and work.lead <= 1
    found = []
    for bus in (open_bus(TINY, costs=HostCosts.free()), ModelBus(TINY, costs=HostCosts.free())):
        with bus:
            bench = SocBench(TINY, bus=bus)
            bench.setup()
            for _ in range(2):
                bench.job([Insn(Op.LD2, insn.fields | {"signal": 1}), copy(Op.ST2, wait=1, len=16, dst=64), END])
            bench.ring()
            bench.wait(2, limit=400_000)
            entries = [bench.completion(number) for number in range(2)]
            found.append((entries[0]["status"], entries[1]["status"], entries[1]["end"]))
    assert found[0][:2] == found[1][:2] == (0, 0)
    assert abs(found[1][2] / found[0][2] - 1) < 0.03
