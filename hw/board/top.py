"""Defines what a board holds: a machine, memory in block RAM or SDRAM, and a serial line to the host."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.board.bridge import SerialBridge
from hw.board.memory import BlockMemory
from hw.board.sdram import SdramPins
from hw.board.sdram_memory import SdramMemory
from hw.board.uart import UartReceiver, UartTransmitter, checked_divisor
from hw.contract.params import ParamError, SocParams
from hw.contract.sdram import SIZE, SdramTiming
from hw.contract.serial import WORD_BYTES
from hw.soc import Soc

_SILENCE_BITS = 100  #: bits without a byte after which a frame is forgotten: ten bytes


class BoardTop(wiring.Component):
    """Joins a machine of ``params``, its ``params.dram_bytes`` of memory and a serial line, see ``hw.contract.serial``.

    Parameters
    ----------
    params : SocParams
        With a ``dram_word`` of 8 bytes, and with ``sdram`` no more memory than a chip has; :class:`ParamError` for
        another.
    divisor : int
        Cycles per bit of the line.
    sdram : SdramTiming, optional
        Of the chip that is the memory, at the machine's clock. Without it memory is block RAM.

    Members
    -------
    rx, tx : In(1), Out(1)
        From and to the host.
    sdram : Out(SdramPins)
        With a chip.
    """

    def __init__(self, params: SocParams, divisor: int, sdram: SdramTiming | None = None) -> None:
        if params.dram_word != WORD_BYTES:
            raise ParamError(
                f"parameters {params.name!r}: over a serial line dram_word must be {WORD_BYTES}, not {params.dram_word}"
            )
        if sdram is not None and params.dram_bytes > SIZE:
            raise ParamError(
                f"parameters {params.name!r}: with SDRAM dram_bytes must be at most {SIZE}, not {params.dram_bytes}"
            )
        self.params, self._divisor, self._timing = params, checked_divisor(divisor), sdram
        chip = {} if sdram is None else {"sdram": Out(SdramPins())}
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1), **chip})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.soc = soc = Soc(self.params)
        if self._timing is None:
            memory = BlockMemory(self.params)
        else:
            memory = SdramMemory(self.params, self._timing)
            connect(m, flipped(self.sdram), memory.pins)
        m.submodules.memory = memory
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
