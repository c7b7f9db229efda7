import random
from itertools import pairwise

from hw.contract.isa import Insn, Op, Unit
from hw.contract.params import preset
from hw.control.unit_queue import UnitQueue
from tests.support.streams import Stalls, check_held, feed, simulate, stream_get


def commands(count: int, wait: int = 0):
    insn = int.from_bytes(Insn(Op.MAC, {"wait": wait, "signal": 1} if wait else {"signal": 1}).encode(), "little")
    base = {"src_base": 0, "src_limit": 0, "dst_base": 0, "dst_limit": 0}
    return [base | {"insn": insn, "pc": pc} for pc in range(count)]


def test_commands_follow_each_other_with_one_idle_cycle():
    dut = UnitQueue(preset("tiny"), Unit.MAC)
    taken: list[tuple[int, int]] = []
    cycles = [0]

    async def unit(ctx):
        ctx.set(dut.cmd.ready, 1)
        while len(taken) < 12:
            ctx.set(dut.grant, ctx.get(dut.request))
            _, _, valid, pc = await ctx.tick().sample(dut.cmd.valid, dut.cmd.payload.pc)
            cycles[0] += 1
            ctx.set(dut.done, valid)
            if valid:
                taken.append((pc, cycles[0]))

    simulate(dut, feed(dut.push, commands(12, wait=2)), unit)
    assert [pc for pc, _ in taken] == list(range(12))
    gaps = [b - a for (_, a), (_, b) in pairwise(taken)]
    assert max(gaps) <= 3, gaps


def test_every_command_signals_once_in_order_under_stalls():
    dut = UnitQueue(preset("tiny"), Unit.MAC)
    rng = random.Random(5)
    flying: list[int] = []
    signals: list[int] = []

    async def unit(ctx):
        for pc in range(30):
            payload = await stream_get(ctx, dut.cmd, Stalls(pc, 0.5))
            assert payload.pc == pc
            flying.append(pc)

    async def finisher(ctx):
        while len(signals) < 30:
            done = bool(flying) and rng.random() < 0.3
            if done:
                flying.pop(0)
            ctx.set(dut.done, done)
            _, _, signal, pc = await ctx.tick().sample(dut.signal, dut.signal_pc)
            if signal:
                signals.append(pc)

    simulate(dut, feed(dut.push, commands(30), Stalls(1, 0.4)), unit, finisher, background=[check_held(dut.cmd, "cmd")])
    assert signals == list(range(30))
