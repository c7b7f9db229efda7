"""Random register, memory and job traffic on the real SoC: the default backend agrees with the reference."""

import random

import pytest

from hw.contract.bus import HostCosts
from hw.contract.isa import FORMATS, Insn, Op
from hw.contract.params import preset
from hw.contract.regs import register_map
from sim.rtl import open_bus
from tests.hw.soc_bench import DATA_BYTES, END, LV2_BYTES, SocBench, copy
from tests.support.raw_insns import COPIES, legal, raw

TINY = preset("tiny")
COSTS = HostCosts(register_access=7, memory_line=3, interrupt=20, decision=0)
ROUNDS = 6
RUN = 600  #: cycles after which a round is looked at, finished or not


class Bench(SocBench):
    """The SoC bench over a bus of one's own."""

    def __init__(self, bus) -> None:
        self.params, self.bus = bus.params, bus
        self.jobs, self.code = [0] * self.params.engines, [0] * self.params.engines


def random_copies(rng):
    """DRAM to LV2 to LV1 to LV0 and back to DRAM; now and then beyond a limit."""
    size = rng.choice((1, 7, 32, 100))
    far = rng.choice((0, 0, 0, DATA_BYTES))
    src, dst = rng.randrange(256), rng.randrange(LV2_BYTES - size)
    return [
        copy(Op.LD2, signal=1, len=size, src=src + far, dst=dst),
        copy(Op.LD1, wait=1, signal=2, len=size, src=dst, dst=rng.randrange(64)),
        copy(Op.LD0, wait=2, signal=4, len=size, space=rng.randrange(2), view=rng.randrange(2), pe_mask=3),
        copy(Op.ST1, wait=4, signal=8, len=size, src=rng.randrange(64), dst=dst),
        copy(Op.ST2, wait=8, len=size, src=dst, dst=0x1000 + rng.randrange(256)),
    ]


def random_compute(rng):
    """A product of whatever LV0 holds, requantised with whatever parameters LV1 holds, next to copies."""
    pixels = rng.randrange(1, 12)
    product = {"n0": rng.randrange(1, 4), "p0": pixels, "p0_s": rng.randrange(3), "k0_s": 1, "x_zp": rng.randrange(256)}
    product |= {"w_signed": rng.randrange(2), "mode": rng.choice((0, 0, 1)), "accumulate": rng.randrange(2)}
    vector = {"src_acc": 1, "n1": pixels, "a_s1": 1, "d_s1": 8, "d": 0x400, "p": 0x800, "table": rng.randrange(2)}
    return [
        Insn(Op.MAC, {"signal": 1} | product),
        Insn(Op.VEC, {"wait": 1, "signal": 2} | vector),
        copy(Op.ST1, wait=2, signal=4, len=64, src=0x400, dst=0),
        copy(Op.ST2, wait=4, len=64, dst=0x1000),
    ]


def random_garbage(rng):
    """Any fields at all: most end in a fault."""
    op = rng.choice((Op.LD2, Op.ST2, Op.LD1, Op.LD0, Op.MAC, Op.VEC))
    names = [f for f in FORMATS[op] if f.name not in ("opcode", "wait", "signal")]
    fields = {f.name: rng.randint(max(f.minimum, -40), min(f.maximum, 40)) for f in rng.sample(names, 4)}
    if op in COPIES and rng.random() < 0.75:  # with any others it is illegal
        fields |= {name: legal(op)[name] for name in ("src_seg", "dst_seg")}
    return [raw(op, **fields)]


def submit(bench, rng):
    kinds = (random_copies, random_compute, random_garbage)
    for _ in range(rng.randrange(1, 4)):
        prologue = [copy(Op.LD2, len=64, src=rng.randrange(128)), END] if rng.random() < 0.5 else None
        bench.job([*rng.choice(kinds)(rng), END], prologue, cycle_limit=rng.choice((0, 0, 300)))
    bench.ring()


def traffic(bus, seed, rounds=ROUNDS):
    """Everything the host sees of a few rounds of jobs."""
    rng, seen = random.Random(seed), []
    bench = Bench(bus)
    bus.write_mem(bench.data(), rng.randbytes(512), charge=False)
    bench.setup()
    registers = sorted(register_map(TINY.engines).values())
    for _ in range(rounds):
        submit(bench, rng)
        seen.append(bus.wait_irq(RUN))
        bus.advance(rng.randrange(RUN // 2))
        seen += [(address, bus.read_reg(address)) for address in rng.sample(registers, 8)]
        seen += [bench.read(name) for name in ("STATUS", "RING_HEAD", "FAULT_CODE", "FAULT_PC", "FAULT_ADDR")]
        seen.append(bus.read_mem(0, 0x8000, charge=False))
        seen.append(bus.cycle)
        if rng.random() < 0.5:  # in mid-flight as well
            bench.write("CONTROL", 2)
            bus.advance(200)
            bench.setup()
    return seen


@pytest.mark.parametrize(
    ("seed", "rounds"), [(0, 3), *(pytest.param(seed, ROUNDS, marks=pytest.mark.slow) for seed in range(5))]
)
def test_random_jobs(seed, rounds):
    with open_bus(TINY, costs=COSTS) as compiled, open_bus(TINY, "pysim", costs=COSTS) as reference:
        observed = (traffic(bus, seed, rounds) for bus in (compiled, reference))
        for number, (a, b) in enumerate(zip(*observed, strict=True)):
            assert a == b, f"observation {number}"
