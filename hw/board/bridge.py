"""Turns frames of a serial line into accesses to registers and memory."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.crc.catalog import CRC16_IBM_3740
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.board.host_port import HostPort
from hw.board.memory import MemoryPort
from hw.contract.serial import CRC_BYTES, FAILED, INTERRUPT, REQUEST, RESPONSE, SYNC, WORD_BYTES, SerialOp
from hw.interfaces import ADDR, Axi4Lite

_REQUEST = data.StructLayout(
    {"sync": 8, "op": 4, "number": 4, "addr": ADDR, "en": WORD_BYTES, "data": 64, "crc": 8 * CRC_BYTES}
)
_RESPONSE = data.StructLayout({"sync": 8, "head": 8, "status": 8, "data": 64})
_REQUEST_BYTES = REQUEST.size + CRC_BYTES


class SerialBridge(wiring.Component):
    """Does what the requests of ``hw.contract.serial`` ask for. Bytes that come while a response goes out are lost.

    Parameters
    ----------
    patience : int
        Cycles without a byte after which a frame that has begun is forgotten.

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
        m.submodules.port = port = HostPort()
        m.submodules.crc = crc = CRC16_IBM_3740(data_width=8).create()
        connect(m, port.axil, flipped(self.axil))
        request, response = Signal(_REQUEST), Signal(_RESPONSE, init={"sync": SYNC})
        taken, sent = Signal(range(_REQUEST_BYTES + 1)), Signal(range(RESPONSE.size + CRC_BYTES))
        done = Signal(8)  # head of the request whose response is kept
        silence, cycles = Signal(range(self._patience + 1)), Signal(64)
        head = Cat(request.op, request.number)
        m.d.sync += cycles.eq(cycles + 1)
        m.d.comb += [
            port.cmd_write.eq(request.op == SerialOp.WRITE_REG),
            port.cmd_addr.eq(request.addr),
            port.cmd_data.eq(request.data),
            self.memory.req.payload.write.eq(request.op == SerialOp.WRITE_MEM),
            self.memory.req.payload.addr.eq(request.addr[(WORD_BYTES - 1).bit_length() :]),
            self.memory.req.payload.en.eq(request.en),
            self.memory.req.payload.data.eq(request.data),
            crc.data.eq(self.byte),
        ]

        def answer(value, failed=0) -> None:
            m.d.sync += [
                response.head.eq(head), response.data.eq(value), sent.eq(0),
                response.status.eq(Mux(failed, FAILED, 0) | Mux(self.irq, INTERRUPT, 0)),
            ]  # fmt: skip
            m.d.comb += crc.start.eq(1)
            m.next = "SEND"

        with m.FSM():
            with m.State("TAKE"):
                m.d.sync += silence.eq(silence + 1)
                with m.If(taken == 0):
                    m.d.comb += crc.start.eq(1)
                with m.If(taken == _REQUEST_BYTES):
                    m.d.sync += taken.eq(0)
                    with m.If(crc.match_detected):
                        m.next = "DO"
                with m.Elif(self.valid & ((taken != 0) | (self.byte == SYNC))):
                    m.d.comb += crc.valid.eq(1)
                    m.d.sync += [
                        request.as_value().eq(Cat(request.as_value()[8:], self.byte)), taken.eq(taken + 1),
                        silence.eq(0),
                    ]  # fmt: skip
                with m.Elif(silence == self._patience):
                    m.d.sync += [taken.eq(0), silence.eq(0)]
            with m.State("DO"):
                m.d.sync += done.eq(head)
                with m.If((done == head) & (request.op != SerialOp.LOOK)):
                    m.d.sync += sent.eq(0)
                    m.d.comb += crc.start.eq(1)
                    m.next = "SEND"
                with m.Else():
                    with m.Switch(request.op):
                        with m.Case(SerialOp.LOOK):
                            answer(cycles)
                        with m.Case(SerialOp.READ_REG, SerialOp.WRITE_REG):
                            m.d.comb += port.cmd_valid.eq(1)
                            m.next = "REGISTER"
                        with m.Case(SerialOp.READ_MEM, SerialOp.WRITE_MEM):
                            m.next = "MEMORY"
                        with m.Default():
                            answer(0, failed=1)
            with m.State("REGISTER"):
                with m.If(port.rsp_valid):
                    answer(port.rsp_data, failed=port.rsp_error)
            with m.State("MEMORY"):
                m.d.comb += self.memory.req.valid.eq(1)
                with m.If(self.memory.req.ready):
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                answer(self.memory.rsp_data)
            with m.State("SEND"):
                self._send(m, response, sent, crc)
        return m

    def _send(self, m: Module, response, sent: Signal, crc) -> None:
        """Send the response, which turns round once and so stays as it is, and its CRC."""
        raw = response.as_value()
        m.d.comb += [self.bytes.valid.eq(1), self.bytes.payload.eq(raw[:8]), crc.data.eq(raw[:8])]
        with m.If(sent == RESPONSE.size):
            m.d.comb += self.bytes.payload.eq(crc.crc[8:])
        with m.If(sent == RESPONSE.size + 1):
            m.d.comb += self.bytes.payload.eq(crc.crc[:8])
        with m.If(self.bytes.ready):
            m.d.sync += sent.eq(sent + 1)
            with m.If(sent < RESPONSE.size):
                m.d.comb += crc.valid.eq(1)
                m.d.sync += raw.eq(Cat(raw[8:], raw[:8]))
            with m.If(sent == RESPONSE.size + CRC_BYTES - 1):
                m.next = "TAKE"
