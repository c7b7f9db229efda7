"""The banked scratchpad against a byte array, and its narrow adapters."""

import gc
import random

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hw.interfaces import ReadPort, WritePort
from hw.scratchpad import NarrowRead, NarrowWrite, Scratchpad
from tests.support.streams import Stalls, check_held, simulate, stream_put, until
from tests.support.unchecked_memory import unchecked_where_it_says_so

SIZE, WORD = 512, 8


async def write(ctx, port, addr: int, data: bytes, enable: int, stalls: Stalls) -> None:
    word = int.from_bytes(data, "little")
    await stream_put(ctx, port.req, {"addr": addr, "data": word, "en": enable}, stalls)


async def read(ctx, port, addr: int, stalls: Stalls) -> bytes:
    """One read; the answer must come in the cycle after the request was taken."""
    await stream_put(ctx, port.req, addr, stalls)
    _, _, valid, data = await ctx.tick().sample(port.rsp_valid, port.rsp_data)
    assert valid
    return data.to_bytes(len(port.rsp_data) // 8, "little")


def write_bytes(memory: bytearray, addr: int, data: bytes, enable: int) -> None:
    for i, byte in enumerate(data):
        if enable >> i & 1:
            memory[addr * len(data) + i] = byte


@pytest.mark.parametrize("banks", [1, 4])
@pytest.mark.parametrize("seed", range(2))
def test_every_client_sees_its_own_part(banks, seed):
    """Client c of either side owns the words c modulo 3, which lie in every bank."""
    dut = Scratchpad(SIZE, WORD, banks, readers=3, writers=3)
    memory = bytearray(SIZE)

    def client(c: int):
        async def testbench(ctx) -> None:
            rng, stalls = random.Random(seed * 10 + c), Stalls(seed * 10 + c, 0.2)
            for _ in range(60):
                addr = rng.randrange(c, SIZE // WORD, 3)
                data, enable = rng.randbytes(WORD), rng.getrandbits(WORD)
                await write(ctx, dut.write[c], addr, data, enable, stalls)
                write_bytes(memory, addr, data, enable)
                addr = rng.choice([addr, rng.randrange(c, SIZE // WORD, 3)])
                assert await read(ctx, dut.read[c], addr, stalls) == memory[addr * WORD : (addr + 1) * WORD]

        return testbench

    held = [check_held(port.req, "client") for port in (*dut.read, *dut.write)]
    simulate(dut, *(client(c) for c in range(3)), background=held)


def streaming(port, count: int, taken: list, step: int = 1, first: int = 0):
    """Ask for ``count`` words in a row without a pause; ``taken`` receives the cycle of each."""
    addr = getattr(port.req.payload, "addr", port.req.payload)

    async def testbench(ctx) -> None:
        cycle = 0
        ctx.set(port.req.valid, 1)
        for i in range(count):
            ctx.set(addr, first + i * step)
            while True:
                _, _, ready = await ctx.tick().sample(port.req.ready)
                cycle += 1
                if ready:
                    break
            taken.append(cycle)
        ctx.set(port.req.valid, 0)

    return testbench


@pytest.mark.parametrize("side", ["read", "write"])
def test_streams_settle_into_different_banks(side):
    dut = Scratchpad(SIZE, WORD, 4, readers=3, writers=3)
    taken: list[list[int]] = [[], [], []]
    simulate(dut, *(streaming(getattr(dut, side)[c], 48, taken[c]) for c in range(3)))
    assert max(t[-1] for t in taken) <= 48 + 4


@pytest.mark.parametrize("side", ["read", "write"])
def test_a_bank_is_shared_fairly(side):
    """Three clients that want the same bank all the time each get a third of it, and never wait three cycles."""
    dut = Scratchpad(SIZE, WORD, 4, readers=3, writers=3)
    taken: list[list[int]] = [[], [], []]
    simulate(dut, *(streaming(getattr(dut, side)[c], 15, taken[c], step=4) for c in range(3)))
    for times in taken:
        assert max(b - a for a, b in zip([0, *times], times, strict=False)) <= 3
    assert max(t[-1] for t in taken) == 45


def test_readers_and_writers_of_other_words_do_not_disturb_each_other():
    dut = Scratchpad(SIZE, WORD, 1, readers=1, writers=1)
    reads: list[int] = []
    writes: list[int] = []
    simulate(dut, streaming(dut.read[0], 32, reads), streaming(dut.write[0], 32, writes, first=32))
    assert reads[-1] == writes[-1] == 32


def test_a_write_is_a_cycle_behind_a_read_of_its_word():
    """The stream of reads goes on, and is never caught up with again."""
    dut = Scratchpad(SIZE, WORD, 1, readers=1, writers=1)
    reads: list[int] = []
    writes: list[int] = []
    simulate(dut, streaming(dut.read[0], 32, reads), streaming(dut.write[0], 32, writes))
    assert (reads[-1], writes[-1]) == (32, 33)


def test_a_write_gets_in_between_reads_of_its_word():
    dut = Scratchpad(SIZE, WORD, 1, readers=1, writers=1)
    reads: list[int] = []
    writes: list[int] = []
    simulate(dut, streaming(dut.read[0], 32, reads, step=0), streaming(dut.write[0], 5, writes, step=0))
    assert writes == [3, 6, 9, 12, 15]
    assert reads[-1] == 32 + len(writes)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("banks", [1, 4])
def test_bytes_of_words_that_others_read_and_write(banks, seed, monkeypatch):
    """Client c of either side owns the bytes c modulo 3 of a few words that all use. A row that was read while it was
    written would be nonsense."""
    monkeypatch.setattr("hw.scratchpad.Memory", unchecked_where_it_says_so)
    dut = Scratchpad(SIZE, WORD, banks, readers=3, writers=3)

    def client(c: int):
        async def testbench(ctx) -> None:
            rng, stalls = random.Random(seed * 10 + c), Stalls(seed * 10 + c, 0.1)
            memory = bytearray(SIZE)
            for _ in range(100):
                addr, data = rng.randrange(5), rng.randbytes(WORD)
                enable = rng.getrandbits(WORD) & 0b01001001 << c
                await write(ctx, dut.write[c], addr, data, enable, stalls)
                write_bytes(memory, addr, data, enable)
                addr = rng.randrange(5)
                found = await read(ctx, dut.read[c], addr, stalls)
                assert found[c::3] == memory[addr * WORD : (addr + 1) * WORD][c::3]

        return testbench

    simulate(dut, *(client(c) for c in range(3)))


class Narrow(wiring.Component):
    """A scratchpad of 16-byte words behind ports of ``width`` bytes."""

    def __init__(self, width: int) -> None:
        self.pad = Scratchpad(SIZE, 16, 2, readers=1, writers=1)
        self.reader = NarrowRead(self.pad.addr_width, 16, width)
        self.writer = NarrowWrite(self.pad.addr_width, 16, width)
        bits = (SIZE // width - 1).bit_length()
        super().__init__({"read": In(ReadPort(bits, width)), "write": In(WritePort(bits, width))})

    def elaborate(self, platform):
        m = Module()
        m.submodules += [self.pad, self.reader, self.writer]
        wiring.connect(m, wiring.flipped(self.read), self.reader.narrow)
        wiring.connect(m, wiring.flipped(self.write), self.writer.narrow)
        wiring.connect(m, self.reader.wide, self.pad.read[0])
        wiring.connect(m, self.writer.wide, self.pad.write[0])
        return m


@pytest.mark.parametrize("width", [4, 8, 16])
def test_narrow_ports(width):
    dut = Narrow(width)
    memory = bytearray(SIZE)
    rng, stalls = random.Random(width), Stalls(width, 0.2)

    async def testbench(ctx) -> None:
        for _ in range(120):
            addr, data, enable = rng.randrange(SIZE // width), rng.randbytes(width), rng.getrandbits(width)
            await write(ctx, dut.write, addr, data, enable, stalls)
            write_bytes(memory, addr, data, enable)
            addr = rng.choice([addr, rng.randrange(SIZE // width)])
            assert await read(ctx, dut.read, addr, stalls) == memory[addr * width : (addr + 1) * width]

    simulate(dut, testbench)


def test_narrow_reads_pipeline():
    """The lane of an answer is that of its own request, not of the one that is taken with it."""
    dut = Narrow(4)
    answers: list[int] = []

    async def fill_and_ask(ctx) -> None:
        for addr in range(16):
            await write(ctx, dut.write, addr, addr.to_bytes(4, "little"), 0xF, Stalls())
        for addr in range(16):
            await stream_put(ctx, dut.read.req, addr)

    async def listen(ctx) -> None:
        while len(answers) < 16:
            answers.append((await until(ctx, dut.read.rsp_valid, dut.read.rsp_data))[0])

    simulate(dut, fill_and_ask, listen)
    assert answers == list(range(16))


@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="500, 8, 4"):
        Scratchpad(500, 8, 4, 1, 1)
    gc.collect()
