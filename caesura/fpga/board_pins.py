"""Puts a board's top on its pins: oscillator, serial line, and a reset of its own."""

from amaranth.hdl import ClockDomain, ClockSignal, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.board import BoardTop
from hw.contract.params import SocParams

_RESET = 16  #: cycles of reset after the part was configured


class BoardPins(wiring.Component):
    """Is what a bitstream holds that is used on a board: machine, memory and serial line of
    :class:`hw.board.top.BoardTop`, at the clock of the oscillator. Nothing resets it from outside: it resets itself in
    its first cycles, which a register counts that configuration sets to zero.

    Parameters and errors are those of :class:`hw.board.top.BoardTop`.

    Members: ``rx``: In(1), ``tx``: Out(1). ``clock`` is the clock of all.
    """

    def __init__(self, params: SocParams, divisor: int) -> None:
        self._board = BoardTop(params, divisor)
        self.clock = Signal(name="clk")
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.domains.sync = ClockDomain()
        m.domains.power = ClockDomain(reset_less=True)
        m.submodules.machine = board = self._board
        cycles = Signal(range(_RESET + 1))
        m.d.comb += [
            ClockSignal().eq(self.clock), ClockSignal("power").eq(self.clock), ResetSignal().eq(cycles != _RESET),
            board.rx.eq(self.rx), self.tx.eq(board.tx),
        ]  # fmt: skip
        with m.If(cycles != _RESET):
            m.d.power += cycles.eq(cycles + 1)
        return m
