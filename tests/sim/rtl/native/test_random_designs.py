"""Random logic: after every cycle all registers are as Amaranth's simulator has them."""

import pytest
from amaranth.sim import Simulator

from hw.contract.bus import HostCosts
from hw.contract.params import preset
from sim.rtl import SimTop
from sim.rtl.native import generate
from sim.rtl.native.build import native_bus
from tests.sim.rtl.native.random_soc import RandomSoc

PARAMS = preset("tiny").replace(dram_bytes=64 * 1024)
CYCLES = 400


def top(seed):
    return SimTop(PARAMS, RandomSoc(PARAMS, seed))


def interpreted(seed):
    """The registers of the random SoC after each cycle, by name."""
    design = top(seed)
    registers = [*design.soc.registers, *design.soc.noise]
    values = []

    async def watch(ctx):
        for _ in range(CYCLES):
            await ctx.tick()
            values.append({register.name: ctx.get(register.as_unsigned()) for register in registers})

    simulator = Simulator(design)
    simulator.add_clock(1e-9)
    simulator.add_testbench(watch)
    simulator.run()
    return values


def native(seed):
    values = []
    with native_bus(PARAMS, lambda: top(seed), costs=HostCosts.free()) as bus:
        for _ in range(CYCLES):
            bus.advance(1)
            words, now, at = bus.registers(), {}, 0
            for bits, name in bus.register_names:
                count = (bits + 63) // 64
                now[name] = sum(int(word) << 64 * k for k, word in enumerate(words[at : at + count]))
                at += count
            values.append({name.removeprefix("soc."): value for name, value in now.items()})
    return values


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 40))])
def test_every_register_in_every_cycle(seed):
    compared = set()
    for cycle, (a, b) in enumerate(zip(native(seed), interpreted(seed), strict=True)):
        common = a.keys() & b.keys()
        compared |= common
        different = {name: (hex(a[name]), hex(b[name])) for name in common if a[name] != b[name]}
        assert not different, f"seed {seed}, cycle {cycle}: native, interpreted"
    assert len(compared) > 40, "nearly all registers are compared"
    assert len({tuple(sorted(values.items())) for values in native(seed)}) == CYCLES, "and they change"


def test_an_operation_that_all_who_read_it_repeat_is_left_out():
    """A cheap one stays where it was until the other cheap ones that read it there are repeated, too."""
    assert generate(top(23))
