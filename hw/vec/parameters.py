"""Reads the parameter block and the table of a VEC instruction from LV1 before its first operand."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.block_ram import BLOCK_RAM, NO_COLLISION
from hw.contract.isa import TABLE_BYTES, VEC_CHANNEL_BYTES, VEC_HEADER, WIDE_TABLE_BYTES
from hw.contract.params import SocParams
from hw.contract.timing import TABLE_ROW_BYTES
from hw.data_register import data_register
from hw.vec.walker import LV1_ADDR

#: The scalars as they lie in memory, see ``VEC_HEADER``.
HEADER = data.StructLayout({name: signed(8 * size) for name, size, _ in VEC_HEADER})


class ParameterLoader(wiring.Component):
    """Reads header, channel entries and table of one instruction and keeps them.

    ``start`` takes ``p``, ``t``, ``groups`` (vectors of channel entries to load), ``table`` (load one) and ``wide`` (it
    is that of LOOKUP). ``busy`` until everything is in place. ``read_valid``, ``addr`` (LV1 byte address) and
    ``read_ready`` ask for words, each of which comes back with ``rsp_valid`` one cycle later; ``hold`` stops asking.
    ``header`` holds the scalars. Entries of ``group`` appear on ``entries`` a cycle with ``en`` later. Tables are
    written ``TABLE_ROW_BYTES`` at a time.
    """

    def __init__(self, params: SocParams) -> None:
        self._params = params
        rows = WIDE_TABLE_BYTES // TABLE_ROW_BYTES
        super().__init__(
            {
                "start": In(1), "p": In(LV1_ADDR), "t": In(LV1_ADDR), "groups": In(range(params.vec_groups + 1)),
                "table": In(1), "wide": In(1), "hold": In(1), "busy": Out(1),
                "read_valid": Out(1), "read_ready": In(1), "addr": Out(LV1_ADDR),
                "rsp_valid": In(1), "rsp_data": In(8 * params.lv1_word),
                "header": Out(HEADER),
                "en": In(1), "group": In(range(params.vec_groups)),
                "entries": Out(8 * VEC_CHANNEL_BYTES * params.vec_lanes),
                "table_write": Out(1), "table_addr": Out(range(rows)), "table_data": Out(8 * TABLE_ROW_BYTES),
            }
        )  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        params = self._params
        word = params.lv1_word
        header_words = params.vec_header_bytes // word
        group_words = params.vec_lanes * VEC_CHANNEL_BYTES // word
        block_words = Signal(range(header_words + params.vec_groups * group_words + 1))
        most_words = WIDE_TABLE_BYTES // word
        table_words = Signal(range(most_words + 1))
        shifts = word // TABLE_ROW_BYTES  # cycles one word keeps the table's write port busy

        # Ask for the block, then for the table, one word at a time.
        asking, in_table, table_wanted = Signal(), Signal(), Signal()
        asked = Signal(range(max(header_words + params.vec_groups * group_words, most_words) + 1))
        table_addr = Signal(LV1_ADDR)
        taken = Signal()
        shifting = Signal(range(shifts + 1))
        expected = Signal()  # a response comes this cycle
        m.d.comb += [
            self.read_valid.eq(asking & ~self.hold & ~(in_table & (expected | (shifting > 1)))),
            taken.eq(self.read_valid & self.read_ready),
        ]
        m.d.sync += expected.eq(taken)
        with m.If(taken):
            m.d.sync += [asked.eq(asked + 1), self.addr.eq(self.addr + word)]
            with m.If(asked + 1 == Mux(in_table, table_words, block_words)):
                m.d.sync += [
                    asking.eq(table_wanted & ~in_table),
                    in_table.eq(1),
                    asked.eq(0),
                    self.addr.eq(table_addr),
                ]

        # Put what comes back in its place.
        m.submodules.entries = entries = Memory(
            shape=8 * VEC_CHANNEL_BYTES * params.vec_lanes, depth=params.vec_groups, init=[],
            attrs=BLOCK_RAM | NO_COLLISION,
        )  # fmt: skip
        write = entries.write_port(granularity=8 * word)
        read = entries.read_port()
        raw = data_register(8 * params.vec_header_bytes)
        arrived = Signal(block_words.shape())
        rsp_table = Signal()
        m.d.sync += rsp_table.eq(in_table)
        entry = Signal(block_words.shape())
        m.d.comb += [
            entry.eq(arrived - header_words),
            write.data.eq(self.rsp_data.replicate(group_words)),
            write.addr.eq(entry // group_words),
            self.header.eq(raw[: HEADER.size]),
            read.addr.eq(self.group),
            read.en.eq(self.en),
            self.entries.eq(read.data),
        ]
        with m.If(self.rsp_valid & ~rsp_table):
            m.d.sync += arrived.eq(arrived + 1)
            for k in range(header_words):
                with m.If(arrived == k):
                    m.d.sync += raw.word_select(k, 8 * word).eq(self.rsp_data)
            with m.If(arrived >= header_words):
                m.d.comb += write.en.eq(1 << (entry % group_words))

        shift = Signal(8 * word)
        row = Signal.like(self.table_addr)
        m.d.comb += [
            self.table_write.eq(shifting != 0),
            self.table_data.eq(shift),
            self.table_addr.eq(row),
        ]
        with m.If(shifting != 0):
            m.d.sync += [shifting.eq(shifting - 1), row.eq(row + 1), shift.eq(shift >> 8 * TABLE_ROW_BYTES)]
        with m.If(self.rsp_valid & rsp_table):
            m.d.sync += [shifting.eq(shifts), shift.eq(self.rsp_data)]

        m.d.comb += self.busy.eq(asking | expected | (shifting != 0))
        with m.If(self.start):
            m.d.sync += [
                asking.eq(1), in_table.eq(0), asked.eq(0), arrived.eq(0), row.eq(0), table_wanted.eq(self.table),
                table_words.eq(Mux(self.wide, most_words, TABLE_BYTES // word)),
                self.addr.eq(self.p), table_addr.eq(self.t), block_words.eq(header_words + self.groups * group_words),
            ]  # fmt: skip
        return m
