"""A pause while a prologue loads: its loads are abandoned, and those that had not landed run again. With stub units."""

import random

import pytest

from hw.contract.isa import Op, Unit
from hw.contract.job import Fault, FaultUnit
from tests.hw.control.bench import END, ControlBench, insn
from tests.hw.control.test_pause import ENABLE, MAC, PAUSE, all_quiet, cancel, halted, in_job

LD2 = insn(Op.LD2)
PROMPT = 60  #: cycles from a pause to HALTED where nothing but loads is under way, register writes included


def what_happened(bench: ControlBench, kind: str) -> list[int]:
    """PCs of the loads that started, or were done, in order."""
    return [pc for what, unit, pc in bench.order if what == kind and unit == Unit.LD2]


def check_loads(bench: ControlBench, pcs: list[int]) -> None:
    """Each load is done once, in order; what starts again is the oldest that was not, with all that follow."""
    assert what_happened(bench, "done") == pcs
    waiting, flying = list(pcs), list[int]()
    for what, unit, pc in bench.order:
        if unit != Unit.LD2:
            continue
        if what == "start":
            assert pc == waiting[len(flying)], f"load {pc} after {flying}"
            flying.append(pc)
        elif what == "done":
            assert pc == waiting.pop(0) == flying.pop(0)
        else:
            flying.clear()


async def pause(bench: ControlBench, ctx) -> None:
    await bench.write(ctx, "control", ENABLE | PAUSE)


async def go_on(bench: ControlBench, ctx) -> None:
    await bench.write(ctx, "control", ENABLE)


async def first_load(bench: ControlBench, ctx) -> None:
    while not bench.units[Unit.LD2].log:
        await ctx.tick()


@pytest.mark.parametrize("stall", [0.3, pytest.param(0.0, marks=pytest.mark.slow)])
def test_long_loads_hold_nothing_up(stall):
    bench = ControlBench(seed=3, stall=stall, latency=(5, 5))
    bench.fixed_latency = {Unit.LD2: 700}
    bench.job(MAC, END, prologue=(*[LD2] * 3, END))

    async def testbench(ctx):
        await bench.enable(ctx)
        while len(what_happened(bench, "done")) < 1:
            await ctx.tick()
        await ctx.tick().repeat(20)
        await pause(bench, ctx)
        await halted(bench, ctx, PROMPT)
        assert not in_job(bench, ctx) and all_quiet(bench, ctx)
        assert bench.read(ctx, "ring_loaded") == 0
        assert bench.read(ctx, "status") >> 4 & 1, "the prologue is not over"
        before = len(bench.order)
        await ctx.tick().repeat(300)
        assert len(bench.order) == before and all_quiet(bench, ctx)
        await go_on(bench, ctx)
        await bench.retired(ctx, 1)

    bench.run(testbench)
    check_loads(bench, [2, 3, 4])
    assert what_happened(bench, "start").count(2) == 1, "what has landed is not loaded again"
    assert len(what_happened(bench, "start")) > 3


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))])
def test_pauses_at_random_times_load_everything_once(seed):
    rng = random.Random(seed)
    bench = ControlBench(seed=seed, stall=0.15 * (seed % 3), latency=(1, 60))
    bench.linger = rng.choice((1, 3, 25))
    bench.job(MAC, END, prologue=(*[LD2] * 12, END))
    bench.job(*[MAC, cancel(1)] * 4, END, prologue=(*[LD2] * 5, END))
    halts = 0

    async def testbench(ctx):
        nonlocal halts
        await bench.enable(ctx)
        for _ in range(100):
            await ctx.tick().repeat(rng.randrange(50, 400))
            await pause(bench, ctx)
            if rng.random() < 0.3:
                await ctx.tick().repeat(rng.randrange(1, 12))
            else:
                await halted(bench, ctx, 300)
                assert all_quiet(bench, ctx), f"seed {seed}"
                halts += 1
            await go_on(bench, ctx)
            if bench.read(ctx, "ring_head") == 2:
                break

    bench.run(testbench)
    assert halts and what_happened(bench, "dropped"), f"seed {seed}"
    check_loads(bench, [*range(2, 14), *range(24, 29)])
    for index in range(2):
        assert bench.completion(index)["status"] == Fault.NONE


@pytest.mark.parametrize("length", [1, 4, 30, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3, 6, 9, 14, 40))])
def test_pause_withdrawn_while_the_unit_is_being_emptied(length):
    bench = ControlBench(latency=(40, 40))
    bench.linger = 25
    bench.job(MAC, END, prologue=(*[LD2] * 6, END))

    async def testbench(ctx):
        await bench.enable(ctx)
        await first_load(bench, ctx)
        await ctx.tick().repeat(30)
        await pause(bench, ctx)
        await ctx.tick().repeat(length)
        await go_on(bench, ctx)
        await bench.retired(ctx, 1)

    bench.run(testbench)
    check_loads(bench, [*range(2, 8)])


@pytest.mark.slow
def test_pause_in_any_cycle_of_a_prologue():
    """Also in the cycle in which a load is done, is taken by the unit, or the prologue ends."""
    dropped, loaded_at_halt = set(), set()
    for after in range(1, 61):
        bench = ControlBench(latency=(14, 14))  # the next load is taken before the last is done
        bench.job(MAC, END, prologue=(LD2, LD2, LD2, END))

        async def testbench(ctx, bench=bench, after=after):
            await bench.enable(ctx)
            await first_load(bench, ctx)
            await ctx.tick().repeat(after)
            await pause(bench, ctx)
            begun = bench.read(ctx, "ring_loaded")  # then a pause may come too late for this body
            await halted(bench, ctx, 300 if begun else PROMPT)
            assert all_quiet(bench, ctx), after
            loaded_at_halt.add(bench.read(ctx, "ring_loaded"))
            await go_on(bench, ctx)
            await bench.retired(ctx, 1)

        bench.run(testbench)
        check_loads(bench, [2, 3, 4])
        dropped.add(tuple(what_happened(bench, "dropped")))
    assert loaded_at_halt == {0, 1}
    assert {(), (2,), (2, 3), (3, 4), (4,)} <= dropped


def test_pause_behind_the_end_of_a_prologue_whose_load_has_not_landed():
    bench = ControlBench(latency=(5, 5))
    bench.fixed_latency = {Unit.LD2: 500}
    bench.job(MAC, END, prologue=(LD2, END))

    async def testbench(ctx):
        await bench.enable(ctx)
        await first_load(bench, ctx)
        await ctx.tick().repeat(100)
        await pause(bench, ctx)
        await halted(bench, ctx, PROMPT)
        assert bench.read(ctx, "ring_loaded") == 0
        await go_on(bench, ctx)
        await bench.retired(ctx, 1)

    bench.run(testbench)
    check_loads(bench, [2])
    assert what_happened(bench, "start") == [2, 2]


def test_body_halts_beside_a_prologue_and_a_freed_window_starts_nothing():
    bench = ControlBench(latency=(25, 25))
    bench.fixed_latency = {Unit.LD2: 900}
    bench.job(*[MAC] * 12, cancel(1), MAC, END)
    bench.job(MAC, END, prologue=(*[LD2] * 2, END))
    bench.job(MAC, END, prologue=(LD2, END), window_after=2)

    async def testbench(ctx):
        await bench.enable(ctx)
        await first_load(bench, ctx)
        await pause(bench, ctx)
        await halted(bench, ctx, 12 * 25 + PROMPT)
        assert in_job(bench, ctx) and all_quiet(bench, ctx)
        assert bench.read(ctx, "ring_loaded") == 1
        await go_on(bench, ctx)
        await bench.retired(ctx, 3, 6000)

    bench.run(testbench)
    check_loads(bench, [17, 18, 22])


@pytest.mark.slow
def test_body_load_behind_an_abandoned_prologue_runs():
    """The point lies behind a load that waits for the unit."""
    bench = ControlBench(latency=(25, 25))
    first = bench.job(*[MAC] * 12, LD2, *[MAC] * 20, cancel(1), MAC, END)
    bench.job(MAC, END, prologue=(LD2, LD2, END))
    own, loads = 12, [38, 39]
    bench.fixed_latency = {(Unit.LD2, pc): 2000 for pc in loads}

    async def testbench(ctx):
        await bench.enable(ctx)
        await first_load(bench, ctx)
        await ctx.tick().repeat(300)
        assert what_happened(bench, "start") == loads, "the body's load waits"
        await pause(bench, ctx)
        await halted(bench, ctx, 33 * 25)
        assert in_job(bench, ctx) and all_quiet(bench, ctx)
        assert what_happened(bench, "done") == [own]
        await go_on(bench, ctx)
        await bench.retired(ctx, 2, 6000)

    bench.run(testbench)
    assert what_happened(bench, "done") == [own, *loads]
    assert bench.completion(first)["ld2_busy"] <= 30, "loads of the other job count for that"


@pytest.mark.slow
def test_fault_of_a_load_in_any_cycle_around_the_pause():
    """Whether the loader hears of it, drops it with its load, or meets it only later: it is reported for its job."""
    starts = set()
    for after in range(16, 44):
        bench = ControlBench(latency=(20, 20))
        bench.job(*[MAC] * 20, cancel(1), MAC, END)
        bench.job(MAC, END, prologue=(*[LD2] * 4, END))
        bench.unit_faults[Unit.LD2, 26] = (Fault.BUS, 0x99)

        async def testbench(ctx, bench=bench, after=after):
            await bench.enable(ctx)
            await first_load(bench, ctx)
            await ctx.tick().repeat(after)
            await pause(bench, ctx)
            await halted(bench, ctx)
            assert in_job(bench, ctx) and all_quiet(bench, ctx), after
            await go_on(bench, ctx)
            await bench.faulted(ctx)
            assert bench.read(ctx, "fault_job") == 0x101
            assert bench.read(ctx, "fault_code") == Fault.BUS | FaultUnit.LD2 << 8
            assert (bench.read(ctx, "fault_pc"), bench.read(ctx, "fault_addr")) == (26, 0x99)

        bench.run(testbench)
        assert bench.completion(0)["status"] == Fault.NONE
        starts.add((what_happened(bench, "start").count(26), what_happened(bench, "fault").count(26)))
    assert starts == {(1, 1), (2, 1), (2, 2)}, "heard of, abandoned in time, and dropped"


def test_loads_before_a_faulty_instruction_are_abandoned_too():
    bench = ControlBench(latency=(10, 10))
    bench.fixed_latency = {Unit.LD2: 800}
    bench.job(*[MAC] * 40, cancel(1), MAC, END)
    bench.job(MAC, END, prologue=(LD2, bytes(64), END))

    async def testbench(ctx):
        await bench.enable(ctx)
        await first_load(bench, ctx)
        await ctx.tick().repeat(60)
        await pause(bench, ctx)
        await halted(bench, ctx, 40 * 10 + PROMPT)
        assert all_quiet(bench, ctx)
        await go_on(bench, ctx)
        await bench.faulted(ctx)
        assert bench.read(ctx, "fault_code") == Fault.ILLEGAL | FaultUnit.LOADER << 8

    bench.run(testbench)


def test_counters_tell_what_the_unit_did():
    def run(paused: bool) -> dict[str, int]:
        bench = ControlBench(latency=(50, 50))
        bench.job(MAC, END, prologue=(*[LD2] * 4, END))

        async def testbench(ctx):
            await bench.enable(ctx)
            await first_load(bench, ctx)
            await ctx.tick().repeat(70)
            if paused:
                await pause(bench, ctx)
                await halted(bench, ctx)
                await ctx.tick().repeat(500)
                await go_on(bench, ctx)
            await bench.retired(ctx, 1)

        bench.run(testbench)
        return bench.completion(0)

    undisturbed, paused = run(False), run(True)
    # Half a load was abandoned, after one that had landed; HALTED itself counts for nothing.
    assert undisturbed["prologue_bytes"] < paused["prologue_bytes"] < 1.25 * undisturbed["prologue_bytes"]
    assert undisturbed["prologue_busy"] < paused["prologue_busy"] < 1.25 * undisturbed["prologue_busy"]
    assert undisturbed["prologue_start"] == paused["prologue_start"]
    assert paused["prologue_end"] - paused["prologue_start"] > 700
