"""The controller of an SDRAM chip: each finds what it wrote, the chip gets what it asks for, at every clock."""

import itertools
import random
from dataclasses import replace

import pytest
from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Elaboratable, Module
from amaranth.lib.wiring import connect

from hw.board import BoardTop
from hw.board.sdram_memory import SdramMemory
from hw.contract.params import KIB, MIB, ParamError, preset
from hw.contract.sdram import SdramTiming
from tests.hw.board.test_block_memory import DECERR, HALF, OKAY, WORD, host_bench, put, take, write_bench
from tests.support import streams
from tests.support.sdram_chip import WRONG, SdramChip
from tests.support.streams import Stalls, until

PARAMS = preset("nano").replace(dram_bytes=64 * KIB)
_LIMIT = 60_000  #: cycles


class Joined(Elaboratable):
    """A memory and its chip, which has the inverted clock, or, ``registers`` 1, the same."""

    def __init__(self, params, clock: float, registers: int = 2, size: int | None = None) -> None:
        self.memory = SdramMemory(params, SdramTiming.at(clock))
        self.chip = SdramChip(size or params.dram_bytes, clock, registers)
        self._inverted = registers == 2

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.memory = self.memory
        if self._inverted:
            m.domains.chip = ClockDomain(reset_less=True)
            m.d.comb += ClockSignal("chip").eq(~ClockSignal())
            m.submodules.chip = DomainRenamer("chip")(self.chip)
        else:
            m.submodules.chip = self.chip
        connect(m, self.memory.pins, self.chip.pins)
        return m


def simulate(dut: Joined, *benches) -> None:
    """Run, and see that nothing was done to the chip that it does not allow."""
    found = []

    async def watch(ctx):
        async for _, _, wrong in ctx.tick().sample(dut.chip.wrong):
            found[:] = [WRONG[bit] for bit in range(len(WRONG)) if wrong >> bit & 1]

    streams.simulate(dut, *benches, background=[watch], limit=_LIMIT)
    assert not found


@pytest.mark.parametrize(("clock", "registers"), [(25, 2), (50, 2), (3, 2), (25, 1)])
@pytest.mark.parametrize("stalling", [0.0, 0.5])
def test_both_sides_find_what_they_wrote(clock, registers, stalling):
    dut, bursts = Joined(PARAMS, clock, registers), []
    axi = write_bench(dut.memory.axi, random.Random(1), Stalls(2, stalling), bytearray(HALF), bursts)
    simulate(dut, axi, host_bench(dut.memory.host, random.Random(3), Stalls(4, stalling)))
    assert len(bursts) == 60


def test_rows_of_all_banks_are_kept_apart():
    """Single words all over the memory: their rows are opened and closed by turns."""
    dut, rng = Joined(PARAMS.replace(dram_bytes=MIB), 25), random.Random(5)
    words = [rng.randrange(MIB // WORD) for _ in range(150)]
    known = {}

    async def bench(ctx):
        for word in words + rng.sample(words, len(words)):
            if word not in known:
                known[word] = rng.getrandbits(64)
                await put(ctx, dut.memory.axi, "aw", Stalls(), addr=word * WORD, len=0, id=1)
                await put(ctx, dut.memory.axi, "w", Stalls(), data=known[word], strb=255, last=1)
                await take(ctx, dut.memory.axi, "b", Stalls(), "resp")
            else:
                await put(ctx, dut.memory.axi, "ar", Stalls(), addr=word * WORD, len=0, id=1)
                assert await take(ctx, dut.memory.axi, "r", Stalls(), "data") == [known[word]]
        assert ctx.get(dut.chip.activates) > len(words)

    simulate(dut, bench)


def test_words_of_a_burst_follow_each_other_every_four_cycles():
    dut, cycles = Joined(PARAMS, 25), []

    async def bench(ctx):
        ctx.set(dut.memory.axi.rready, 1)
        await put(ctx, dut.memory.axi, "ar", Stalls(), addr=0, len=15, id=1)
        cycle = 0
        while len(cycles) < 16:
            *_, valid = await ctx.tick().sample(dut.memory.axi.rvalid)
            cycle += 1
            if valid:
                cycles.append(cycle)

    simulate(dut, bench)
    gaps = [after - before for before, after in itertools.pairwise(cycles)]
    assert sorted(gaps) == [4] * 14 + [8], "a refresh lies in between: four cycles until the row is open again"


def test_it_refreshes_while_the_master_never_rests():
    """8,192 refreshes in 64 ms, and a burst within a page that is as long as bursts can be waits for them."""
    clock, bursts = 25, 20
    dut = Joined(PARAMS, clock)

    async def bench(ctx):
        await until(ctx, dut.chip.reads != 0)
        begin, before, cycles = ctx.get(dut.chip.refreshes), ctx.get(dut.chip.reads), 0
        while ctx.get(dut.chip.reads) < before + 256 * bursts - 1:
            await ctx.tick()
            cycles += 1
        refreshes = ctx.get(dut.chip.refreshes) - begin
        assert abs(refreshes - cycles / clock / 7.8125) < 2 and refreshes > 50

    async def master(ctx):
        ctx.set(dut.memory.axi.rready, 1)
        for _ in range(bursts):
            await put(ctx, dut.memory.axi, "ar", Stalls(), addr=0, len=255, id=1)

    simulate(dut, bench, master)


def test_a_master_that_does_not_take_what_it_reads_holds_up_nobody():
    dut = Joined(PARAMS, 25)

    async def bench(ctx):
        axi, host = dut.memory.axi, dut.memory.host
        await put(ctx, axi, "ar", Stalls(), addr=0, len=63, id=1)
        await put(ctx, axi, "aw", Stalls(), addr=256 * WORD, len=0, id=1)
        await put(ctx, axi, "w", Stalls(), data=7, strb=255, last=1)
        await take(ctx, axi, "b", Stalls(), "resp")
        ctx.set(host.req.payload, {"addr": 256})
        ctx.set(host.req.valid, 1)
        await until(ctx, host.req.ready)
        ctx.set(host.req.valid, 0)
        assert await until(ctx, host.rsp_valid, host.rsp_data) == [7]
        for beat in range(64):
            assert await take(ctx, axi, "r", Stalls(), "data", "last") == [0, beat == 63]

    simulate(dut, bench)


def test_a_burst_beyond_the_memory_is_refused_and_writes_nothing():
    """Bursts of 64 words: the chip has time for some of those that it must not get."""
    dut, words = Joined(PARAMS, 25), 64
    axi = dut.memory.axi

    async def bench(ctx):
        for address, value, answer in ((0, 7, OKAY), (PARAMS.dram_bytes, 90, DECERR), (words * WORD, 5, OKAY)):
            await put(ctx, axi, "aw", Stalls(), addr=address, len=words - 1, id=5)
            for number in range(words):
                await put(ctx, axi, "w", Stalls(), data=value + number, strb=255, last=number == words - 1)
            assert await take(ctx, axi, "b", Stalls(), "id", "resp") == [5, answer]
        for address, value, answer in ((PARAMS.dram_bytes, None, DECERR), (0, 7, OKAY)):
            await put(ctx, axi, "ar", Stalls(), addr=address, len=words - 1, id=5)
            for number in range(words):
                wanted = [0 if value is None else value + number, answer]
                assert await take(ctx, axi, "r", Stalls(), "data", "resp") == wanted

    simulate(dut, bench)


SHORTER = {  # what the chip says where the controller waits less for it
    "start": "a command before power was up",
    "after_refresh": "refreshed too early, or with a row open",
    "after_mode": "refreshed too early, or with a row open",
    "after_precharge": "activated too early, or a row is open",
    "to_column": "read or written too early, or no row is open",
    "row_open": "closed too early",
    "after_write": "closed too early",
}


@pytest.mark.parametrize("name", SHORTER)
def test_the_chip_tells_where_a_time_is_too_short(name):
    """At 50 MHz, where each takes two cycles at least; words of two rows of the same bank by turns."""
    dut, whole, bursts = Joined(PARAMS, 50), SdramTiming.at(50), []
    dut.memory._timing = replace(whole, **{name: getattr(whole, name) - 1})

    async def bench(ctx):
        axi = dut.memory.axi
        for number in range(500):
            await put(ctx, axi, "aw", Stalls(), addr=4 * KIB * (number % 2), len=0, id=1)
            await put(ctx, axi, "w", Stalls(), data=number, strb=255, last=1)
            await take(ctx, axi, "b", Stalls(), "resp")
            await put(ctx, axi, "ar", Stalls(), addr=4 * KIB * (1 - number % 2), len=0, id=1)
            await take(ctx, axi, "r", Stalls(), "resp")
            bursts.append(number)

    with pytest.raises(AssertionError, match=SHORTER[name]):
        simulate(dut, bench)
    assert bursts[-1] == 499


def test_the_chip_tells_where_it_is_refreshed_too_seldom():
    dut, bursts = Joined(PARAMS, 25), []
    whole = SdramTiming.at(25)
    dut.memory._timing = replace(whole, refresh=2 * whole.refresh + 8)
    with pytest.raises(AssertionError, match="not refreshed for too long"):
        simulate(dut, write_bench(dut.memory.axi, random.Random(1), Stalls(), bytearray(HALF), bursts))
    assert bursts


@pytest.mark.parametrize("clock", [0, 50.5, -1])
def test_a_clock_that_it_does_not_work_at_is_refused(clock):
    with pytest.raises(ValueError, match=f"up to 50 MHz here, not at {clock:g}: choose a slower clock"):
        SdramTiming.at(clock)


def test_more_than_the_chip_has_is_refused():
    with pytest.raises(ParamError, match="'nano': with SDRAM dram_bytes must be at most 33554432, not 67108864"):
        BoardTop(preset("nano").replace(dram_bytes=64 * MIB), 2, SdramTiming.at(25))
