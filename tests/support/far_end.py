"""The host's end of a serial line, and a board at the other, in any simulator of the RTL."""

import random
from collections.abc import Callable

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out, connect

from hw import AXI_ID_WIDTH, Axi4, Axi4Lite
from hw.board import BoardTop
from hw.board.uart import UartReceiver, UartTransmitter
from hw.contract.bus import HostCosts
from hw.contract.params import KIB, SocParams, preset
from hw.contract.sdram import SdramTiming
from sim.rtl.base import RtlBus
from sim.rtl.native.build import native_bus
from sim.rtl.pysim import PysimBus
from sim.rtl.top import SimTop
from tests.support.sdram_chip import SdramChip

#: Of the simulation round the board; nothing of it is used but the register port.
_AROUND = preset("nano").replace(dram_bytes=64 * KIB)
_CAME = 1 << 8  #: a byte has come
_ROOM = 64  #: bytes that may wait to be read
TIMEOUT = 3000  #: cycles that a read waits for a byte


class FarEnd(wiring.Component):
    """Is a board with a UART at the end of its line, in place of the accelerator of a :class:`SimTop`.

    A write to any register sends its low byte, and ends when the line has taken it. A read returns the byte that came
    first, with ``_CAME``, or zero. The interrupt line is high for good where the SDRAM chip was used as it must not be.
    """

    def __init__(self, board: BoardTop, divisor: int, chip: SdramChip | None) -> None:
        self._board, self._divisor, self._chip = board, divisor, chip
        super().__init__(
            {
                "axil": In(Axi4Lite()),
                "axi": Out(Axi4(data_bytes=_AROUND.dram_word, id_width=AXI_ID_WIDTH)),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.board = board = self._board
        if self._chip is not None:
            m.submodules.chip = self._chip
            connect(m, board.sdram, self._chip.pins)
            m.d.comb += self.irq.eq(self._chip.wrong.any())
        m.submodules.sender = sender = UartTransmitter(self._divisor)
        m.submodules.listener = listener = UartReceiver(self._divisor)
        m.submodules.came = came = SyncFIFOBuffered(width=8, depth=_ROOM)
        axil = self.axil
        sending = Signal()
        m.d.comb += [
            board.rx.eq(sender.line), listener.line.eq(board.tx),
            came.w_en.eq(listener.valid), came.w_data.eq(listener.byte),
            axil.awready.eq(~sending & ~axil.bvalid), axil.wready.eq(axil.awready),
            sender.bytes.valid.eq(sending),
            axil.arready.eq(~axil.rvalid), came.r_en.eq(axil.arvalid & axil.arready),
        ]  # fmt: skip
        with m.If(axil.awvalid & axil.awready):
            m.d.sync += [sending.eq(1), sender.bytes.payload.eq(axil.wdata)]
        with m.If(sending & sender.bytes.ready):
            m.d.sync += [sending.eq(0), axil.bvalid.eq(1)]
        with m.If(axil.bvalid & axil.bready):
            m.d.sync += axil.bvalid.eq(0)
        with m.If(axil.arvalid & axil.arready):
            m.d.sync += [axil.rvalid.eq(1), axil.rdata.eq(Cat(came.r_data, came.r_rdy) * came.r_rdy)]
        with m.If(axil.rvalid & axil.rready):
            m.d.sync += axil.rvalid.eq(0)
        return m


class SimulatedLine:
    """Is a :class:`sw.serial.SerialPort`. The board's time passes only while bytes are sent or waited for.

    ``spoil`` may change, lose or add bytes on their way to the board, ``spoil_back`` on their way from it.
    """

    def __init__(self, bus: RtlBus) -> None:
        self._bus = bus
        self.spoil: Callable[[bytes], bytes] = bytes
        self.spoil_back: Callable[[bytes], bytes] = bytes
        self._came = b""

    def write(self, data: bytes) -> int:
        for byte in self.spoil(data):
            self._bus.write_reg(0, byte)
        return len(data)

    def read(self, size: int) -> bytes:
        end = self._bus.cycle + TIMEOUT
        while len(self._came) < size and self._bus.cycle < end:
            found = self._bus.read_reg(0)
            if found & _CAME:
                self._came += self.spoil_back(bytes([found & 0xFF]))
                end = self._bus.cycle + TIMEOUT
        raw, self._came = self._came[:size], self._came[size:]
        return raw

    def reset_input_buffer(self) -> None:
        while self._bus.read_reg(0) & _CAME:
            pass
        self._came = b""

    @property
    def misused(self) -> bool:
        """Whether the SDRAM chip was ever used as it must not be."""
        return self._bus.wait_irq(0)

    def close(self) -> None:
        self._bus.close()


class Lossy:
    """Changes, loses and adds bytes: one in ``every`` on average."""

    def __init__(self, seed: int, every: int) -> None:
        self._random, self._every = random.Random(seed), every
        self.struck = 0

    def __call__(self, data: bytes) -> bytes:
        return b"".join(self._byte(byte) for byte in data)

    def _byte(self, byte: int) -> bytes:
        if self._random.randrange(self._every):
            return bytes([byte])
        self.struck += 1
        other = byte ^ 1 << self._random.randrange(8)
        return self._random.choice([b"", bytes([other]), bytes([byte, 0xA5])])


def simulated_line(params: SocParams, *, native: bool, divisor: int = 2, sdram: float | None = None) -> SimulatedLine:
    """A line to a board of ``params`` in the compiled simulator or in Amaranth's. Its memory is an SDRAM chip where
    ``sdram`` is the clock in MHz."""

    def make() -> SimTop:
        if sdram is None:
            return SimTop(_AROUND, FarEnd(BoardTop(params, divisor), divisor, None))
        board = BoardTop(params, divisor, SdramTiming.at(sdram))
        return SimTop(_AROUND, FarEnd(board, divisor, SdramChip(params.dram_bytes, sdram, 1)))

    costs = HostCosts.free()
    return SimulatedLine(native_bus(_AROUND, make, costs=costs) if native else PysimBus(make(), costs=costs))
