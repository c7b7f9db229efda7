"""The AXI4-Lite slave and register files under every order and timing of the channels."""

import random
from collections import deque
from itertools import pairwise

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect, flipped

from hw.contract.regs import ENGINE_STRIDE, Access, Reg
from hw.csr import ADDR_BITS, RESP_OKAY, RESP_SLVERR, CsrSlave, RegisterFile
from hw.interfaces import Axi4Lite
from tests.support.streams import Stalls, simulate, until

BLOCKS, ROWS, FIXED = 2, 4, 0xC0FFEE
TABLE = (
    Reg("PLAIN", 0x00, Access.RW, "a number"),
    Reg("FIXED", 0x08, Access.RO, "a constant"),
    Reg("GO", 0x0C, Access.WO, "a trigger"),
    Reg("TABLE", 0x40, Access.RW, "rows with an owner that takes its time", count=ROWS),
)


class Slave(wiring.Component):
    """Two register blocks of :data:`TABLE` behind one slave."""

    def __init__(self) -> None:
        super().__init__({"axil": In(Axi4Lite(ADDR_BITS))})
        self.files = [RegisterFile(TABLE) for _ in range(BLOCKS)]

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.slave = slave = CsrSlave(BLOCKS)
        connect(m, flipped(self.axil), slave.axil)
        for b, file in enumerate(self.files):
            m.submodules[f"file{b}"] = file
            connect(m, slave.block[b], file.bus)
            plain = file.regs.plain
            with m.If(plain.w_stb):
                m.d.sync += plain.r_data.eq(plain.w_data)
            m.d.comb += [file.regs.fixed.r_data.eq(FIXED + b), file.regs.go.r_data.eq(0xBAD)]
        return m


class Master:
    """Five channels that pause independently of each other; ``order`` lists responses as they come."""

    def __init__(self, axil, stalls: dict[str, Stalls]) -> None:
        self.axil, self.stalls = axil, stalls
        self.queue: dict[str, deque] = {name: deque() for name in ("aw", "w", "ar")}
        self.order: list[tuple] = []

    def testbenches(self) -> list:
        return [self._send("aw", "addr"), self._send("w", "data", "strb"), self._send("ar", "addr"),
                self._receive("b", "resp"), self._receive("r", "resp", "data")]  # fmt: skip

    def _wire(self, channel: str, name: str):
        return getattr(self.axil, channel + name)

    def _send(self, channel: str, *names: str):
        async def testbench(ctx) -> None:
            valid, ready = self._wire(channel, "valid"), self._wire(channel, "ready")
            while True:
                while not self.queue[channel]:
                    await ctx.tick()
                await self.stalls[channel].wait(ctx)
                for name, value in zip(names, self.queue[channel].popleft(), strict=True):
                    ctx.set(self._wire(channel, name), value)
                ctx.set(valid, 1)
                await until(ctx, ready)
                ctx.set(valid, 0)

        return testbench

    def _receive(self, channel: str, *names: str):
        async def testbench(ctx) -> None:
            valid, ready = self._wire(channel, "valid"), self._wire(channel, "ready")
            wires = [self._wire(channel, name) for name in names]
            held = None
            while True:
                stall = self.stalls[channel]()
                ctx.set(ready, not stall)
                _, _, offered, *values = await ctx.tick().sample(valid, *wires)
                assert held is None or (offered and values == held), f"{channel} changed before it was taken"
                held = values if offered and stall else None
                if offered and not stall:
                    self.order.append((channel, *values))

        return testbench

    async def responses(self, ctx, count: int) -> None:
        for _ in range(2000):
            if len(self.order) >= count:
                return
            await ctx.tick()
        raise AssertionError(f"{len(self.order)} responses, not {count}")


def owner(array, memory: list[int], stalls: Stalls):
    """The logic behind a register array: acknowledges after a pause."""

    async def testbench(ctx) -> None:
        while True:
            await ctx.tick()
            if not (ctx.get(array.read) or ctx.get(array.write)) or stalls():
                continue
            index = ctx.get(array.index)
            ctx.set(array.r_data, memory[index])
            ctx.set(array.ack, 1)
            _, _, write, data = await ctx.tick().sample(array.write, array.w_data)
            ctx.set(array.ack, 0)
            if write:
                memory[index] = data

    return testbench


class Bench:
    def __init__(self, seed: int, stall: dict[str, float]) -> None:
        self.dut = Slave()
        self.master = Master(self.dut.axil, {c: Stalls(seed, stall.get(c, 0.2)) for c in ("aw", "w", "ar", "b", "r")})
        self.rows = [[0] * ROWS for _ in range(BLOCKS)]
        self.strobes = [0] * BLOCKS

    def count_strobes(self, block: int):
        async def testbench(ctx) -> None:
            async for _, _, strobe in ctx.tick().sample(self.dut.files[block].regs.go.w_stb):
                self.strobes[block] += strobe

        return testbench

    def run(self, testbench) -> None:
        owners = [owner(file.regs.table, rows, Stalls(7, 0.6))
                  for file, rows in zip(self.dut.files, self.rows, strict=True)]  # fmt: skip
        strobes = [self.count_strobes(b) for b in range(BLOCKS)]
        simulate(self.dut, testbench, background=[*self.master.testbenches(), *owners, *strobes])


TIMINGS = {"address first": {"aw": 0, "w": 0.8}, "data first": {"aw": 0.8, "w": 0}, "slow host": {"b": 0.7, "r": 0.7}}


@pytest.mark.parametrize("timing", TIMINGS)
def test_random_accesses_equal_a_dictionary(timing):
    rng = random.Random(timing)
    bench = Bench(len(timing), TIMINGS[timing])
    values = {(b, offset): 0 for b in range(BLOCKS) for offset in (0x00, *range(0x40, 0x50, 4))}
    values |= {(b, 0x08): FIXED + b for b in range(BLOCKS)}
    triggers = [0] * BLOCKS

    async def testbench(ctx) -> None:
        for number in range(90):
            block = rng.choice((0, 1, 1, 2, 15))
            offset = rng.choice((0x00, 0x08, 0x0C, 0x40, 0x44, 0x4C, 0x04, 0x50, 0x3C, 0x02, 0x41, 0xFFC))
            address, place = block * ENGINE_STRIDE + offset, (block, offset)
            trigger = block < BLOCKS and offset == 0x0C
            if rng.random() < 0.5:
                data, strobe = rng.getrandbits(32), rng.choice((15, 15, 15, rng.randrange(15)))
                bench.master.queue["aw"].append((address,))
                bench.master.queue["w"].append((data, strobe))
                legal = strobe == 15 and ((place in values and offset != 0x08) or trigger)
                expected: tuple = ("b", RESP_OKAY if legal else RESP_SLVERR)
                if legal and not trigger:
                    values[place] = data
                elif legal:
                    triggers[block] += 1
            else:
                bench.master.queue["ar"].append((address,))
                legal = place in values or trigger
                expected = ("r", RESP_OKAY if legal else RESP_SLVERR, values.get(place, 0))
            await bench.master.responses(ctx, number + 1)
            assert bench.master.order[number] == expected, f"access {number} to {address:#x}"

    bench.run(testbench)
    assert bench.rows == [[values[b, 0x40 + 4 * i] for i in range(ROWS)] for b in range(BLOCKS)]
    assert bench.strobes == triggers


def test_waiting_reads_and_writes_take_turns():
    bench = Bench(0, dict.fromkeys(("aw", "w", "ar", "b", "r"), 0.0))

    async def testbench(ctx) -> None:
        for number in range(6):
            bench.master.queue["aw"].append((0,))
            bench.master.queue["w"].append((number, 15))
            bench.master.queue["ar"].append((0,))
        await bench.master.responses(ctx, 12)

    bench.run(testbench)
    channels = [channel for channel, *_ in bench.master.order]
    assert all(a != b for a, b in pairwise(channels)), channels
    read = [entry[2] for entry in bench.master.order if entry[0] == "r"]
    assert read == sorted(read) and read[-1] >= 4


def test_a_lone_half_of_a_write_does_not_block_reads():
    bench = Bench(0, {})

    async def testbench(ctx) -> None:
        bench.master.queue["aw"].append((0,))
        await ctx.tick().repeat(20)
        bench.master.queue["ar"].append((0x08,))
        await bench.master.responses(ctx, 1)
        bench.master.queue["w"].append((5, 15))
        await bench.master.responses(ctx, 2)
        bench.master.queue["ar"].append((0,))
        await bench.master.responses(ctx, 3)

    bench.run(testbench)
    assert bench.master.order == [("r", RESP_OKAY, FIXED), ("b", RESP_OKAY), ("r", RESP_OKAY, 5)]
