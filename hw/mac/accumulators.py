"""Keeps the accumulators of all PEs of an engine in two banks, so that VEC drains one while MAC fills the other."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory, MemoryData
from amaranth.lib.wiring import In, Out

from hw.block_ram import NO_COLLISION
from hw.contract.params import SocParams

_ROW_WORDS = 4  #: LV1 words of a row: arrays are square, and an accumulator has four bytes


class AccReadPort(wiring.Signature):
    """Carries reads of ``vec_lanes`` accumulators, seen from VEC: lane l of group g is output channel g*vec_lanes + l.

    Channel n belongs to PE ``n // cols``, column ``n % cols``. ``data`` comes exactly one cycle after ``req`` was
    accepted.
    """

    def __init__(self, params: SocParams) -> None:
        row = (params.lv0_acc_rows - 1).bit_length()
        group = max(1, (params.vec_groups - 1).bit_length())
        super().__init__(
            {
                "req": Out(stream.Signature(data.StructLayout({"row": row, "group": group}))),
                "data": In(32 * params.vec_lanes),
            }
        )


class Accumulators(wiring.Component):
    """Keeps two banks of rows of ``out_channels`` int32; bank 1 holds the upper half of the rows.

    Members: ``issue`` with ``row``, ``keep``: In, a row of sums will come: read the row first if ``keep``;
    ``addend``: In, ``out_channels`` sums, one cycle after ``issue``; ``landed``: Out, the row is written at the end
    of this cycle, two cycles after ``issue``; ``vec``: the other side of :class:`AccReadPort`; MAC goes first.

    ``restore``, ``restore_addr``, ``restore_data``: In, LV1 word ``restore_addr`` of the rows' bytes is written; not
    beside ``landed``, whose row goes first.

    A row whose ``keep`` follows within two cycles of another ``issue`` of it would read an old value: the sequencer
    must not do that. A row that VEC reads in the cycle in which it is written is undefined in silicon (in simulation it
    is the old one): semaphores keep VEC to rows that are finished, and restores to an engine that stands still.
    """

    def __init__(self, params: SocParams) -> None:
        self._params = params
        self._sum = signed(18 + (params.rows - 1).bit_length())
        self.data = [
            MemoryData(shape=32 * params.out_channels, depth=params.lv0_acc_rows // 2, init=[]) for _ in range(2)
        ]
        super().__init__(
            {
                "issue": In(1),
                "row": In((params.lv0_acc_rows - 1).bit_length()),
                "keep": In(1),
                "addend": In(self._sum).array(params.out_channels),
                "landed": Out(1),
                "restore": In(1),
                "restore_addr": In((params.lv0_acc_rows * _ROW_WORDS - 1).bit_length()),
                "restore_data": In(8 * params.lv1_word),
                "vec": In(AccReadPort(params)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        row_bits = len(self.row) - 1
        restored_row = self.restore_addr[2:]
        request = self.vec.req.p
        row, kept, valid = Signal.like(self.row), Signal(), Signal()
        row_out = Signal.like(self.row)
        m.d.sync += [valid.eq(self.issue), self.landed.eq(valid)]
        with m.If(self.issue):
            m.d.sync += [row.eq(self.row), kept.eq(self.keep)]
        with m.If(valid):
            m.d.sync += row_out.eq(row)

        found, result = [], Signal(32 * self._params.out_channels)
        waits = Signal()
        m.d.comb += self.vec.req.ready.eq(~waits)
        for b, contents in enumerate(self.data):
            m.submodules[f"bank{b}"] = memory = Memory(contents, attrs=NO_COLLISION)
            write, read = memory.write_port(granularity=8 * self._params.lv1_word), memory.read_port()
            mac_reads = Signal(name=f"mac_reads{b}")
            vec_reads = Signal(name=f"vec_reads{b}")
            m.d.comb += [
                mac_reads.eq(self.issue & self.keep & (self.row[row_bits] == b)),
                vec_reads.eq(self.vec.req.valid & (request.row[row_bits] == b)),
                read.en.eq(mac_reads | vec_reads),
                read.addr.eq(Mux(mac_reads, self.row[:row_bits], request.row[:row_bits])),
            ]
            with m.If(self.landed):
                m.d.comb += [
                    write.en.eq((row_out[row_bits] == b).replicate(_ROW_WORDS)),
                    write.addr.eq(row_out[:row_bits]),
                    write.data.eq(result),
                ]
            with m.Elif(self.restore):
                m.d.comb += [
                    write.en.eq((restored_row[row_bits] == b) << self.restore_addr[:2]),
                    write.addr.eq(restored_row[:row_bits]),
                    write.data.eq(self.restore_data.replicate(_ROW_WORDS)),
                ]
            with m.If(mac_reads & vec_reads):
                m.d.comb += waits.eq(1)
            found.append(read.data)

        held = Signal(32 * self._params.out_channels)
        m.d.comb += held.eq(Mux(row[row_bits], found[1], found[0]))
        for n, addend in enumerate(self.addend):
            with m.If(valid):
                m.d.sync += result.word_select(n, 32).eq(Mux(kept, held.word_select(n, 32), 0) + addend)

        bank, group = Signal(), Signal.like(request.group)
        with m.If(self.vec.req.valid):
            m.d.sync += [bank.eq(request.row[row_bits]), group.eq(request.group)]
        drained = Signal.like(held)
        m.d.comb += [
            drained.eq(Mux(bank, found[1], found[0])),
            self.vec.data.eq(drained.word_select(group, len(self.vec.data))),
        ]
        return m
