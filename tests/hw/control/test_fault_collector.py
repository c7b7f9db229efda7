"""Which fault is kept where several come at a time, against a model in Python."""

import random

import pytest

from hw.contract.isa import Unit
from hw.contract.job import Fault
from hw.contract.params import preset
from hw.contract.timing import STUCK_CYCLES
from hw.control.faults import FaultCollector
from hw.interfaces import PC
from tests.support.streams import simulate

PARAMS = preset("tiny")
UNITS = range(len(Unit))


def some(rng: random.Random) -> list[int]:
    """Units, often none or one."""
    return sorted(rng.sample(UNITS, rng.choice((0, 0, 1, 2, len(UNITS)))))


def bits(units: list[int]) -> int:
    return sum(1 << unit for unit in units)


@pytest.mark.parametrize("seed", range(40))
def test_the_first_unit_of_the_first_kind_is_told(seed):
    rng = random.Random(seed)
    dut = FaultCollector(PARAMS)
    failing, signalling, stuck = some(rng), some(rng), some(rng)
    if not failing + signalling + stuck:
        stuck = [rng.choice(UNITS)]
    infos = [(rng.choice((Fault.LIMIT, Fault.BUS)), rng.getrandbits(PC), rng.getrandbits(32)) for _ in UNITS]
    signalled_pcs, head_pcs = ([rng.getrandbits(PC) for _ in UNITS] for _ in range(2))
    overflow = 1 << rng.randrange(PARAMS.semaphores)
    signals = [rng.getrandbits(PARAMS.semaphores) & ~overflow | (overflow if u in signalling else 0) for u in UNITS]
    waits = [rng.getrandbits(PARAMS.semaphores) for _ in UNITS]
    nonzero = rng.getrandbits(PARAMS.semaphores)
    if failing:
        code, pc, address = infos[failing[0]]
        wanted = (code, failing[0], pc, address)
    elif signalling:
        wanted = (Fault.SEMAPHORE_OVERFLOW, signalling[0], signalled_pcs[signalling[0]], overflow)
    else:
        wanted = (Fault.SEMAPHORE_UNDERFLOW, stuck[0], head_pcs[stuck[0]], waits[stuck[0]] & ~nonzero)

    async def testbench(ctx):
        for unit in UNITS:
            for name, value in zip(("code", "pc", "addr"), infos[unit], strict=True):
                ctx.set(dut.unit_info[unit][name], value)
            ctx.set(dut.wait[unit], waits[unit])
            ctx.set(dut.head_pc[unit], head_pcs[unit])
        ctx.set(dut.nonzero, nonzero)
        ctx.set(dut.blocked, 1)
        ctx.set(dut.stuck, bits(stuck))
        ctx.set(dut.idle, ~bits(stuck) & bits(list(UNITS)))
        await ctx.tick().repeat(STUCK_CYCLES - 1)
        for unit in UNITS:
            ctx.set(dut.signal[unit], signals[unit])
            ctx.set(dut.signal_pc[unit], signalled_pcs[unit])
        ctx.set(dut.overflow, overflow if signalling else 0)
        await ctx.tick()
        assert not ctx.get(dut.fault)
        ctx.set(dut.overflow, 0)
        ctx.set(dut.unit_fault, bits(failing))
        await ctx.tick()
        assert ctx.get(dut.fault), f"seed {seed}"
        told = tuple(ctx.get(dut.info[name]) for name in ("code", "unit", "pc", "addr"))
        assert told == wanted, f"seed {seed}"
        # The first one stays.
        ctx.set(dut.unit_fault, bits(list(UNITS)))
        await ctx.tick()
        assert tuple(ctx.get(dut.info[name]) for name in ("code", "unit", "pc", "addr")) == wanted

    simulate(dut, testbench)
