"""A component before and after synthesis, side by side."""

import random
from collections.abc import Callable, Collection
from pathlib import Path

from amaranth.hdl import Value
from amaranth.lib import wiring
from amaranth.sim import Simulator

from caesura.fpga import synthesise, with_own_ports
from sim.gates import GateNetlist, GateSimulator

#: Makes the value of an input port from its name and its bits.
Choice = Callable[[random.Random, str, int], int]


def gates(component: wiring.Component, work: Path) -> GateNetlist:
    """``component`` in cells of an ECP5; ``work`` is a folder for what is made on the way."""
    return GateNetlist(synthesise(with_own_ports("tested", component), work))


def any_value(rng: random.Random, name: str, bits: int) -> int:
    """All bits at random, or now and then all alike."""
    return rng.choice((rng.getrandbits(bits), rng.getrandbits(bits), rng.getrandbits(bits), 0, (1 << bits) - 1))


def co_simulate(
    make: Callable[[], wiring.Component],
    netlist: GateNetlist,
    cycles: int,
    seed: int,
    choice: Choice = any_value,
    undefined: Collection[str] = (),
    begin: int = 0,
) -> int:
    """Give the RTL and the netlist the same random inputs, and compare all outputs but the ``undefined`` in every cycle
    from ``begin`` on. Returns how many values the outputs took, so that a test can see that something happened."""
    rng, component, simulated = random.Random(seed), make(), GateSimulator(netlist)
    flat = list(component.signature.flatten(component))
    ports = [("__".join(map(str, path)), member.flow == wiring.In, Value.cast(value)) for path, member, value in flat]
    seen = set[tuple[str, int]]()

    async def bench(ctx):
        for cycle in range(cycles):
            for name, is_input, value in ports:
                if is_input:
                    chosen = choice(rng, name, len(value))
                    ctx.set(value.as_unsigned(), chosen)
                    if name in netlist.ports:
                        simulated.set(name, chosen)
            for name, is_input, value in ports:
                if not is_input and name not in undefined and cycle >= begin:
                    wanted, found = ctx.get(value.as_unsigned()), simulated.get(name)
                    seen.add((name, wanted))
                    assert found == wanted, f"cycle {cycle}: {name} is {found:#x} after synthesis, not {wanted:#x}"
            simulated.clock()
            await ctx.tick()

    simulator = Simulator(component)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return len(seen)
