import random
from itertools import pairwise

import pytest

from hw.contract.isa import INSN_BYTES
from hw.contract.job import Fault
from hw.contract.params import preset
from hw.contract.timing import FETCH_AHEAD
from hw.control.fetch import InstructionFetch
from tests.support.memories import serve_bus_read
from tests.support.streams import Stalls, check_held, simulate, stream_get

MEMORY = 1 << 14


class Bench:
    """A fetch unit on a random memory; ``bursts`` lists (address, beats) of all it asked for."""

    def __init__(self, name: str = "tiny", *, stall: float = 0.0, latency: int = 5, errors=frozenset()) -> None:
        self.params = preset(name)
        self.dut = InstructionFetch(self.params)
        self.memory = bytearray(random.Random(name).randbytes(MEMORY))
        self.stalls = Stalls(1, stall)
        self.bursts: list[tuple[int, int]] = []
        self._bus = serve_bus_read(
            self.dut.bus, self.memory, latency=latency, stalls=Stalls(2, stall), log=self.bursts,
            errors={address // self.params.dram_word for address in errors},
        )  # fmt: skip

    async def start(self, ctx, pc: int, base: int, limit: int) -> None:
        for name, value in (("pc", pc), ("base", base), ("limit", limit), ("start", 1)):
            ctx.set(getattr(self.dut, name), value)
        await ctx.tick()
        ctx.set(self.dut.start, 0)

    async def flush(self, ctx) -> None:
        ctx.set(self.dut.flush, 1)
        await ctx.tick()
        ctx.set(self.dut.flush, 0)

    async def expect(self, ctx, pc: int, base: int, fault: Fault = Fault.NONE) -> None:
        got = await stream_get(ctx, self.dut.insn, self.stalls)
        assert (got.pc, got.fault) == (pc, fault)
        if fault == Fault.NONE:
            at = base + pc * INSN_BYTES
            assert got.insn == int.from_bytes(self.memory[at : at + INSN_BYTES], "little"), f"PC {pc}"

    async def quiet(self, ctx) -> None:
        for _ in range(500):
            if ctx.get(self.dut.quiet):
                return
            await ctx.tick()
        raise AssertionError("transactions stay outstanding")

    def run(self, testbench) -> None:
        simulate(self.dut, testbench, background=[*self._bus, check_held(self.dut.bus.req, "req")])

    def addresses(self) -> list[int]:
        """Byte address of every word that was read."""
        word = self.params.dram_word
        return [at + i * word for at, beats in self.bursts for i in range(beats)]


@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("name", ["tiny", "base", "cluster64"])
def test_instructions_come_in_order_across_pages_up_to_the_limit(name, stall):
    """64 bytes past the limit are not read, and bursts end at 4 KiB (the memory checks that)."""
    bench = Bench(name, stall=stall)
    base, count, first = 4096 - 5 * INSN_BYTES, 40, 2

    async def testbench(ctx) -> None:
        await bench.start(ctx, first, base, count * INSN_BYTES + 63)
        for pc in range(first, count):
            await bench.expect(ctx, pc, base)
        for _ in range(3):  # for as long as somebody asks
            await bench.expect(ctx, count, base, Fault.LIMIT)
        await bench.quiet(ctx)

    bench.run(testbench)
    addresses = bench.addresses()
    assert addresses[0] == base + first * INSN_BYTES
    assert all(b - a == bench.params.dram_word for a, b in pairwise(addresses))
    assert addresses[-1] + bench.params.dram_word == base + count * INSN_BYTES


@pytest.mark.parametrize("pc", [4, 5, 2**24 - 1])
def test_a_start_beyond_the_segment_reads_nothing(pc):
    bench = Bench()

    async def testbench(ctx) -> None:
        await bench.start(ctx, pc, 0, 4 * INSN_BYTES)
        await bench.expect(ctx, pc, 0, Fault.LIMIT)
        await ctx.tick().repeat(20)

    bench.run(testbench)
    assert not bench.bursts


@pytest.mark.parametrize("beat", range(8))
def test_a_bus_error_marks_its_instruction_only(beat):
    bench = Bench(errors={3 * INSN_BYTES + 8 * beat}, stall=0.2)

    async def testbench(ctx) -> None:
        await bench.start(ctx, 0, 0, 8 * INSN_BYTES)
        for pc in range(8):
            await bench.expect(ctx, pc, 0, Fault.BUS if pc == 3 else Fault.NONE)

    bench.run(testbench)


def test_it_reads_ahead_and_no_further():
    bench = Bench(latency=40)

    async def testbench(ctx) -> None:
        await bench.start(ctx, 0, 0, MEMORY)
        await ctx.tick().repeat(400)
        assert len(bench.addresses()) == FETCH_AHEAD * INSN_BYTES // bench.params.dram_word
        cycles = 0
        for pc in range(FETCH_AHEAD):
            await bench.expect(ctx, pc, 0)
        async for _ in ctx.tick():
            cycles += 1
            if cycles > 100:
                break
        assert len(bench.addresses()) > FETCH_AHEAD * INSN_BYTES // bench.params.dram_word

    bench.run(testbench)


@pytest.mark.parametrize("taken", [0, 1, 3])
@pytest.mark.parametrize("wait", [1, 2, 7, 30])
def test_after_a_flush_nothing_old_is_seen(taken, wait):
    bench = Bench(stall=0.2, latency=25)

    async def testbench(ctx) -> None:
        for round_, base in enumerate((0, 2048, 4096 + 64)):
            await bench.start(ctx, round_, base, 20 * INSN_BYTES)
            for pc in range(round_, round_ + taken):
                await bench.expect(ctx, pc, base)
            await ctx.tick().repeat(wait)
            await bench.flush(ctx)
            assert not ctx.get(bench.dut.running) and not ctx.get(bench.dut.insn.valid)
        await bench.start(ctx, 3, 8192, 20 * INSN_BYTES)
        for pc in range(3, 20):
            await bench.expect(ctx, pc, 8192)
        await bench.flush(ctx)
        await bench.quiet(ctx)

    bench.run(testbench)
