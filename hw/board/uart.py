"""Defines both ends of a serial line: 8 data bits, no parity, one stop bit."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

_BITS = 10  #: of a byte on the line: start, data, stop


class UartReceiver(wiring.Component):
    """Takes bytes from a line. One whose stop bit is not high is dropped.

    Parameters
    ----------
    divisor : int
        Cycles per bit, at least 2.

    Members
    -------
    line : In(1)
        High while idle; need not be synchronous.
    byte : Out(8)
    valid : Out(1)
        ``byte`` has come; for one cycle, whether anyone takes it or not.
    """

    def __init__(self, divisor: int) -> None:
        self._divisor = checked_divisor(divisor)
        super().__init__({"line": In(1, init=1), "byte": Out(8), "valid": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        line = Signal(init=1)
        m.submodules.synchroniser = FFSynchronizer(self.line, line, init=1)
        timer, left = Signal(range(self._divisor)), Signal(range(_BITS + 1))
        m.d.sync += self.valid.eq(0)
        with m.If(left == 0):
            m.d.sync += timer.eq(self._divisor // 2 - 1)  # to the middle of a bit
            with m.If(~line):
                m.d.sync += left.eq(_BITS)
        with m.Elif(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        with m.Else():
            m.d.sync += [timer.eq(self._divisor - 1), left.eq(left - 1)]
            with m.If((left == _BITS) & line):
                m.d.sync += left.eq(0)  # a start bit that is over at its middle was none
            with m.If(left == 1):
                m.d.sync += self.valid.eq(line)
            with m.Else():
                m.d.sync += self.byte.eq(Cat(self.byte[1:], line))
        return m


class UartTransmitter(wiring.Component):
    """Puts bytes on a line.

    Parameters
    ----------
    divisor : int
        Cycles per bit, at least 2.

    Members
    -------
    bytes : In(stream of 8 bits)
    line : Out(1)
        High while idle.
    """

    def __init__(self, divisor: int) -> None:
        self._divisor = checked_divisor(divisor)
        super().__init__({"bytes": In(stream.Signature(8)), "line": Out(1, init=1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        timer, left = Signal(range(self._divisor)), Signal(range(_BITS + 1))
        waiting = Signal(_BITS - 1)  # bits still to come, the next one lowest
        m.d.comb += self.bytes.ready.eq(left == 0)
        with m.If(left == 0):
            with m.If(self.bytes.valid):
                m.d.sync += [
                    self.line.eq(0), waiting.eq(Cat(self.bytes.payload, Const(1, 1))), left.eq(_BITS),
                    timer.eq(self._divisor - 1),
                ]  # fmt: skip
        with m.Elif(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        with m.Else():
            m.d.sync += [
                timer.eq(self._divisor - 1), left.eq(left - 1), self.line.eq(waiting[0]),
                waiting.eq(Cat(waiting[1:], Const(1, 1))),
            ]  # fmt: skip
        return m


def checked_divisor(divisor: int) -> int:
    """Return ``divisor``; raises ValueError for less than 2 cycles per bit."""
    if divisor < 2:
        raise ValueError(f"a bit takes at least 2 cycles, not {divisor}: choose a lower rate or a faster clock")
    return divisor
