"""Fetches instructions: reads ahead over a bus port and delivers whole instructions."""

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from hw.contract.isa import INSN_BITS, INSN_BYTES
from hw.contract.job import Fault
from hw.contract.params import SocParams
from hw.contract.timing import FETCH_AHEAD, FETCH_BURST_BYTES
from hw.interfaces import ADDR, PC, BusReadPort

#: One fetched instruction. A ``fault`` other than NONE takes the place of the instruction at ``pc``.
FETCHED = data.StructLayout({"insn": INSN_BITS, "pc": PC, "fault": 8})


def burst_words(params: SocParams, limit: int = FETCH_BURST_BYTES) -> int:
    """Return the bus words of the bursts that fetch instructions and descriptors: a power of two, at most ``limit``
    bytes."""
    return min(params.axi_burst_beats, limit // params.dram_word)


class InstructionFetch(wiring.Component):
    """Reads instructions from a segment in order, up to :data:`FETCH_AHEAD` instructions ahead of their use.

    Bursts are aligned, so they never cross 4 KiB, and stay within the segment. Fetching past its end delivers a
    LIMIT fault in place of an instruction, an error response a BUS fault.

    Members
    -------
    bus : Out(BusReadPort)
    start : In(1)
        Begin at instruction ``pc`` of the segment (``base``, a multiple of 64, ``limit`` bytes). Only when stopped.
    flush : In(1)
        Stop and forget everything; what is still on its way is discarded as it arrives, also after a new ``start``.
    insn : Out(stream of FETCHED)
    resolve : In(1)
        ``resolved`` takes the place of the instruction that is delivered and not taken yet.
    resolved : In(512)
    running : Out(1)
        Between ``start`` and ``flush``.
    quiet : Out(1)
        No transaction is outstanding.
    """

    def __init__(self, params: SocParams) -> None:
        self.params = params
        word_bits = params.dram_word.bit_length() - 1
        self._address = Signal(ADDR, name="address")  #: of the next burst
        self._left = Signal(ADDR - word_bits, name="left")  #: words from the next burst to the segment's end
        super().__init__(
            {
                "bus": Out(BusReadPort(params)),
                "start": In(1),
                "pc": In(PC),
                "base": In(ADDR),
                "limit": In(ADDR),
                "flush": In(1),
                "insn": Out(stream.Signature(FETCHED)),
                "resolve": In(1),
                "resolved": In(INSN_BITS),
                "running": Out(1),
                "quiet": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        word = self.params.dram_word
        per_insn = INSN_BYTES // word
        chunk = burst_words(self.params)
        capacity = FETCH_AHEAD * per_insn
        word_bits = word.bit_length() - 1

        running = self.running
        address = self._address
        left = self._left
        reserved = Signal(range(capacity + 1))  # words requested and not yet taken out of the buffer
        outstanding = Signal(range(2 * capacity + 1))  # words requested and not yet received
        stale = Signal.like(outstanding)  # how many of those, the next ones, were requested before a flush
        end = Signal(ADDR - 6)  # instructions in the segment
        next_pc = Signal(PC)

        # Requests: up to the next burst boundary, as long as the buffer has room for a whole burst.
        beats = Signal(range(chunk + 1))
        issue, received, taken = Signal(), Signal(), Signal()
        request = self.bus.req
        to_boundary = chunk - address[word_bits:][: chunk.bit_length() - 1]
        m.d.comb += [
            beats.eq(Mux(left < to_boundary, left, to_boundary)),
            issue.eq(
                running & ~self.flush & (left != 0) & (reserved <= capacity - chunk)
                & (outstanding <= 2 * capacity - chunk) & (~request.valid | request.ready)
            ),
            received.eq(self.bus.data.valid & self.bus.data.ready),
        ]  # fmt: skip
        with m.If(issue):
            m.d.sync += [
                request.valid.eq(1),
                request.payload.addr.eq(address),
                request.payload.beats.eq(beats),
                address.eq(address + (beats << word_bits)),
                left.eq(left - beats),
            ]
        with m.Elif(request.ready):
            m.d.sync += request.valid.eq(0)
        issued = Mux(issue, beats, 0)
        m.d.sync += [
            reserved.eq(reserved + issued - taken),
            outstanding.eq(outstanding + issued - received),
        ]

        # Buffer: room was reserved, so data is always taken.
        buffer = SyncFIFOBuffered(width=8 * word + 1, depth=capacity)
        m.submodules.buffer = ResetInserter(self.flush)(buffer)
        m.d.comb += [
            self.bus.data.ready.eq(1),
            buffer.w_en.eq(self.bus.data.valid & (stale == 0)),
            buffer.w_data.eq(Cat(self.bus.data.payload.data, self.bus.data.payload.error)),
        ]

        # Assembly of whole instructions from bus words, lowest word first.
        insn, error, have = Signal(INSN_BITS), Signal(), Signal(range(per_insn + 1))
        complete = Signal()
        consume = Signal()
        m.d.comb += [
            complete.eq(have == per_insn),
            taken.eq(buffer.r_rdy & (~complete | consume) & ~self.flush),
            buffer.r_en.eq(taken),
        ]
        with m.If(taken):
            m.d.sync += [
                insn.eq(Cat(insn, buffer.r_data[:-1])[8 * word :]),
                error.eq(buffer.r_data[-1] | (error & (have != 0) & ~complete)),
                have.eq(Mux(complete, 1, have + 1)),
            ]
        with m.Elif(consume):
            m.d.sync += have.eq(0)
        with m.Elif(self.resolve):
            m.d.sync += insn.eq(self.resolved)

        beyond = Signal()
        out = self.insn.payload
        m.d.comb += [
            beyond.eq(next_pc >= end),
            self.insn.valid.eq(running & (complete | beyond)),
            out.insn.eq(insn),
            out.pc.eq(next_pc),
            out.fault.eq(Mux(beyond, Fault.LIMIT, Mux(error, Fault.BUS, Fault.NONE))),
            consume.eq(self.insn.valid & self.insn.ready & complete),
        ]
        with m.If(consume):
            m.d.sync += next_pc.eq(next_pc + 1)

        m.d.comb += self.quiet.eq(outstanding == 0)
        with m.If((stale != 0) & received):
            m.d.sync += stale.eq(stale - 1)
        with m.If(self.flush):
            m.d.sync += [running.eq(0), have.eq(0), reserved.eq(0), stale.eq(outstanding - received)]
        with m.Elif(self.start):
            m.d.sync += [
                running.eq(1),
                next_pc.eq(self.pc),
                end.eq(self.limit[6:]),
                address.eq(self.base + (self.pc << 6)),
                left.eq(Mux(self.pc < self.limit[6:], self.limit[6:] - self.pc, 0) * per_insn),
            ]
        return m
