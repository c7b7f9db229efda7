"""Bytes over a line, from one end to the other."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.sim import Simulator

from hw.board.uart import UartReceiver, UartTransmitter, checked_divisor


def received(data: bytes, divisor: int, other: int, noise=None) -> bytes:
    """What comes of ``data`` at the end of a line whose receiver has another divisor. ``noise`` changes the line."""
    m = Module()
    m.submodules.transmitter = transmitter = UartTransmitter(divisor)
    m.submodules.receiver = receiver = UartReceiver(other)
    found = []
    length = 11 * divisor * (len(data) + 3) + 60

    async def send(ctx):
        await ctx.tick().repeat(5)
        for byte in data:
            ctx.set(transmitter.bytes.payload, byte)
            ctx.set(transmitter.bytes.valid, 1)
            await ctx.tick().until(transmitter.bytes.ready)
        ctx.set(transmitter.bytes.valid, 0)

    async def take(ctx):
        for cycle in range(length):
            line = ctx.get(transmitter.line)
            ctx.set(receiver.line, noise(cycle, line) if noise else line)
            _, _, byte, valid = await ctx.tick().sample(receiver.byte, receiver.valid)
            if valid:
                found.append(byte)

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(send)
    simulator.add_testbench(take)
    simulator.run()
    return bytes(found)


DATA = bytes([0, 255, 0xA5, 1, 128, *random.Random(1).randbytes(20)])


@pytest.mark.parametrize("divisor", [2, 3, 4, 16])
def test_all_bytes_arrive(divisor):
    assert received(DATA, divisor, divisor) == DATA


@pytest.mark.parametrize("other", [97, 103])
def test_clocks_may_differ_by_three_percent(other):
    assert received(DATA[:6], 100, other) == DATA[:6]


def test_a_short_spike_is_no_byte():
    assert received(b"\x5a", 16, 16, lambda cycle, line: line & (cycle not in (0, 1, 2))) == b"\x5a"


def test_a_line_that_stays_low_is_no_byte():
    assert received(b"", 4, 4, lambda cycle, line: 0) == b""


def test_a_bit_takes_two_cycles_at_least():
    with pytest.raises(ValueError, match="at least 2 cycles, not 1"):
        checked_divisor(1)
