import random

import pytest

from hw.contract.formats import format_bits
from hw.contract.isa import FORMATS, INSN_BITS, INSN_BYTES, Insn, Op, Unit
from hw.contract.job import COUNTERS, Fault, FaultUnit, JobFlag
from hw.contract.regs import EngineState
from tests.hw.control.bench import CODE, CPL, END, PARAMS, RING, ControlBench, insn
from tests.support.raw_insns import with_field

COMPUTE = (Op.LD1, Op.LD0, Op.MAC, Op.VEC, Op.ST1)


def random_program(rng: random.Random, length: int) -> list[Insn]:
    """A legal program: every wait is satisfied by an earlier signal, all semaphores end at zero.

    Semaphore s is waited for by one unit only, so nobody can take what was meant for another.
    """
    consumer = {s: COMPUTE[s % len(COMPUTE)] for s in range(PARAMS.semaphores)}
    counts = dict.fromkeys(consumer, 0)
    program = []
    for _ in range(length):
        op = rng.choice(COMPUTE)
        waits = [s for s, count in counts.items() if count and consumer[s] == op and rng.random() < 0.7]
        signals = [s for s in range(PARAMS.semaphores) if rng.random() < 0.04]
        for s in waits:
            counts[s] -= 1
        for s in signals:
            counts[s] += 1
        program.append(insn(op, waits, signals))
    for s, count in counts.items():
        program += [insn(consumer[s], wait=(s,))] * count
    return program


def check_semaphores(order: list, program: list[Insn]) -> None:
    """Replay starts and ends: no instruction may start before its semaphores were signalled."""
    counts = [0] * 32
    for what, _, pc in order:
        field = "wait" if what == "start" else "signal"
        for s in range(32):
            if program[pc][field] >> s & 1:
                counts[s] += 1 if what == "done" else -1
                assert counts[s] >= 0, f"PC {pc} started before semaphore {s} was signalled"


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 2))])
def test_random_bodies_run_in_order_under_stalls(seed):
    rng = random.Random(seed)
    bench = ControlBench(seed=seed, stall=0.2 * seed, latency=(1, 25))
    programs = [random_program(rng, 25) for _ in range(2)]
    for program in programs:
        bench.job(*program, END)

    async def testbench(ctx):
        await bench.enable(ctx)
        await bench.retired(ctx, len(programs))

    bench.run(testbench)
    flat = [i for program in programs for i in (*program, END)]
    check_semaphores(bench.order, flat)
    for stub in bench.units:
        assert [entry[0] for entry in stub.log] == [
            pc for pc, i in enumerate(flat) if i.op != Op.END and i.op.name == stub.unit.name
        ]
    for index, program in enumerate(programs):
        completion = bench.completion(index)
        assert completion["status"] == Fault.NONE
        assert completion["instructions"] == len(program)
        assert completion["job_id"] == 0x100 + index
        assert completion["tag"] == 7 * index
        assert completion["index"] == index


def test_completion_of_a_job_with_prologue():
    bench = ControlBench(latency=(3, 9))
    loads = [insn(Op.LD2, src_seg=2, dst_seg=6, src=64 * i) for i in range(5)]
    bench.job(
        insn(Op.MAC, signal=(0,)), Insn(Op.CANCEL, {"point": 9}), insn(Op.ST2, wait=(0,), src_seg=6, dst_seg=2), END,
        prologue=(*loads, END),
    )  # fmt: skip

    async def testbench(ctx):
        await bench.enable(ctx)
        await bench.retired(ctx, 1)
        assert bench.read(ctx, "halt_point") == 9
        assert bench.read(ctx, "halt_pc") == 2
        assert bench.state(ctx) == EngineState.IDLE

    bench.run(testbench)
    load = bench.units[Unit.LD2].log
    assert [(src, dst) for _, _, src, dst in load] == [(0x8000, 256)] * 5
    assert bench.units[Unit.ST2].log[0][2:] == (256, 0x8000)
    completion = bench.completion(0)
    assert 0 < completion["prologue_start"] < completion["prologue_end"] < completion["start"] < completion["end"]
    assert completion["prologue_bytes"] > 0
    assert completion["prologue_bytes"] == 3 * completion["prologue_busy"]
    assert completion["prologue_occupancy"] == max(pc for pc, *_ in load) + 1
    assert completion["ld2_busy"] == completion["ld2_bytes"] == 0
    assert completion["st2_bytes"] > 0


def test_live_counters_and_semaphores_can_be_read():
    bench = ControlBench(latency=(100, 100))
    bench.job(insn(Op.LD1, signal=(3,)), insn(Op.MAC), insn(Op.VEC, wait=(3,)), END)

    async def testbench(ctx):
        await bench.enable(ctx)
        while bench.state(ctx) != EngineState.DRAINING:
            await ctx.tick()
        names = [name for name, _ in COUNTERS]
        first = await bench.read_array(ctx, "counter", names.index("vec_waiting"))
        second = await bench.read_array(ctx, "counter", names.index("vec_waiting"))
        assert 0 < first < second
        assert await bench.read_array(ctx, "counter", names.index("instructions")) == 3
        assert bench.read(ctx, "current_job") == 0x100
        await bench.retired(ctx, 1)
        completion = bench.completion(0)
        assert {name: await bench.read_array(ctx, "counter", n) for n, name in enumerate(names)} == {
            name: completion[name] for name in names
        }
        assert completion["vec_waiting"] == completion["vec_missing3"] > 0, "the last counter of all"

    bench.run(testbench)


def test_completion_tells_what_mac_waited_for():
    """MAC waits for LD2, then for LD1 and LD0, then for VEC, which waited for LD2."""
    bench = ControlBench(latency=(1, 1))
    bench.fixed_latency = {Unit.LD2: 90, Unit.LD1: 60, Unit.LD0: 5, Unit.VEC: 160, Unit.MAC: 20}
    bench.job(
        insn(Op.LD2, signal=(2,)), insn(Op.LD1, wait=(2,), signal=(6,)), insn(Op.LD0, wait=(6,), signal=(14,)),
        insn(Op.VEC, wait=(10,), signal=(17,)), insn(Op.LD2, signal=(10,)),
        insn(Op.MAC, wait=(14,)), insn(Op.MAC, wait=(17,)), END,
    )  # fmt: skip

    async def testbench(ctx):
        await bench.enable(ctx)
        await bench.retired(ctx, 1)

    bench.run(testbench)
    completion = bench.completion(0)
    parts = {name: value for name, value in completion.items() if name.startswith(("mac_missing", "mac_starved"))}
    assert sum(parts.values()) == completion["mac_waiting"]
    assert completion["vec_missing2"] == completion["vec_waiting"] > 150
    assert parts["mac_missing0"] == parts["mac_missing3"] == 0
    assert 30 <= parts["mac_starved"] <= 92, parts  # it was queued somewhat later than LD2
    assert 60 <= parts["mac_missing2"] <= 80, parts
    assert parts["mac_missing1"] > 100, parts


def test_consecutive_bodies_follow_closely():
    bench = ControlBench(latency=(150, 150), bus_latency=60)
    for _ in range(3):
        bench.job(insn(Op.MAC), END)

    async def testbench(ctx):
        await bench.enable(ctx)
        await bench.retired(ctx, 3)

    bench.run(testbench)
    for index in range(2):
        gap = bench.completion(index + 1)["start"] - bench.completion(index)["end"]
        assert gap < 70
        assert bench.completion(index + 1)["fetch_stalled"] < 70


def test_fetch_keeps_up_with_one_instruction_in_sixteen_cycles():
    bench = ControlBench(latency=(16, 16), bus_latency=100)
    bench.job(*[insn(Op.MAC)] * 60, END)

    async def testbench(ctx):
        await bench.enable(ctx)
        await bench.retired(ctx, 1)

    bench.run(testbench)
    completion = bench.completion(0)
    first = 150  # the latency of the first fetch
    assert completion["mac_busy"] < 60 * 18
    assert completion["end"] - completion["start"] < 60 * 18 + first


def test_window_holds_a_prologue_back():
    bench = ControlBench(latency=(60, 60))
    bench.job(insn(Op.MAC), insn(Op.MAC), END)
    bench.job(insn(Op.MAC), END, prologue=(insn(Op.LD2), END), window_after=1)
    bench.job(insn(Op.MAC), END, prologue=(insn(Op.LD2), END), window_after=2)

    async def testbench(ctx):
        await bench.enable(ctx)
        await bench.retired(ctx, 3)

    bench.run(testbench)
    first, second, third = (bench.completion(i) for i in range(3))
    assert second["prologue_start"] > first["end"]
    assert third["prologue_start"] < second["end"]


def test_body_and_prologue_share_ld2_and_their_counters():
    bench = ControlBench(latency=(20, 20))
    bench.job(insn(Op.MAC, signal=(0,)), insn(Op.LD2, wait=(0,)), insn(Op.LD2), insn(Op.LD2), END)
    bench.job(END, prologue=(*[insn(Op.LD2)] * 4, END))

    async def testbench(ctx):
        await bench.enable(ctx)
        await bench.retired(ctx, 2)

    bench.run(testbench)
    first, second = bench.completion(0), bench.completion(1)
    assert first["ld2_bytes"] == 3 * first["ld2_busy"]
    assert 40 < first["ld2_busy"] <= 60
    assert 60 < second["prologue_busy"] <= 80
    assert second["prologue_start"] < first["end"], "the prologue did not run ahead"


def reserved_bit(op: Op) -> bytes:
    raw = int.from_bytes(insn(op).encode(), "little") | 1 << format_bits(FORMATS[op])
    return (raw & ((1 << INSN_BITS) - 1)).to_bytes(INSN_BYTES, "little")


def zero_count(op: Op, name: str) -> bytes:
    word, low = int.from_bytes(insn(op).encode(), "little"), 0
    for field in FORMATS[op]:
        if field.name == name:
            word &= ~(((1 << field.width) - 1) << low)
        low += field.width
    return word.to_bytes(INSN_BYTES, "little")


MAC = insn(Op.MAC)
BODY_FAULTS: dict[str, tuple[tuple, dict, tuple]] = {
    "opcode 0": ((MAC, bytes(64)), {}, (Fault.ILLEGAL, FaultUnit.EXECUTOR, 1, 64)),
    "opcode 0x7f": ((b"\x7f" + bytes(63),), {}, (Fault.ILLEGAL, FaultUnit.EXECUTOR, 0, 0)),
    "reserved bits": ((MAC, MAC, reserved_bit(Op.VEC)), {}, (Fault.ILLEGAL, FaultUnit.EXECUTOR, 2, 128)),
    "reserved bits of END": ((reserved_bit(Op.END),), {}, (Fault.ILLEGAL, FaultUnit.EXECUTOR, 0, 0)),
    "zero count of a copy": ((zero_count(Op.LD1, "n0"),), {}, (Fault.ILLEGAL, FaultUnit.EXECUTOR, 0, 0)),
    "zero count of MAC": ((zero_count(Op.MAC, "p1"),), {}, (Fault.ILLEGAL, FaultUnit.EXECUTOR, 0, 0)),
    "zero count of VEC": ((zero_count(Op.VEC, "k0"),), {}, (Fault.ILLEGAL, FaultUnit.EXECUTOR, 0, 0)),
    "segment of another level": (
        (MAC, with_field(insn(Op.LD1), "src_seg", 2)), {}, (Fault.ILLEGAL, FaultUnit.EXECUTOR, 1, 64)
    ),
    "store to code": (
        (with_field(insn(Op.ST2), "dst_seg", 0),), {}, (Fault.ILLEGAL, FaultUnit.EXECUTOR, 0, 0)
    ),
    "past the segment": ((MAC, MAC, MAC), {"limit0": 128}, (Fault.LIMIT, FaultUnit.EXECUTOR, 2, 128)),
    "entry past the segment": ((MAC,), {"limit0": 128, "body_pc": 9}, (Fault.LIMIT, FaultUnit.EXECUTOR, 9, 576)),
    "residue": (
        (insn(Op.MAC, signal=(3, 5)), END), {}, (Fault.SEMAPHORE_RESIDUE, FaultUnit.EXECUTOR, 1, 1 << 3 | 1 << 5)
    ),
    "wait for ever": (
        (insn(Op.MAC), insn(Op.VEC, wait=(4, 7)), END),
        {},
        (Fault.SEMAPHORE_UNDERFLOW, FaultUnit.VEC, 1, 1 << 4 | 1 << 7),
    ),
    "wait for ever, for one of two": (
        (insn(Op.MAC, signal=(4,)), insn(Op.VEC, wait=(4, 7)), END),
        {},
        (Fault.SEMAPHORE_UNDERFLOW, FaultUnit.VEC, 1, 1 << 7),
    ),
    "wait for ever before a full queue": (
        (insn(Op.VEC, wait=(4,)), *[insn(Op.VEC)] * 6, insn(Op.MAC, signal=(4,)), END),
        {},
        (Fault.SEMAPHORE_UNDERFLOW, FaultUnit.VEC, 0, 1 << 4),
    ),
    "magic": ((END,), {"magic": 1}, (Fault.DESCRIPTOR, FaultUnit.RING, 0, 0)),
    "unknown flag": ((END,), {"flags": 0x8000}, (Fault.DESCRIPTOR, FaultUnit.RING, 0, 0)),
    "code not aligned": ((END,), {"base0": CODE + 8}, (Fault.DESCRIPTOR, FaultUnit.RING, 0, 0)),
    "window beyond LV2": (
        (END,), {"base7": PARAMS.lv2_bytes - 8, "limit7": 9}, (Fault.DESCRIPTOR, FaultUnit.RING, 0, 0)
    ),
    "segment beyond 32 bits": ((END,), {"base3": 1 << 32}, (Fault.DESCRIPTOR, FaultUnit.RING, 0, 0)),
    "no such event": ((END,), {"signal_id": PARAMS.events}, (Fault.DESCRIPTOR, FaultUnit.RING, 0, 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", BODY_FAULTS)
def test_fault(name):
    body, fields, (code, unit, pc, address) = BODY_FAULTS[name]
    bench = ControlBench(latency=(1, 5))
    bench.job(*body, **fields)
    bench.job(END)

    async def testbench(ctx):
        await bench.write(ctx, "irq_enable", 2)
        await bench.enable(ctx)
        await bench.faulted(ctx)
        assert bench.read(ctx, "fault_code") == code | unit << 8
        assert bench.read(ctx, "fault_pc") == pc
        assert bench.read(ctx, "fault_addr") == address
        assert bench.read(ctx, "fault_job") == 0x100
        await ctx.tick().repeat(100)
        assert bench.read(ctx, "ring_head") == 1, "the ring did not stop"
        assert ctx.get(bench.dut.interrupt)
        assert bench.read(ctx, "irq_status") == 2
        await bench.write(ctx, "irq_status", 2)
        assert not ctx.get(bench.dut.interrupt)

    bench.run(testbench)
    completion = bench.completion(0)
    found = (completion["status"], completion["unit"], completion["pc"], completion["address"])
    assert found == (code, unit, pc, address)


def expect_fault(bench: ControlBench, index: int, code: Fault, unit: FaultUnit, pc: int, address: int, job: int):
    async def testbench(ctx):
        await bench.enable(ctx)
        await bench.faulted(ctx)
        assert bench.read(ctx, "ring_head") == index + 1
        assert bench.read(ctx, "fault_job") == job

    bench.run(testbench)
    for earlier in range(index):
        assert bench.completion(earlier)["status"] == Fault.NONE
    completion = bench.completion(index)
    found = (completion["status"], completion["unit"], completion["pc"], completion["address"], completion["job_id"])
    assert found == (code, unit, pc, address, job)


@pytest.mark.parametrize("unit", Unit)
def test_fault_of_a_unit(unit):
    bench = ControlBench(latency=(1, 30))
    body = [insn(op) for op in (Op.LD1, Op.MAC, Op.LD2, Op.VEC, Op.ST2, Op.ST1, Op.LD0)]
    bench.job(*body, END)
    pc = next(pc for pc, i in enumerate(body) if i.op.name == unit.name)
    bench.unit_faults[unit, pc] = (Fault.LIMIT, 0x1234)
    expect_fault(bench, 0, Fault.LIMIT, FaultUnit(int(unit)), pc, 0x1234, 0x100)


def test_semaphore_overflow_names_the_signal():
    params = PARAMS.replace(semaphore_max=3)
    bench = ControlBench(latency=(1, 3), params=params)
    bench.job(*[insn(Op.MAC, signal=(2,))] * 3, insn(Op.VEC, signal=(1,)), insn(Op.MAC, signal=(2,)), END)
    expect_fault(bench, 0, Fault.SEMAPHORE_OVERFLOW, FaultUnit.MAC, 4, 1 << 2, 0x100)


def test_cycle_limit():
    bench = ControlBench(latency=(400, 400))
    bench.job(END, cycle_limit=1000)
    bench.job(insn(Op.MAC), END, cycle_limit=300)
    expect_fault(bench, 1, Fault.CYCLE_LIMIT, FaultUnit.EXECUTOR, 2, 0, 0x101)
    assert 300 <= bench.completion(1)["end"] - bench.completion(1)["start"] < 320


def test_bus_error_in_a_body():
    bench = ControlBench(read_errors={CODE + 2 * INSN_BYTES + 8})
    bench.job(MAC, MAC, MAC, END)
    expect_fault(bench, 0, Fault.BUS, FaultUnit.EXECUTOR, 2, 128, 0x100)


def test_bus_error_in_a_descriptor():
    bench = ControlBench(read_errors={RING + 256 + 136})
    bench.job(MAC, END)
    bench.job(MAC, END)
    expect_fault(bench, 1, Fault.BUS, FaultUnit.RING, 0, 0, 0x101)


def test_bus_error_of_a_completion():
    bench = ControlBench(write_errors={CPL + 256})
    bench.job(END)
    bench.job(END)

    async def testbench(ctx):
        await bench.enable(ctx)
        await bench.faulted(ctx)
        assert bench.read(ctx, "fault_code") == Fault.BUS | FaultUnit.RING << 8
        assert bench.read(ctx, "fault_job") == 0x101
        assert bench.read(ctx, "ring_head") == 1

    bench.run(testbench)


PROLOGUE_FAULTS = {
    "other unit": ((insn(Op.LD2), insn(Op.MAC), END), Fault.ILLEGAL),
    "CANCEL": ((insn(Op.LD2), Insn(Op.CANCEL), END), Fault.ILLEGAL),
    "wait": ((insn(Op.LD2), insn(Op.LD2, wait=(1,)), END), Fault.ILLEGAL),
    "signal": ((insn(Op.LD2), insn(Op.LD2, signal=(1,)), END), Fault.ILLEGAL),
    "segment of LV2": ((insn(Op.LD2), with_field(insn(Op.LD2), "src_seg", 6), END), Fault.ILLEGAL),
}


@pytest.mark.parametrize("name", PROLOGUE_FAULTS)
def test_prologue_fault_is_reported_after_earlier_jobs(name):
    prologue, code = PROLOGUE_FAULTS[name]
    bench = ControlBench(latency=(100, 100))
    bench.job(MAC, MAC, END)
    bench.job(MAC, END, prologue=prologue)
    bench.job(END)
    pc = 3 + 2 + 1
    expect_fault(bench, 1, code, FaultUnit.LOADER, pc, pc * INSN_BYTES, 0x101)


def test_prologue_fault_in_ld2_leaves_the_running_body_its_ld2():
    bench = ControlBench(latency=(40, 40))
    bench.job(insn(Op.MAC, signal=(0,)), MAC, MAC, insn(Op.MAC, signal=(1,)), insn(Op.LD2, wait=(0, 1)), END)
    bench.job(MAC, END, prologue=(insn(Op.LD2), insn(Op.LD2), END))
    bench.unit_faults[Unit.LD2, 9] = (Fault.BUS, 0x77)
    expect_fault(bench, 1, Fault.BUS, FaultUnit.LD2, 9, 0x77, 0x101)
    assert bench.completion(0)["ld2_busy"] > 0


@pytest.mark.parametrize("slots", [2, *(pytest.param(slots, marks=pytest.mark.slow) for slots in (4, 8))])
def test_prologues_run_ahead_as_far_as_there_are_slots(slots):
    bench = ControlBench(params=PARAMS.replace(job_slots=slots), latency=(1, 5))
    bench.fixed_latency[Unit.MAC, 0] = 2000
    bench.job(MAC, END)
    for _ in range(7):
        bench.job(END, prologue=(insn(Op.LD2), END))

    async def testbench(ctx):
        await bench.enable(ctx)
        await ctx.tick().repeat(1900)
        assert bench.read(ctx, "ring_head") == 0
        assert bench.read(ctx, "ring_fetched") == bench.read(ctx, "ring_loaded") == slots
        await bench.retired(ctx, 8)

    bench.run(testbench)
    assert [bench.completion(i)["job_id"] for i in range(8)] == list(range(0x100, 0x108))
    assert all(bench.completion(i)["prologue_end"] < bench.completion(0)["end"] for i in range(1, slots))


def test_jobs_not_fetched_can_be_revoked():
    bench = ControlBench(latency=(200, 200))
    for _ in range(7):
        bench.job(MAC, END)

    async def testbench(ctx):
        await bench.enable(ctx)
        while bench.read(ctx, "ring_fetched") < PARAMS.job_slots:
            await ctx.tick()
        await bench.write(ctx, "ring_tail", 2)
        fetched = bench.read(ctx, "ring_fetched")
        assert fetched == PARAMS.job_slots
        assert bench.read(ctx, "ring_tail") == fetched
        await bench.write(ctx, "ring_tail", 6)
        await bench.write(ctx, "ring_tail", 5)
        await bench.retired(ctx, 5)
        await ctx.tick().repeat(100)
        assert bench.read(ctx, "ring_head") == 5
        assert bench.state(ctx) == EngineState.IDLE

    bench.run(testbench)


def test_full_completion_ring_holds_retirement_back():
    bench = ControlBench(latency=(1, 2))
    for _ in range(8):
        bench.job(END)

    async def testbench(ctx):
        await bench.enable(ctx)
        await bench.write(ctx, "cpl_size", 1)
        await bench.retired(ctx, 2)
        await ctx.tick().repeat(300)
        assert bench.read(ctx, "cpl_tail") == 2
        await bench.write(ctx, "cpl_head", 1)
        await bench.retired(ctx, 3)
        await ctx.tick().repeat(300)
        assert bench.read(ctx, "cpl_tail") == 3
        await bench.write(ctx, "cpl_head", 3)
        await bench.retired(ctx, 5)

    bench.run(testbench)


def test_disabled_engine_stops_before_the_next_job_and_goes_on():
    bench = ControlBench(latency=(100, 100))
    for _ in range(4):
        bench.job(MAC, END)

    async def testbench(ctx):
        assert bench.state(ctx) == EngineState.DISABLED
        await bench.enable(ctx)
        while bench.state(ctx) != EngineState.RUNNING:
            await ctx.tick()
        await bench.write(ctx, "control", 0)
        await bench.retired(ctx, 1)
        await ctx.tick().repeat(300)
        assert bench.read(ctx, "ring_head") == 1
        assert bench.state(ctx) == EngineState.DISABLED
        await bench.write(ctx, "control", 1)
        await bench.retired(ctx, 4)

    bench.run(testbench)


def test_events_order_jobs():
    bench = ControlBench(latency=(1, 5))
    bench.job(END, flags=JobFlag.SIGNAL, signal_id=3)
    bench.job(END, flags=JobFlag.WAIT0 | JobFlag.WAIT1, wait0_id=3, wait0_value=1, wait1_id=9, wait1_value=2)

    async def testbench(ctx):
        await bench.enable(ctx)
        await bench.retired(ctx, 1)
        await ctx.tick().repeat(300)
        assert bench.read(ctx, "ring_head") == 1
        bench.event[9] = 1
        await ctx.tick().repeat(100)
        assert bench.read(ctx, "ring_head") == 1
        bench.event[9] = 2
        await bench.retired(ctx, 2)
        assert bench.event[3] == 1

    bench.run(testbench)


def test_completion_interrupt_only_where_asked():
    bench = ControlBench()
    bench.job(END)
    bench.job(END, flags=JobFlag.INTERRUPT)

    async def testbench(ctx):
        await bench.write(ctx, "irq_enable", 1)
        await bench.enable(ctx)
        await bench.retired(ctx, 1)
        assert not ctx.get(bench.dut.interrupt)
        await bench.retired(ctx, 2)
        await ctx.tick()
        assert ctx.get(bench.dut.interrupt)

    bench.run(testbench)
