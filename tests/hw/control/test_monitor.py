"""Why MAC and VEC wait: every waiting cycle is counted once, against a model in Python."""

import random
from collections import Counter

import pytest

from hw.contract.isa import Unit
from hw.contract.job import SEMAPHORE_CLASSES
from hw.contract.params import preset
from hw.control.monitor import BODY_COUNTERS, TURN, Monitor
from hw.control.semaphores import SemaphoreFile
from tests.support.streams import simulate


def expected(missing: dict[str, int], busy: set[Unit], loading: bool) -> list[str]:
    """Counters that count a cycle."""
    result = []
    for unit, classes in missing.items():
        if not classes or Unit[unit.upper()] in busy:
            continue
        result.append(f"{unit}_waiting")
        if unit == "mac" and classes & 0b0101 and loading and not busy & {Unit.LD1, Unit.LD0}:
            result.append("mac_starved")
        else:
            result.append(f"{unit}_missing{next(c for c in range(SEMAPHORE_CLASSES) if classes >> c & 1)}")
    return result


async def read(ctx, dut: Monitor, name: str) -> int:
    """Return a counter; nothing is counted meanwhile."""
    ctx.set(dut.enable, 0)
    ctx.set(dut.wanted, 1)
    ctx.set(dut.read.addr, BODY_COUNTERS.index(name))
    await ctx.tick().repeat(2)
    return ctx.get(dut.read.data)


@pytest.mark.parametrize("seed", range(3))
def test_waiting_cycles_have_one_cause(seed):
    rng = random.Random(seed)
    dut = Monitor(preset("tiny"))
    counted: Counter[str] = Counter()

    async def testbench(ctx):
        for _ in range(400):
            missing = {"mac": rng.randrange(16), "vec": rng.choice([0, 1, 2, 4, 8, 12])}
            busy = {unit for unit in Unit if rng.random() < 0.3}
            enable, loading = rng.random() < 0.8, rng.random() < 0.5
            for number, unit in enumerate(("mac", "vec")):
                ctx.set(dut.missing[number], missing[unit])
            for unit in Unit:
                ctx.set(dut.activity[unit].busy, unit in busy)
            ctx.set(dut.loading, loading)
            ctx.set(dut.enable, enable)
            await ctx.tick()
            if enable:
                counted.update(expected(missing, busy, loading))
        values = {name: await read(ctx, dut, name) for name in BODY_COUNTERS}
        names = [name for name in values if "waiting" in name or "missing" in name or "starved" in name]
        assert len(names) == 2 + 1 + 2 * SEMAPHORE_CLASSES
        assert {name: values[name] for name in names} == {name: counted[name] for name in names}, f"seed {seed}"
        assert values["mac_waiting"] == values["mac_starved"] + sum(values[f"mac_missing{c}"] for c in range(4)) > 0

    simulate(dut, testbench)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_read_is_what_was_counted_until_then(seed):
    """While everything counts, in each cycle another counter: with the sums that are being written as well."""
    rng = random.Random(seed)
    dut = Monitor(preset("tiny"))
    counted: Counter[str] = Counter()
    most = preset("tiny").lv1_word
    checked: Counter[str] = Counter()

    async def testbench(ctx):
        turn, busiest, asked = 0, rng.random() < 0.5, None
        for cycle in range(3000):
            clear = rng.random() < 0.002
            enable = not clear and (busiest or rng.random() < 0.8)
            copied = {unit: most if busiest else rng.randint(0, most) for unit in Unit}
            extents = {unit: rng.getrandbits(rng.choice((8, 32))) for unit in Unit}
            # The counter whose turn it is now, the one ahead of it, or any.
            number = (turn // TURN - rng.choice((0, 1, rng.randrange(len(BODY_COUNTERS))))) % len(BODY_COUNTERS)
            ctx.set(dut.clear, clear)
            ctx.set(dut.enable, enable)
            ctx.set(dut.instructions, 1)
            ctx.set(dut.wanted, 1)
            ctx.set(dut.read.addr, number)
            for unit in Unit:
                ctx.set(dut.activity[unit].bytes, copied[unit])
                ctx.set(dut.activity[unit].extent, extents[unit])
                ctx.set(dut.activity[unit].extent_valid, 1)
            await ctx.tick()
            if clear:
                counted.clear()
            if enable:
                turn += 1
                counted["instructions"] += 1
                for unit in Unit:
                    name = unit.name.lower()
                    if f"{name}_bytes" in BODY_COUNTERS:
                        counted[f"{name}_bytes"] += copied[unit]
                        counted[f"{name}_occupancy"] = max(counted[f"{name}_occupancy"], extents[unit])
            if asked is not None:
                name, value = asked
                assert ctx.get(dut.read.data) == value, f"seed {seed}, cycle {cycle}: {name}"
                checked[name] += value > 0
            asked = BODY_COUNTERS[number], counted[BODY_COUNTERS[number]]
        wanted = {"instructions", *(name for name in BODY_COUNTERS if name.endswith(("bytes", "occupancy")))}
        assert set(+checked) == wanted and min(checked[name] for name in wanted) > 20

    simulate(dut, testbench)


def test_classes_of_missing_semaphores():
    dut = SemaphoreFile(preset("tiny"), units=2)

    async def testbench(ctx):
        ctx.set(dut.signal[0], 1 << 14)
        await ctx.tick()
        ctx.set(dut.signal[0], 0)
        ctx.set(dut.wait[0], 1 << 12 | 1 << 14 | 1 << 17)
        ctx.set(dut.wait[1], 1 << 31)
        assert [ctx.get(missing) for missing in dut.missing] == [0, 0]  # nobody asks
        ctx.set(dut.request, 0b11)
        assert [ctx.get(missing) for missing in dut.missing] == [0b0011, 0b1000]  # 14 is there
        ctx.set(dut.signal[0], 1 << 12 | 1 << 17)
        await ctx.tick()
        ctx.set(dut.signal[0], 0)
        assert ctx.get(dut.missing[0]) == 0 and ctx.get(dut.grant) == 0b01

    simulate(dut, testbench)
