"""Block RAM that accelerator and host share: each finds what it wrote, whatever the other does."""

import random

import pytest

from hw.board import BlockMemory
from hw.contract.params import KIB, preset
from tests.support.streams import Stalls, simulate, until

PARAMS = preset("nano").replace(dram_bytes=64 * KIB)
WORD, HALF = 8, 32 * KIB
OKAY, DECERR = 0, 3
LANES = [bytes(0xFF if enables >> lane & 1 else 0 for lane in range(WORD)) for enables in range(256)]


def merged(old: bytes, new: int, enables: int) -> bytes:
    """A word after a write."""
    return bytes(n if keep else o for o, n, keep in zip(old, new.to_bytes(WORD, "little"), LANES[enables], strict=True))


async def put(ctx, axi, channel: str, stalls: Stalls, **values: int) -> None:
    await stalls.wait(ctx)
    for name, value in values.items():
        ctx.set(getattr(axi, channel + name), value)
    ctx.set(getattr(axi, f"{channel}valid"), 1)
    await until(ctx, getattr(axi, f"{channel}ready"))
    ctx.set(getattr(axi, f"{channel}valid"), 0)


async def take(ctx, axi, channel: str, stalls: Stalls, *names: str) -> list[int]:
    await stalls.wait(ctx)
    ctx.set(getattr(axi, f"{channel}ready"), 1)
    found = await until(ctx, getattr(axi, f"{channel}valid"), *(getattr(axi, channel + name) for name in names))
    ctx.set(getattr(axi, f"{channel}ready"), 0)
    return found


def write_bench(axi, rng: random.Random, stalls: Stalls, known: bytearray, bursts: list):
    """Random bursts of writes into the first quarter; what was written is then in ``known`` and may be read."""

    async def bench(ctx):
        for number in range(60):
            beats, ident = rng.randint(1, 16), rng.randrange(64)
            address = rng.randrange(HALF // WORD - 16) * WORD
            await put(ctx, axi, "aw", stalls, addr=address, len=beats - 1, id=ident)
            for beat in range(beats):
                value, enables, at = (
                    rng.getrandbits(64),
                    rng.choice([255, 255, rng.randrange(256)]),
                    address + beat * WORD,
                )
                await put(ctx, axi, "w", stalls, data=value, strb=enables, last=beat == beats - 1)
                known[at : at + WORD] = merged(known[at : at + WORD], value, enables)
            assert await take(ctx, axi, "b", stalls, "id", "resp") == [ident, OKAY]
            bursts.append(number)
            beats, ident = rng.randint(1, 16), rng.randrange(64)
            address = rng.randrange(HALF // WORD - 16) * WORD if number % 2 else address
            await put(ctx, axi, "ar", stalls, addr=address, len=beats - 1, id=ident)
            for beat in range(beats):
                at = address + beat * WORD
                found = await take(ctx, axi, "r", stalls, "data", "id", "resp", "last")
                assert found == [int.from_bytes(known[at : at + WORD], "little"), ident, OKAY, beat == beats - 1]

    return bench


def host_bench(host, rng: random.Random, stalls: Stalls):
    async def bench(ctx):
        known = bytearray(HALF)
        for _ in range(400):
            await stalls.wait(ctx)
            write, row = rng.randrange(2), rng.randrange(64)
            value, enables = rng.getrandbits(64), rng.randrange(256)
            ctx.set(host.req.payload, {"write": write, "addr": HALF // WORD + row, "data": value, "en": enables})
            ctx.set(host.req.valid, 1)
            await until(ctx, host.req.ready)
            ctx.set(host.req.valid, 0)
            old = known[row * WORD : (row + 1) * WORD]
            if write:
                known[row * WORD : (row + 1) * WORD] = merged(old, value, enables)
            else:
                (found,) = await until(ctx, host.rsp_valid, host.rsp_data)
                assert found == int.from_bytes(old, "little")

    return bench


@pytest.mark.parametrize("stalling", [0.0, 0.5])
def test_both_sides_find_what_they_wrote(stalling):
    dut, bursts = BlockMemory(PARAMS), []
    axi = write_bench(dut.axi, random.Random(1), Stalls(2, stalling), bytearray(HALF), bursts)
    simulate(dut, axi, host_bench(dut.host, random.Random(3), Stalls(4, stalling)))
    assert len(bursts) == 60


def test_words_of_a_burst_follow_each_other():
    dut, cycles = BlockMemory(PARAMS), []

    async def bench(ctx):
        ctx.set(dut.axi.rready, 1)
        await put(ctx, dut.axi, "ar", Stalls(), addr=0, len=15, id=1)
        for cycle in range(30):
            *_, valid = await ctx.tick().sample(dut.axi.rvalid)
            if valid:
                cycles.append(cycle)

    simulate(dut, bench)
    assert cycles == list(range(cycles[0], cycles[0] + 16))


def test_a_burst_beyond_the_memory_is_refused_and_writes_nothing():
    dut = BlockMemory(PARAMS)

    async def bench(ctx):
        for address, value, answer in ((0, 7, OKAY), (PARAMS.dram_bytes, 9, DECERR)):
            await put(ctx, dut.axi, "aw", Stalls(), addr=address, len=0, id=5)
            await put(ctx, dut.axi, "w", Stalls(), data=value, strb=255, last=1)
            assert await take(ctx, dut.axi, "b", Stalls(), "id", "resp") == [5, answer]
        for address, wanted in ((PARAMS.dram_bytes, [0, DECERR]), (0, [7, OKAY])):
            await put(ctx, dut.axi, "ar", Stalls(), addr=address, len=0, id=5)
            assert await take(ctx, dut.axi, "r", Stalls(), "data", "resp") == wanted

    simulate(dut, bench)
