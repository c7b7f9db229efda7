"""Memories behind the ports of ``hw.interfaces``, for simulation, with seeded random stalls.

Each function returns a background testbench that serves one port from a shared ``bytearray``.
"""

import random
from collections import deque

from tests.support.streams import Outputs, Stalls, Testbench, until


def serve_read(port, memory: bytearray, stalls: Stalls | None = None, log: list | None = None) -> Testbench:
    """Serve a ``ReadPort``; ``log`` receives every word address that was accepted."""
    stalls = stalls or Stalls()

    async def testbench(ctx) -> None:
        width = len(port.rsp_data) // 8
        noise = random.Random(0)  # between responses, where nobody may look
        outputs, ready = Outputs(ctx), port.req.ready
        rsp_valid, rsp_data, requested, payload = port.rsp_valid, port.rsp_data, port.req.valid, port.req.payload
        while True:
            accepting = not stalls()
            outputs.set(ready, accepting)
            _, _, valid, addr = await ctx.tick().sample(requested, payload)
            hit = valid and accepting
            outputs.set(rsp_valid, hit)
            if hit:
                word = memory[addr * width : (addr + 1) * width]
                ctx.set(rsp_data, int.from_bytes(word, "little"))
                if log is not None:
                    log.append(addr)
            else:
                ctx.set(rsp_data, noise.getrandbits(8 * width))

    return testbench


def _store(memory: bytearray, addr: int, data: int, enable: int, width: int) -> None:
    for i, byte in enumerate(data.to_bytes(width, "little")):
        if enable >> i & 1:
            memory[addr * width + i] = byte


def serve_write(port, memory: bytearray, stalls: Stalls | None = None, log: list | None = None) -> Testbench:
    """Serve a ``WritePort``; ``log`` receives (word address, byte enables) of every accepted write."""
    stalls = stalls or Stalls()

    async def testbench(ctx) -> None:
        req = port.req
        width, layout = len(req.payload.en), req.payload.shape()
        outputs, ready, requested, payload = Outputs(ctx), req.ready, req.valid, req.payload.as_value()
        while True:
            accepting = not stalls()
            outputs.set(ready, accepting)
            _, _, valid, bits = await ctx.tick().sample(requested, payload)
            if valid and accepting:
                write = layout.from_bits(bits)
                _store(memory, write.addr, write.data, write.en, width)
                if log is not None:
                    log.append((write.addr, write.en))

    return testbench


def serve_bus_read(
    port, memory: bytearray, *, latency: int = 1, stalls: Stalls | None = None, errors=frozenset(),
    log: list | None = None,
) -> list[Testbench]:  # fmt: skip
    """Serve a ``BusReadPort`` in two testbenches: each burst's data starts ``latency`` cycles after its request.

    ``errors`` holds word addresses whose beats carry an error; ``log`` receives (address, beats) of every burst.
    Checks alignment and the 4 KiB rule.
    """
    stalls = stalls or Stalls()
    pending: deque[tuple[int, int, int]] = deque()
    now = [0]

    async def requests(ctx) -> None:
        req = port.req
        width = len(port.data.payload.data) // 8
        outputs, ready, requested, payload = Outputs(ctx), req.ready, req.valid, req.payload.as_value()
        while True:
            accepting = not stalls()
            outputs.set(ready, accepting)
            _, _, valid, bits = await ctx.tick().sample(requested, payload)
            now[0] += 1
            if valid and accepting:
                burst = req.payload.shape().from_bits(bits)
                addr, beats = burst.addr, burst.beats
                check_burst(addr, beats, width)
                pending.append((now[0] + latency - 1, addr // width, beats))
                if log is not None:
                    log.append((addr, beats))

    async def data(ctx) -> None:
        width = len(port.data.payload.data) // 8
        while True:
            while not pending or now[0] < pending[0][0] or stalls():
                await ctx.tick()
            _, word, beats = pending.popleft()
            for beat in range(word, word + beats):
                await stalls.wait(ctx)
                value = int.from_bytes(memory[beat * width : (beat + 1) * width], "little")
                last = beat == word + beats - 1
                ctx.set(port.data.payload, {"data": value, "last": last, "error": beat in errors})
                ctx.set(port.data.valid, 1)
                await until(ctx, port.data.ready)
                ctx.set(port.data.valid, 0)

    return [requests, data]


def check_burst(addr: int, beats: int, width: int) -> None:
    """Fail unless a burst obeys the rules of the bus ports."""
    assert 1 <= beats <= 256 and addr % width == 0, (addr, beats)
    assert addr // 4096 == (addr + beats * width - 1) // 4096, f"burst at {addr:#x} of {beats} crosses 4 KiB"


def serve_bus_write(
    port, memory: bytearray, *, latency: int = 1, stalls: Stalls | None = None, errors=frozenset(),
    log: list | None = None,
) -> list[Testbench]:  # fmt: skip
    """Serve a ``BusWritePort`` in three testbenches; responses come ``latency`` cycles after the last beat.

    ``errors`` holds addresses of bursts that are answered with an error; ``log`` receives (address, beats).
    """
    stalls = stalls or Stalls()
    open_bursts: deque[tuple[int, int]] = deque()
    answers: deque[tuple[int, bool]] = deque()
    now = [0]

    async def requests(ctx) -> None:
        req = port.req
        width = len(port.data.payload.strb)
        outputs, ready, requested, payload = Outputs(ctx), req.ready, req.valid, req.payload.as_value()
        while True:
            accepting = not stalls()
            outputs.set(ready, accepting)
            _, _, valid, bits = await ctx.tick().sample(requested, payload)
            now[0] += 1
            if valid and accepting:
                burst = req.payload.shape().from_bits(bits)
                addr, beats = burst.addr, burst.beats
                check_burst(addr, beats, width)
                open_bursts.append((addr, beats))
                if log is not None:
                    log.append((addr, beats))

    async def data(ctx) -> None:
        stream = port.data
        width = len(stream.payload.strb)
        while True:
            while not open_bursts:
                await ctx.tick()
            addr, beats = open_bursts.popleft()
            for beat in range(beats):
                await stalls.wait(ctx)
                ctx.set(stream.ready, 1)
                word = stream.payload
                value, strobe, last = await until(ctx, stream.valid, word.data, word.strb, word.last)
                ctx.set(stream.ready, 0)
                assert last == (beat == beats - 1), f"burst at {addr:#x}: last at beat {beat} of {beats}"
                _store(memory, addr // width + beat, value, strobe, width)
            answers.append((now[0] + latency, addr in errors))

    async def responses(ctx) -> None:
        while True:
            while not answers or now[0] < answers[0][0] or stalls():
                await ctx.tick()
            ctx.set(port.rsp.payload.error, answers.popleft()[1])
            ctx.set(port.rsp.valid, 1)
            await until(ctx, port.rsp.ready)
            ctx.set(port.rsp.valid, 0)

    return [requests, data, responses]
