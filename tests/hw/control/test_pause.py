"""Pause, halt and go on; jobs that resume in their middle. On the control alone, with stub units."""

import random

import pytest

from hw.contract.isa import Insn, Op, Unit
from hw.contract.job import Fault, FaultUnit, JobFlag
from hw.contract.regs import EngineState
from tests.hw.control.bench import CPL, END, PARAMS, ControlBench, insn
from tests.hw.control.test_engine_control import check_semaphores, random_program

ENABLE, PAUSE = 1, 4
MAC = insn(Op.MAC)
HALTED_IRQ = 4


def cancel(point: int) -> Insn:
    return Insn(Op.CANCEL, {"point": point})


def with_points(rng: random.Random, program: list[Insn], share: float = 0.3) -> list[Insn]:
    """The program with CANCELs at random places, numbered."""
    result, number = [], 0
    for instruction in program:
        if rng.random() < share:
            number += 1
            result.append(cancel(number))
        result.append(instruction)
    return result


async def halted(bench: ControlBench, ctx, limit: int = 3000) -> None:
    for _ in range(limit):
        if bench.state(ctx) == EngineState.HALTED:
            return
        await ctx.tick()
    raise AssertionError(f"not halted after {limit} cycles; state {bench.state(ctx)}")


async def running(bench: ControlBench, ctx, job_id: int = 0x100) -> None:
    while bench.state(ctx) != EngineState.RUNNING or bench.read(ctx, "current_job") != job_id:
        await ctx.tick()


def in_job(bench: ControlBench, ctx) -> bool:
    return bool(bench.read(ctx, "status") >> 5 & 1)


def all_quiet(bench: ControlBench, ctx) -> bool:
    """Nothing is under way in units and on buses."""
    dut = bench.dut
    busy = any(ctx.get(dut.units[unit].busy) or ctx.get(dut.units[unit].cmd.valid) for unit in Unit)
    started = sum(what == "start" for what, *_ in bench.order)
    return not busy and len(bench.order) == 2 * started


def counts(bench: ControlBench, program: list[Insn], order: list | None = None) -> list[int]:
    """Semaphores that the instructions which have ended leave behind."""
    result = [0] * PARAMS.semaphores
    for what, _, pc in bench.order if order is None else order:
        field = "wait" if what == "start" else "signal"
        for s in range(PARAMS.semaphores):
            result[s] += (program[pc][field] >> s & 1) * (1 if what == "done" else -1)
    return result


async def semaphores(bench: ControlBench, ctx) -> list[int]:
    return [await bench.read_array(ctx, "sem", s) for s in range(PARAMS.semaphores)]


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 2, 3, 4, 5))])
def test_pauses_at_random_times_change_nothing(seed):
    """Halt again and again: every halt is behind a point with everything before it done and nothing after it begun."""
    rng = random.Random(seed)
    bench = ControlBench(seed=seed, stall=0.15 * (seed % 3), latency=(1, 25))
    flat: list[Insn] = []
    for _ in range(2):
        body = [*with_points(rng, random_program(rng, 25)), END]
        bench.job(*body)
        flat += body
    halts = []

    async def testbench(ctx):
        await bench.enable(ctx)
        while bench.read(ctx, "ring_head") < 2:
            await ctx.tick().repeat(rng.randrange(1, 90))
            await bench.write(ctx, "control", ENABLE | PAUSE)
            if rng.random() < 0.3:
                await ctx.tick().repeat(rng.randrange(1, 12))
            else:
                await halted(bench, ctx)
                before = len(bench.order)
                assert all_quiet(bench, ctx)
                if in_job(bench, ctx):
                    pc = bench.read(ctx, "halt_pc")
                    assert flat[pc - 1].op == Op.CANCEL
                    assert flat[pc - 1]["point"] == bench.read(ctx, "halt_point")
                    assert bench.read(ctx, "current_pc") == pc
                    begun = {p for what, _, p in bench.order if what == "start"}
                    units = {p for p, i in enumerate(flat) if i.op not in (Op.CANCEL, Op.END)}
                    assert begun == {p for p in units if p < pc}
                    assert await semaphores(bench, ctx) == counts(bench, flat)
                    halts.append(pc)
                await ctx.tick().repeat(rng.randrange(1, 60))
                assert len(bench.order) == before and all_quiet(bench, ctx)
            await bench.write(ctx, "control", ENABLE)

    bench.run(testbench)
    assert halts, f"seed {seed}: no halt inside a body"
    check_semaphores(bench.order, flat)
    for stub in bench.units:
        assert [entry[0] for entry in stub.log] == [pc for pc, i in enumerate(flat) if i.op.name == stub.unit.name]
    for index in range(2):
        assert bench.completion(index)["status"] == Fault.NONE


def test_registers_of_a_halt():
    bench = ControlBench(latency=(40, 40))
    bench.job(insn(Op.MAC, signal=(3, 20)), cancel(77), MAC, insn(Op.VEC, wait=(3, 20)), END)

    async def testbench(ctx):
        await bench.write(ctx, "irq_enable", HALTED_IRQ)
        await bench.enable(ctx)
        await running(bench, ctx)
        await bench.write(ctx, "control", ENABLE | PAUSE)
        while bench.state(ctx) != EngineState.DRAINING:
            await ctx.tick()
        assert not ctx.get(bench.dut.interrupt) and not in_job(bench, ctx)
        await halted(bench, ctx)
        now = ctx.get(bench.dut.now)
        assert now - 2 <= bench.read(ctx, "halt_cycle_lo") <= now
        assert bench.read(ctx, "halt_cycle_hi") == 0
        assert in_job(bench, ctx)
        found = [bench.read(ctx, name) for name in ("halt_job", "halt_point", "halt_pc", "current_pc", "ring_loaded")]
        assert found == [0x100, 77, 2, 2, 1]
        assert [s for s, count in enumerate(await semaphores(bench, ctx)) if count] == [3, 20]
        await ctx.tick()
        assert ctx.get(bench.dut.interrupt)
        assert bench.read(ctx, "irq_status") == HALTED_IRQ
        await bench.write(ctx, "irq_status", HALTED_IRQ)
        await ctx.tick().repeat(50)
        assert not ctx.get(bench.dut.interrupt), "one halt raises one interrupt"
        await bench.write(ctx, "control", ENABLE)
        await bench.retired(ctx, 1)
        assert bench.read(ctx, "irq_status") & HALTED_IRQ == 0

    bench.run(testbench)


@pytest.mark.parametrize("after", [1, 5, 60, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3, 9, 30))])
def test_pause_withdrawn_before_it_took_effect_leaves_no_trace(after):
    bench = ControlBench(latency=(100, 100))
    bench.job(MAC, cancel(1), MAC, END)

    async def testbench(ctx):
        await bench.enable(ctx)
        await running(bench, ctx)
        await bench.write(ctx, "control", ENABLE | PAUSE)
        await ctx.tick().repeat(after)
        await bench.write(ctx, "control", ENABLE)
        await bench.retired(ctx, 1)
        assert bench.read(ctx, "irq_status") & HALTED_IRQ == 0
        assert bench.read(ctx, "halt_cycle_lo") == 0

    bench.run(testbench)
    assert [pc for pc, *_ in bench.units[Unit.MAC].log] == [0, 2]


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_pause_withdrawn_in_any_cycle_of_the_drain(step):
    """Also in the very cycle in which the engine would have halted: halted with its interrupt, or not at all."""
    halts = set()
    for after in range(43, 19, -step):
        bench = ControlBench(latency=(20, 20))
        bench.job(MAC, cancel(1), MAC, END)

        async def testbench(ctx, bench=bench, after=after):
            await bench.enable(ctx)
            await running(bench, ctx)
            await bench.write(ctx, "control", ENABLE | PAUSE)
            seen = False
            for _ in range(after):
                seen |= bench.state(ctx) == EngineState.HALTED
                await ctx.tick()
            await bench.write(ctx, "control", ENABLE)
            for _ in range(4):
                seen |= bench.state(ctx) == EngineState.HALTED
                await ctx.tick()
            assert bool(bench.read(ctx, "irq_status") & HALTED_IRQ) == seen
            halts.add(seen)
            await bench.retired(ctx, 1)

        bench.run(testbench)
        assert [pc for pc, *_ in bench.units[Unit.MAC].log] == [0, 2], after
    assert halts == {False, True}


def test_pause_at_the_end_of_a_job_halts_behind_it():
    bench = ControlBench(latency=(30, 30))
    bench.job(MAC, END)
    bench.job(MAC, END)

    async def testbench(ctx):
        await bench.enable(ctx)
        await running(bench, ctx)
        await bench.write(ctx, "control", ENABLE | PAUSE)
        await halted(bench, ctx)
        assert not in_job(bench, ctx)
        assert bench.read(ctx, "ring_head") == 1, "its completion is written before HALTED"
        await ctx.tick().repeat(200)
        assert bench.read(ctx, "ring_head") == 1 and len(bench.units[Unit.MAC].log) == 1
        await bench.write(ctx, "control", ENABLE)
        await bench.retired(ctx, 2)

    bench.run(testbench)


def test_pause_while_idle():
    bench = ControlBench()

    async def testbench(ctx):
        await bench.enable(ctx)
        await bench.write(ctx, "control", ENABLE | PAUSE)
        await halted(bench, ctx, 20)
        assert not in_job(bench, ctx)
        bench.job(MAC, END)
        await bench.write(ctx, "ring_tail", 1)
        await ctx.tick().repeat(300)
        assert bench.state(ctx) == EngineState.HALTED and not bench.order
        await bench.write(ctx, "control", ENABLE)
        await bench.retired(ctx, 1)

    bench.run(testbench)


def test_pause_while_disabled():
    """Between jobs DISABLED is the state, whatever pause says; inside a body pause halts as always."""
    bench = ControlBench(latency=(30, 30))
    bench.job(MAC, cancel(5), MAC, END)
    bench.job(MAC, END)

    async def testbench(ctx):
        await bench.write(ctx, "control", PAUSE)
        await ctx.tick().repeat(50)
        assert bench.state(ctx) == EngineState.DISABLED
        assert bench.read(ctx, "irq_status") == 0
        await bench.enable(ctx)
        await running(bench, ctx)
        await bench.write(ctx, "control", PAUSE)
        await halted(bench, ctx)
        assert in_job(bench, ctx)
        await bench.write(ctx, "control", 0)
        await bench.retired(ctx, 1)
        assert bench.state(ctx) == EngineState.DISABLED
        await bench.write(ctx, "control", ENABLE | PAUSE)
        await halted(bench, ctx)
        await bench.write(ctx, "control", PAUSE)
        await ctx.tick().repeat(2)
        assert bench.state(ctx) == EngineState.DISABLED
        await bench.write(ctx, "control", ENABLE)
        await bench.retired(ctx, 2)

    bench.run(testbench)


def test_fault_while_the_units_drain():
    bench = ControlBench(latency=(40, 40))
    bench.job(insn(Op.LD1), cancel(1), MAC, END)
    bench.unit_faults[Unit.LD1, 0] = (Fault.LIMIT, 0x55)

    async def testbench(ctx):
        await bench.enable(ctx)
        await running(bench, ctx)
        await bench.write(ctx, "control", ENABLE | PAUSE)
        await bench.faulted(ctx)
        assert bench.read(ctx, "fault_code") == Fault.LIMIT | FaultUnit.LD1 << 8
        assert bench.read(ctx, "irq_status") & HALTED_IRQ == 0
        await bench.write(ctx, "control", ENABLE)
        await ctx.tick().repeat(50)
        assert bench.state(ctx) == EngineState.FAULT

    bench.run(testbench)
    assert bench.completion(0)["status"] == Fault.LIMIT


def test_overflow_by_the_last_signal_before_a_point():
    params = PARAMS.replace(semaphore_max=3)
    bench = ControlBench(latency=(10, 10), params=params)
    bench.job(*[insn(Op.MAC, signal=(2,))] * 4, cancel(1), END)

    async def testbench(ctx):
        await bench.enable(ctx)
        await running(bench, ctx)
        await bench.write(ctx, "control", ENABLE | PAUSE)
        await bench.faulted(ctx)
        assert bench.read(ctx, "fault_code") == Fault.SEMAPHORE_OVERFLOW | FaultUnit.MAC << 8

    bench.run(testbench)


def test_wait_for_a_signal_behind_the_point_is_a_deadlock():
    """Legal without a pause, as it happens; a pause finds that the program may not be cut here."""
    bench = ControlBench(latency=(5, 5))
    bench.job(insn(Op.VEC, wait=(6,)), MAC, cancel(1), insn(Op.MAC, signal=(6,)), END)

    async def testbench(ctx):
        await bench.enable(ctx)
        await running(bench, ctx)
        await bench.write(ctx, "control", ENABLE | PAUSE)
        await bench.faulted(ctx)
        assert bench.read(ctx, "fault_code") == Fault.SEMAPHORE_UNDERFLOW | FaultUnit.VEC << 8
        assert bench.read(ctx, "fault_addr") == 1 << 6

    bench.run(testbench)


def test_halted_cycles_count_for_nothing():
    def run(pauses: int) -> dict[str, int]:
        bench = ControlBench(latency=(30, 30))
        bench.job(MAC, cancel(1), MAC, cancel(2), insn(Op.VEC), END, cycle_limit=400)

        async def testbench(ctx):
            await bench.enable(ctx)
            await running(bench, ctx)
            for _ in range(pauses):
                await bench.write(ctx, "control", ENABLE | PAUSE)
                await halted(bench, ctx)
                await ctx.tick().repeat(1000)
                await bench.write(ctx, "control", ENABLE)
            await bench.retired(ctx, 1)

        bench.run(testbench)
        return bench.completion(0)

    undisturbed, paused = run(0), run(2)
    assert paused["status"] == Fault.NONE
    assert paused["end"] - paused["start"] > 2000
    assert paused["instructions"] == undisturbed["instructions"]
    for name in ("mac_busy", "vec_busy"):
        assert abs(paused[name] - undisturbed[name]) <= 2  # commands overlap by a cycle unless a halt parts them
    assert paused["mac_empty"] < undisturbed["mac_empty"] + 200


def test_cycle_limit_still_holds_after_a_halt():
    bench = ControlBench(latency=(200, 200))
    bench.job(MAC, cancel(1), MAC, MAC, END, cycle_limit=450)

    async def testbench(ctx):
        await bench.enable(ctx)
        await running(bench, ctx)
        await bench.write(ctx, "control", ENABLE | PAUSE)
        await halted(bench, ctx)
        await bench.write(ctx, "control", ENABLE)
        await bench.faulted(ctx)
        assert bench.read(ctx, "fault_code") & 0xFF == Fault.CYCLE_LIMIT

    bench.run(testbench)


def test_job_that_waits_for_an_event_or_its_window_halts_before_its_body():
    bench = ControlBench(latency=(20, 20))
    bench.job(MAC, END, flags=JobFlag.WAIT0, wait0_id=3, wait0_value=1)
    bench.job(MAC, END, prologue=(insn(Op.LD2), END), window_after=1)

    async def testbench(ctx):
        await bench.enable(ctx)
        await ctx.tick().repeat(200)
        await bench.write(ctx, "control", ENABLE | PAUSE)
        await halted(bench, ctx)
        assert not in_job(bench, ctx)
        bench.event[3] = 1
        await ctx.tick().repeat(100)
        assert bench.state(ctx) == EngineState.HALTED and not bench.order
        assert bench.read(ctx, "ring_loaded") == 1
        await bench.write(ctx, "control", ENABLE)
        await bench.retired(ctx, 2)

    bench.run(testbench)


def test_earlier_completions_are_written_before_halted():
    """Otherwise the host would take the halted job for the one before, and a reset would lose that completion."""
    bench = ControlBench(latency=(2, 2), bus_latency=150)
    bench.job(END)
    bench.job(END)
    bench.job(cancel(1), cancel(2), MAC, END)

    async def testbench(ctx):
        await bench.enable(ctx)
        await bench.write(ctx, "cpl_size", 0)
        await bench.retired(ctx, 1)
        await running(bench, ctx, 0x102)
        await bench.write(ctx, "control", ENABLE | PAUSE)
        await ctx.tick().repeat(400)
        assert bench.state(ctx) == EngineState.DRAINING, "the completion ring is full"
        await bench.write(ctx, "cpl_head", 1)
        await halted(bench, ctx)
        assert in_job(bench, ctx)
        assert bench.read(ctx, "ring_head") == 2
        await bench.write(ctx, "cpl_head", 2)
        await bench.write(ctx, "control", ENABLE)
        await bench.retired(ctx, 3)

    bench.run(testbench)


def test_completion_that_fails_while_pausing_is_a_fault():
    bench = ControlBench(latency=(2, 2), bus_latency=150, write_errors={CPL})
    bench.job(END)
    bench.job(cancel(1), MAC, END)

    async def testbench(ctx):
        await bench.enable(ctx)
        await running(bench, ctx, 0x101)
        await bench.write(ctx, "control", ENABLE | PAUSE)
        await bench.faulted(ctx)
        assert bench.read(ctx, "fault_code") == Fault.BUS | FaultUnit.RING << 8
        assert bench.read(ctx, "irq_status") & HALTED_IRQ == 0

    bench.run(testbench)


def test_a_point_costs_an_issue_slot():
    def cycles(*body: Insn) -> int:
        bench = ControlBench(latency=(1, 1), bus_latency=2)
        bench.job(*body, END)

        async def testbench(ctx):
            await bench.enable(ctx)
            await bench.retired(ctx, 1)

        bench.run(testbench)
        completion = bench.completion(0)
        return completion["end"] - completion["start"] - completion["fetch_stalled"]

    assert cycles(*[MAC, cancel(1)] * 20) - cycles(*[MAC] * 20) <= 2 * 20


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 2))])
def test_resumed_job_runs_the_rest_with_its_semaphores(seed):
    """Cut a random program at every point: the rest as a RESUME job, with what the first part leaves."""
    rng = random.Random(seed)
    bench = ControlBench(seed=seed, stall=0.1 * seed, latency=(1, 12))
    program = [*with_points(rng, random_program(rng, 16), 0.25), END]
    first = bench.code(*program)
    cuts = [pc + 1 for pc, i in enumerate(program) if i.op == Op.CANCEL][:4]
    for pc in cuts:
        done = [p for p in range(pc) if program[p].op not in (Op.CANCEL, Op.END)]
        left = counts(bench, program, [(what, None, p) for p in done for what in ("start", "done")])
        bench.job(flags=JobFlag.RESUME, body_pc=first + pc, **{f"sem{s}": n for s, n in enumerate(left)})

    async def testbench(ctx):
        await bench.enable(ctx)
        await bench.retired(ctx, len(cuts))

    bench.run(testbench)
    for index, pc in enumerate(cuts):
        completion = bench.completion(index)
        assert completion["status"] == Fault.NONE, f"seed {seed}, cut {pc}: {completion}"
        assert completion["instructions"] == sum(i.op not in (Op.CANCEL, Op.END) for i in program[pc:])


def test_every_semaphore_is_restored():
    bench = ControlBench(latency=(5, 5))
    wanted = [(7 * s + 3) % (PARAMS.semaphore_max + 1) for s in range(PARAMS.semaphores)]
    wanted[0], wanted[-1] = PARAMS.semaphore_max, 1
    bench.job(insn(Op.MAC, wait=(0,)), END)  # leaves nothing: it faults unless it is cleared
    bench.job(cancel(4), MAC, END, flags=JobFlag.RESUME, **{f"sem{s}": n for s, n in enumerate(wanted)})

    async def testbench(ctx):
        await bench.enable(ctx)
        await running(bench, ctx, 0x101)
        await bench.write(ctx, "control", ENABLE | PAUSE)
        await halted(bench, ctx)
        assert await semaphores(bench, ctx) == wanted

    bench.memory[0x1000 + 2 : 0x1000 + 4] = int(JobFlag.RESUME).to_bytes(2, "little")
    bench.memory[0x1000 + 64] = 1
    bench.run(testbench)
    assert bench.completion(0)["status"] == Fault.NONE


FEW = PARAMS.replace(semaphores=20, semaphore_max=7)


@pytest.mark.parametrize(("name", "count", "good"), [("sem19", 7, True), ("sem3", 8, False), ("sem20", 1, False)])
def test_counts_that_no_semaphore_can_have_are_a_descriptor_fault(name, count, good):
    bench = ControlBench(params=FEW)
    number = int(name[3:])
    waits = [insn(Op.MAC, wait=(number,))] * count if good else []
    bench.job(*waits, END, flags=JobFlag.RESUME, **{name: count})

    async def testbench(ctx):
        await bench.enable(ctx)
        if good:
            await bench.retired(ctx, 1)
        else:
            await bench.faulted(ctx)

    bench.run(testbench)
    assert bench.completion(0)["status"] == (Fault.NONE if good else Fault.DESCRIPTOR)
