"""Turns frames of a serial line into accesses to registers and memory."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.crc.catalog import CRC16_IBM_3740
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.block_ram import BLOCK_RAM, NO_COLLISION
from hw.board.host_port import HostPort
from hw.board.memory import MemoryPort
from hw.contract.serial import (
    BLOCK_WORDS,
    CRC_BYTES,
    FAILED,
    INTERRUPT,
    REQUEST,
    RESPONSE,
    SYNC,
    WORD_BYTES,
    SerialOp,
)
from hw.interfaces import ADDR, Axi4Lite

_HEAD = data.StructLayout({"sync": 8, "op": 4, "number": 4, "addr": ADDR, "extra": 8})
_EVERY = (1 << WORD_BYTES) - 1


class SerialBridge(wiring.Component):
    """Does what the requests of ``hw.contract.serial`` ask for. Bytes that come while a response goes out are lost.

    Parameters
    ----------
    patience : int
        Cycles without a byte after which a frame that has begun is forgotten, and the line is silent.

    Members
    -------
    byte, valid : In(8), In(1)
        A byte from the host, in one cycle.
    bytes : Out(stream of 8 bits)
        To the host.
    axil : Out(Axi4Lite)
    memory : Out(MemoryPort)
    irq : In(1)
    """

    def __init__(self, patience: int) -> None:
        self._patience = patience
        super().__init__(
            {
                "byte": In(8),
                "valid": In(1),
                "bytes": Out(stream.Signature(8)),
                "axil": Out(Axi4Lite()),
                "memory": Out(MemoryPort(WORD_BYTES)),
                "irq": In(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.port = self._port = HostPort()
        m.submodules.crc = self._crc = CRC16_IBM_3740(data_width=8).create()
        connect(m, self._port.axil, flipped(self.axil))
        attrs = BLOCK_RAM | NO_COLLISION
        m.submodules.block = block = Memory(shape=8 * WORD_BYTES, depth=BLOCK_WORDS, init=[], attrs=attrs)
        self._kept, self._keep = block.read_port(), block.write_port()
        # A word that comes or goes, which word of its frame that is, and the byte of it, of the head, or of the CRC.
        self._head, self._data = Signal(_HEAD), Signal(8 * WORD_BYTES)
        self._word, self._byte = Signal(range(BLOCK_WORDS)), Signal(range(max(REQUEST.size, WORD_BYTES)))
        self._status, self._answer = Signal(8), Signal(8 * WORD_BYTES)
        op, last = self._head.op, self._head.extra[: len(self._word)]
        self._blocks = (op == SerialOp.READ_BLOCK) | (op == SerialOp.WRITE_BLOCK)
        self._last_in = Mux(op == SerialOp.WRITE_BLOCK, last, 0)
        self._last_out = Mux(op == SerialOp.READ_BLOCK, last, 0)
        m.d.comb += [self._kept.addr.eq(self._word), self._kept.en.eq(0), self._keep.addr.eq(self._word)]
        with m.FSM():
            self._take(m)
            self._do(m)
            self._access(m, last)
            self._send(m)
        return m

    def _take(self, m: Module) -> None:
        """Take a request."""
        silence = Signal(range(self._patience + 1))
        m.d.sync += silence.eq(Mux(self.valid, 0, silence + 1))
        silent = silence == self._patience
        come = Cat(self._data[8:], self.byte)
        with m.State("HEAD"):
            m.d.comb += [self._crc.start.eq(self._byte == 0), self._crc.data.eq(self.byte)]
            m.d.sync += self._word.eq(0)
            with m.If(self.valid):
                m.d.comb += self._crc.valid.eq(1)
                m.d.sync += [
                    self._head.as_value().eq(Cat(self._head.as_value()[8:], self.byte)),
                    self._byte.eq(self._byte + 1),
                ]
                with m.If((self._byte == 0) & (self.byte != SYNC)):
                    m.d.sync += self._byte.eq(0)
                    m.next = "NOISE"
                with m.Elif(self._byte == REQUEST.size - 1):
                    m.d.sync += self._byte.eq(0)
                    m.next = "WORDS"
            with m.Elif(silent):
                m.d.sync += [self._byte.eq(0), silence.eq(0)]
        with m.State("WORDS"):
            m.d.comb += [self._crc.data.eq(self.byte), self._keep.data.eq(come)]
            with m.If(self.valid):
                m.d.comb += self._crc.valid.eq(1)
                m.d.sync += [self._data.eq(come), self._byte.eq(self._byte + 1)]
                with m.If(self._byte == WORD_BYTES - 1):
                    m.d.comb += self._keep.en.eq(self._blocks)
                    m.d.sync += [self._byte.eq(0), self._word.eq(self._word + 1)]
                    with m.If(self._word == self._last_in):
                        m.next = "CRC"
            with m.Elif(silent):
                m.d.sync += [self._byte.eq(0), silence.eq(0)]
                m.next = "HEAD"
        with m.State("CRC"):
            m.d.comb += self._crc.data.eq(self.byte)
            m.d.sync += self._word.eq(0)
            with m.If(self._byte == CRC_BYTES):
                m.d.sync += self._byte.eq(0)
                m.next = "NOISE"
                with m.If(self._crc.match_detected):
                    m.next = "DO"
            with m.Elif(self.valid):
                m.d.comb += self._crc.valid.eq(1)
                m.d.sync += self._byte.eq(self._byte + 1)
            with m.Elif(silent):
                m.d.sync += [self._byte.eq(0), silence.eq(0)]
                m.next = "HEAD"
        with m.State("NOISE"), m.If(silent & ~self.valid):
            m.d.sync += silence.eq(0)
            m.next = "HEAD"

    def _answered(self, m: Module, word, failed=0) -> None:
        """Keep what the response says, and begin to send it."""
        m.d.sync += [
            self._answer.eq(word), self._status.eq(Mux(failed, FAILED, 0) | Mux(self.irq, INTERRUPT, 0)),
        ]  # fmt: skip
        self._begin_to_send(m)

    def _begin_to_send(self, m: Module) -> None:
        m.d.sync += [self._byte.eq(0), self._word.eq(0)]
        m.d.comb += self._crc.start.eq(1)
        m.next = "SEND HEAD"

    def _do(self, m: Module) -> None:
        """Do what is asked for, unless it was done already."""
        done, cycles = Signal(8), Signal(64)  # `done`: head of the request whose response is kept
        op, head, port = self._head.op, Cat(self._head.op, self._head.number), self._port
        m.d.sync += cycles.eq(cycles + 1)
        m.d.comb += [
            port.cmd_write.eq(op == SerialOp.WRITE_REG), port.cmd_addr.eq(self._head.addr),
            port.cmd_data.eq(self._data),
        ]  # fmt: skip
        with m.State("DO"):
            m.d.sync += done.eq(head)
            with m.Switch(op):
                with m.Case(SerialOp.LOOK):
                    self._answered(m, cycles)
                with m.Case(SerialOp.READ_MEM, SerialOp.READ_BLOCK):
                    m.next = "MEMORY"
                with m.Default():
                    with m.If(done == head):
                        self._begin_to_send(m)
                    with m.Elif((op == SerialOp.READ_REG) | (op == SerialOp.WRITE_REG)):
                        m.d.comb += port.cmd_valid.eq(1)
                        m.next = "REGISTER"
                    with m.Elif(op == SerialOp.WRITE_MEM):
                        m.next = "MEMORY"
                    with m.Elif(op == SerialOp.WRITE_BLOCK):
                        m.next = "FETCH"
                    with m.Else():
                        self._answered(m, 0, failed=1)
        with m.State("REGISTER"), m.If(port.rsp_valid):
            self._answered(m, port.rsp_data, failed=port.rsp_error)

    def _access(self, m: Module, last) -> None:
        """Read or write memory, word after word of a block."""
        op, ask = self._head.op, self.memory.req
        m.d.comb += [
            ask.payload.write.eq((op == SerialOp.WRITE_MEM) | (op == SerialOp.WRITE_BLOCK)),
            ask.payload.addr.eq(self._head.addr[(WORD_BYTES - 1).bit_length() :] + self._word),
            ask.payload.en.eq(Mux(self._blocks, _EVERY, self._head.extra)),
            ask.payload.data.eq(Mux(self._blocks, self._kept.data, self._data)),
        ]
        with m.State("FETCH"):
            m.d.comb += self._kept.en.eq(1)
            m.next = "MEMORY"
        with m.State("MEMORY"):
            m.d.comb += ask.valid.eq(1)
            with m.If(ask.ready):
                m.next = "ANSWER"
        with m.State("ANSWER"):
            m.d.comb += self._keep.data.eq(self.memory.rsp_data)
            with m.If(self._blocks & (self._word != last)):
                m.d.sync += self._word.eq(self._word + 1)
                m.next = "FETCH"
            with m.Else():
                self._answered(m, self.memory.rsp_data)
            m.d.comb += self._keep.en.eq(op == SerialOp.READ_BLOCK)

    def _send(self, m: Module) -> None:
        """Send the response."""
        head = Array([SYNC, Cat(self._head.op, self._head.number), self._status])
        with m.State("SEND HEAD"):
            with m.If(self._put(m, head[self._byte]) & (self._byte == RESPONSE.size - 1)):
                m.d.sync += self._byte.eq(0)
                m.next = "SEEK"
        with m.State("SEEK"):
            m.d.comb += self._kept.en.eq(1)
            m.next = "LOAD"
        with m.State("LOAD"):
            m.d.sync += self._data.eq(Mux(self._head.op == SerialOp.READ_BLOCK, self._kept.data, self._answer))
            m.next = "SEND WORD"
        with m.State("SEND WORD"), m.If(self._put(m, self._data[:8])):
            m.d.sync += self._data.eq(self._data[8:])
            with m.If(self._byte == WORD_BYTES - 1):
                m.d.sync += [self._byte.eq(0), self._word.eq(self._word + 1)]
                m.next = "SEEK"
                with m.If(self._word == self._last_out):
                    m.next = "SEND CRC"
        with m.State("SEND CRC"):
            m.d.comb += [
                self.bytes.valid.eq(1),
                self.bytes.payload.eq(Mux(self._byte == 0, self._crc.crc[8:], self._crc.crc[:8])),
            ]
            with m.If(self.bytes.ready):
                m.d.sync += self._byte.eq(self._byte + 1)
                with m.If(self._byte == CRC_BYTES - 1):
                    m.d.sync += self._byte.eq(0)
                    m.next = "HEAD"

    def _put(self, m: Module, byte):
        """Put a byte on the line, and into the CRC; returns whether it is taken."""
        m.d.comb += [
            self.bytes.valid.eq(1), self.bytes.payload.eq(byte), self._crc.data.eq(byte),
            self._crc.valid.eq(self.bytes.ready),
        ]  # fmt: skip
        with m.If(self.bytes.ready):
            m.d.sync += self._byte.eq(self._byte + 1)
        return self.bytes.ready
