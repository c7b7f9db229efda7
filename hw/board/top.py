"""Defines what a board holds: a machine, memory in block RAM, and a serial line to the host."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from hw.board.bridge import SerialBridge
from hw.board.memory import BlockMemory
from hw.board.uart import UartReceiver, UartTransmitter, checked_divisor
from hw.contract.params import ParamError, SocParams
from hw.contract.serial import WORD_BYTES
from hw.soc import Soc

_SILENCE_BITS = 100  #: bits without a byte after which a frame is forgotten: ten bytes


class BoardTop(wiring.Component):
    """Joins a machine of ``params``, its ``params.dram_bytes`` of memory and a serial line, see ``hw.contract.serial``.
    There is no controller for memory outside the chip.

    Parameters
    ----------
    params : SocParams
        With a ``dram_word`` of 8 bytes; :class:`ParamError` for another.
    divisor : int
        Cycles per bit of the line.

    Members
    -------
    rx, tx : In(1), Out(1)
        From and to the host.
    """

    def __init__(self, params: SocParams, divisor: int) -> None:
        if params.dram_word != WORD_BYTES:
            raise ParamError(
                f"parameters {params.name!r}: over a serial line dram_word must be {WORD_BYTES}, not {params.dram_word}"
            )
        self.params, self._divisor = params, checked_divisor(divisor)
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.soc = soc = Soc(self.params)
        m.submodules.memory = memory = BlockMemory(self.params)
        m.submodules.receiver = receiver = UartReceiver(self._divisor)
        m.submodules.transmitter = transmitter = UartTransmitter(self._divisor)
        m.submodules.bridge = bridge = SerialBridge(_SILENCE_BITS * self._divisor)
        connect(m, soc.axi, memory.axi)
        connect(m, bridge.axil, soc.axil)
        connect(m, bridge.memory, memory.host)
        connect(m, bridge.bytes, transmitter.bytes)
        m.d.comb += [
            receiver.line.eq(self.rx),
            self.tx.eq(transmitter.line),
            bridge.byte.eq(receiver.byte),
            bridge.valid.eq(receiver.valid),
            bridge.irq.eq(soc.irq),
        ]
        return m
