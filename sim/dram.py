"""Simulates the DRAM: an AXI4 slave with the timing of one DRAM channel, the same in every backend."""

import enum

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.memory import Memory, MemoryData
from amaranth.lib.wiring import In

from hw import ADDR, AXI_ID_WIDTH, Axi4
from hw.contract.params import SocParams
from hw.contract.timing import DRAM_QUEUE_BURSTS, DRAM_WRITE_BEATS

FULL = 100  #: bandwidth in percent at which the bus carries one beat per cycle
TIME = 32  #: bits of time stamps, compared modulo 2^32
RESP_OKAY, RESP_DECERR = 0, 3


def timing_ports(params: SocParams, prefix: str = "") -> dict:
    """Return inputs for the timing that may change from run to run; their initial values are those of ``params``."""
    return {
        f"{prefix}latency": In(16, init=params.dram_latency),
        f"{prefix}row_miss": In(16, init=params.dram_row_miss),
        f"{prefix}bandwidth": In(7, init=params.dram_bandwidth),
    }


class DramFault(enum.IntEnum):
    """Names what goes wrong in a DRAM that is told to fail."""

    NONE = 0
    FREEZE = 1  #: no channel moves; what was offered stays
    SLVERR = 2  #: requests are answered with this error, read zeros and write nothing
    DECERR = 3


def fault_ports(prefix: str = "") -> dict:
    """Return inputs for faults on purpose, as :class:`Dram` describes them."""
    return {
        f"{prefix}fault_kind": In(2),
        f"{prefix}fault_base": In(ADDR),
        f"{prefix}fault_last": In(ADDR),
    }


class Dram(wiring.Component):
    """Is DRAM behind an AXI4 slave port: ``params.dram_bytes`` bytes, zero at power-on.

    Timing, with the ``dram_*`` parameters:

    * The data bus carries one beat (``dram_word`` bytes) per cycle, read or write, or ``dram_bandwidth`` percent of
      that: beat k (from 0) of a burst that finds the bus idle comes floor(100 k / ``dram_bandwidth``) cycles after
      the first. Reads are served in order, writes are served in order, and the two take turns burst by burst.
    * Consecutive rows of ``dram_row_bytes`` lie in consecutive banks. A bank keeps its last row open. Its commands
      are spaced by the beats of each burst, and by ``dram_row_miss`` cycles where another row must be opened.
      Banks work side by side: a row opens while the bus carries the data of other banks.
    * The first beat of a read is valid ``dram_latency`` cycles after its request was accepted if the row is open
      and bank and bus are idle. Latencies overlap for up to ``DRAM_QUEUE_BURSTS`` requests.
    * Every ``dram_refresh_interval`` cycles bus and banks stop for ``dram_refresh_cycles`` and all rows close.

    Bursts beyond ``dram_bytes`` answer DECERR, read zeros and write nothing. Bursts are taken to be incrementing,
    of full width, and within a 4 KiB page.

    Parameters
    ----------
    params : SocParams

    Members
    -------
    axi : In(Axi4)
    latency, row_miss : In(16)
    bandwidth : In(7)
        ``dram_latency``, ``dram_row_miss`` and ``dram_bandwidth``, by default those of ``params``. They may change
        while the bus is idle, and must keep to the limits of ``SocParams``.
    stall_rate : In(8)
        Each channel refuses, or holds its beat back, in ``stall_rate`` of 256 cycles, pseudo-randomly: for
        back-pressure tests. 0 for the timing above.
    stall_seed : In(32)
        Not zero: the generator starts from it when ``stall_rate`` leaves 0.
    fault_kind : In(2)
        A :class:`DramFault`: what goes wrong in this cycle; errors strike bursts that are accepted now and begin at
        ``fault_base`` to ``fault_last``.
    fault_base, fault_last : In(32)
    """

    def __init__(self, params: SocParams) -> None:
        self.params = params
        words = params.dram_bytes // params.dram_word
        self.contents = MemoryData(shape=8 * params.dram_word, depth=words, init=[])
        self._request = data.StructLayout(
            {"word": (words - 1).bit_length(), "left": 8, "id": AXI_ID_WIDTH, "resp": 2, "ready_at": TIME}
        )
        axi = Axi4(data_bytes=params.dram_word, id_width=AXI_ID_WIDTH)
        super().__init__(
            {"axi": In(axi), "stall_rate": In(8), "stall_seed": In(32), **timing_ports(params), **fault_ports()}
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        self._clocks(m)
        self._stalls(m)
        self._bus_due = Signal()  # the bandwidth allows a beat now
        m.submodules.reads = reads = SyncFIFOBuffered(width=self._request.size, depth=DRAM_QUEUE_BURSTS)
        m.submodules.writes = writes = SyncFIFOBuffered(width=self._request.size, depth=DRAM_QUEUE_BURSTS)
        self._accept(m, reads, writes)
        self._serve(m, reads, writes)
        return m

    def _clocks(self, m: Module) -> None:
        """Count time, and say when the DRAM refreshes."""
        p = self.params
        self._now = Signal(TIME)
        m.d.sync += self._now.eq(self._now + 1)
        phase = Signal(range(p.dram_refresh_interval), init=p.dram_refresh_cycles)
        self._closed = Signal()
        self._reopens = Signal(TIME)  # when the bank commands may start again; now if the DRAM is open
        self._epoch = Signal(TIME, init=1)  # refreshes so far: a row opened in an earlier epoch is closed
        m.d.comb += [
            self._closed.eq(phase < p.dram_refresh_cycles),
            self._reopens.eq(self._now + Mux(self._closed, p.dram_refresh_cycles - phase, 0)),
        ]
        m.d.sync += phase.eq(phase + 1)
        with m.If(phase == p.dram_refresh_interval - 1):
            m.d.sync += [phase.eq(0), self._epoch.eq(self._epoch + 1)]

    def _stalls(self, m: Module) -> None:
        """Draw which channels stall: a xorshift generator renews all its bits in every cycle, so runs are random."""
        self._stall = Signal(5)  # AR, AW, W, R, B
        state = Signal(32, init=1)
        value: Value = state
        for shift in (13, -17, 5):
            value = (value ^ (value << shift if shift > 0 else value >> -shift))[:32]
        m.d.sync += state.eq(Mux(self.stall_rate == 0, self.stall_seed, value))
        frozen = self.fault_kind == DramFault.FREEZE
        m.d.comb += self._stall.eq(Cat(state[6 * i :][:8] < self.stall_rate for i in range(5)) | frozen.replicate(5))

    def _accept(self, m: Module, reads: SyncFIFOBuffered, writes: SyncFIFOBuffered) -> None:
        """Take one request per cycle, look at its bank, and queue it with the time its first beat is due."""
        p, axi = self.params, self.axi
        read_next, read, write = Signal(), Signal(), Signal()
        read_offered, write_offered = Signal(), Signal()
        m.d.comb += [
            read_offered.eq(axi.arvalid & reads.w_rdy & ~self._stall[0]),
            write_offered.eq(axi.awvalid & writes.w_rdy & ~self._stall[1]),
            read.eq(read_offered & (read_next | ~write_offered)),
            write.eq(write_offered & ~read),
            axi.arready.eq(read),
            axi.awready.eq(write),
            reads.w_en.eq(read),
            writes.w_en.eq(write),
        ]
        with m.If(read | write):
            m.d.sync += read_next.eq(write)

        addr, length = Signal(ADDR), Signal(8)
        m.d.comb += [
            addr.eq(Mux(read, axi.araddr, axi.awaddr)),
            length.eq(Mux(read, axi.arlen, axi.awlen)),
        ]
        begin = self._open_row(m, addr, length, read | write)
        request, struck = Signal(self._request), Signal()
        m.d.comb += struck.eq(self.fault_kind[1] & (addr >= self.fault_base) & (addr <= self.fault_last))
        word_shift = (p.dram_word - 1).bit_length()
        m.d.comb += [
            request.word.eq(addr[word_shift:]),
            request.left.eq(length),
            request.id.eq(Mux(read, axi.arid, axi.awid)),
            request.resp.eq(
                Mux(addr[(p.dram_bytes - 1).bit_length() :].any(), RESP_DECERR, Mux(struck, self.fault_kind, RESP_OKAY))
            ),
            # The memory is read one cycle before R is valid.
            request.ready_at.eq(begin + Mux(read, self.latency - 1, 0)),
            reads.w_data.eq(request),
            writes.w_data.eq(request),
        ]

    def _open_row(self, m: Module, addr: Signal, length: Signal, taken) -> Signal:
        """Reserve the bank at ``addr`` for ``length`` + 1 beats; return when its row is open for them."""
        p = self.params
        offset_bits, bank_bits = (p.dram_row_bytes - 1).bit_length(), (p.dram_banks - 1).bit_length()
        row_bits = ADDR - offset_bits - bank_bits
        bank_state = data.StructLayout({"row": row_bits, "free": TIME, "epoch": TIME})
        m.submodules.banks = banks = Memory(shape=bank_state, depth=p.dram_banks, init=[])
        old, update = banks.read_port(domain="comb"), banks.write_port()
        row = Signal(row_bits)
        begin, start, fresh, hit, busy = Signal(TIME), Signal(TIME), Signal(), Signal(), Signal()
        m.d.comb += [
            old.addr.eq(addr[offset_bits : offset_bits + bank_bits]),
            update.addr.eq(old.addr),
            row.eq(addr[offset_bits + bank_bits :]),
            fresh.eq(old.data.epoch == self._epoch),
            hit.eq(fresh & (old.data.row == row)),
            busy.eq(fresh & (self._reopens - old.data.free)[TIME - 1]),
            start.eq(Mux(busy, old.data.free, self._reopens)),
            begin.eq(start + Mux(hit, 0, self.row_miss)),
            update.en.eq(taken),
            update.data.row.eq(row),
            update.data.free.eq(begin + length + 1),
            update.data.epoch.eq(self._epoch),
        ]
        return begin

    def _serve(self, m: Module, reads: SyncFIFOBuffered, writes: SyncFIFOBuffered) -> None:
        """Move one beat per cycle between the memory and the R or W channel."""
        axi = self.axi
        m.submodules.memory = memory = Memory(self.contents)
        read_port, write_port = memory.read_port(), memory.write_port(granularity=8)
        beat = data.StructLayout({"data": 8 * self.params.dram_word, "strb": self.params.dram_word})
        m.submodules.beats = beats = SyncFIFOBuffered(width=beat.size, depth=DRAM_WRITE_BEATS)
        head = data.View(beat, beats.r_data)
        m.d.comb += [
            axi.wready.eq(beats.w_rdy & ~self._stall[2]),
            beats.w_en.eq(axi.wvalid & axi.wready),
            beats.w_data.eq(Cat(axi.wdata, axi.wstrb)),
        ]

        read, read_due, read_moves = self._current(m, reads, "read")
        write, write_due, write_moves = self._current(m, writes, "write")
        write_next, read_offered, write_offered = Signal(), Signal(), Signal()
        m.d.comb += [
            read_offered.eq(read_due & (~axi.rvalid | axi.rready) & ~self._stall[3]),
            write_offered.eq(write_due & beats.r_rdy & (~axi.bvalid | axi.bready) & ~self._stall[4]),
            write_moves.eq(write_offered & (write_next | ~read_offered)),
            read_moves.eq(read_offered & ~write_moves),
        ]
        self._pace(m, read_moves | write_moves)
        with m.If(read_moves & (read.left == 0)):
            m.d.sync += write_next.eq(1)
        with m.If(write_moves & (write.left == 0)):
            m.d.sync += write_next.eq(0)

        m.d.comb += [
            read_port.addr.eq(read.word),
            read_port.en.eq(read_moves),
            axi.rdata.eq(Mux(axi.rresp == 0, read_port.data, 0)),
        ]
        with m.If(read_moves):
            m.d.sync += [
                axi.rvalid.eq(1),
                axi.rid.eq(read.id),
                axi.rlast.eq(read.left == 0),
                axi.rresp.eq(read.resp),
            ]
        with m.Elif(axi.rready):
            m.d.sync += axi.rvalid.eq(0)

        m.d.comb += [
            beats.r_en.eq(write_moves),
            write_port.addr.eq(write.word),
            write_port.data.eq(head.data),
            write_port.en.eq(Mux(write_moves & (write.resp == RESP_OKAY), head.strb, 0)),
        ]
        with m.If(write_moves & (write.left == 0)):
            m.d.sync += [
                axi.bvalid.eq(1),
                axi.bid.eq(write.id),
                axi.bresp.eq(write.resp),
            ]
        with m.Elif(axi.bready):
            m.d.sync += axi.bvalid.eq(0)

    def _pace(self, m: Module, moves: Value) -> None:
        """Allow ``bandwidth`` beats in ``FULL`` cycles; an idle bus saves up for the next beat, but for no more."""
        saved = Signal(range(FULL), init=FULL - 1)
        total = Signal(range(2 * FULL))
        m.d.comb += [total.eq(saved + self.bandwidth), self._bus_due.eq(total >= FULL)]
        with m.If(moves):
            m.d.sync += saved.eq(total - FULL)
        with m.Else():
            m.d.sync += saved.eq(Mux(self._bus_due, FULL - 1, total))

    def _current(self, m: Module, queue: SyncFIFOBuffered, name: str):
        """Return the burst in service, whether its next beat may move, and whether it moves."""
        burst = Signal(self._request, name=name)
        active, due, moves = Signal(name=f"{name}_active"), Signal(name=f"{name}_due"), Signal(name=f"{name}_moves")
        m.d.comb += due.eq(active & ~(self._now - burst.ready_at)[TIME - 1] & ~self._closed & self._bus_due)
        m.d.comb += queue.r_en.eq(~active | (moves & (burst.left == 0)))
        with m.If(queue.r_en):
            m.d.sync += [burst.eq(queue.r_data), active.eq(queue.r_rdy)]
        with m.Elif(moves):
            m.d.sync += [burst.word.eq(burst.word + 1), burst.left.eq(burst.left - 1)]
        return burst, due, moves
