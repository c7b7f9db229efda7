"""Turns operand vectors into result vectors: the lanes, the records of rows, and what travels beside them."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.contract.isa import RECORD_BYTES, VEC_CHANNEL_BYTES, Op, VecOp
from hw.contract.params import SocParams
from hw.contract.timing import TABLE_ROW_BYTES
from hw.interfaces import struct_layout
from hw.vec import lane, records
from hw.vec.lane import SETTINGS, TABLE_ROWS, Lane
from hw.vec.parameters import HEADER
from hw.vec.records import Records, delayed
from hw.vec.requantise import RESULT
from hw.vec.walker import STEP

_NUMBER = 32  #: bits of a record's number, before its factor


class Datapath(wiring.Component):
    """Computes result vectors from operand vectors. Everything moves when ``en`` is high. ``step`` and the vectors
    ``a``, ``b`` and ``acc`` enter together; a window leaves as ``result`` and ``vector``: at once for RAW,
    ``lane.LATENCY`` enabled cycles after its last operand otherwise, and later with ``across``. ``insn`` and ``header``
    must hold meanwhile. ``group`` asks for the channel ``entries`` that arrive an enabled cycle later. ``clear`` drops
    all steps. ``table_*`` fill the tables."""

    def __init__(self, params: SocParams) -> None:
        self._params = params
        lanes = params.vec_lanes
        super().__init__(
            {
                "en": In(1), "clear": In(1), "insn": In(struct_layout(Op.VEC)), "header": In(HEADER),
                "step": In(STEP), "a": In(8 * lanes), "b": In(8 * lanes), "acc": In(32 * lanes),
                "group": Out(range(params.vec_groups)), "entries": In(8 * VEC_CHANNEL_BYTES * lanes),
                "table_write": In(1), "table_addr": In(range(TABLE_ROWS)), "table_data": In(8 * TABLE_ROW_BYTES),
                "result": Out(STEP), "vector": Out(8 * lanes),
            }
        )  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        insn, lanes = self.insn, self._params.vec_lanes
        rows = lanes >= RECORD_BYTES  # narrower engines have no records
        raw = Signal()
        m.d.comb += raw.eq(insn.op == VecOp.RAW)

        # What travels beside the operands.
        steps = [self.step]
        for k in range(_across_latency(lanes) if rows else lane.LATENCY):
            steps.append(Signal(STEP, name=f"step{k}"))
            with m.If(self.en):
                m.d.sync += steps[-1].eq(steps[-2])
        with m.If(raw):
            m.d.sync += steps[1].valid.eq(0)
        with m.If(~insn.across):
            m.d.sync += [step.valid.eq(0) for step in steps[lane.LATENCY + 1 :]]
        with m.If(self.clear):
            m.d.sync += [step.valid.eq(0) for step in steps[1:]]
        record = Signal(8 * RECORD_BYTES)  # operand B as one
        m.d.comb += record.eq(self.b)
        number, factor = record[:_NUMBER], delayed(m, self.en, record[_NUMBER:], lane.PARAM_LATENCY, "factor")

        settings = self._settings(m)
        behind = Signal(lanes)  # lanes behind the end of a row
        m.d.comb += [
            self.group.eq(Mux(insn.per_channel, steps[lane.PARAM_LATENCY - 1].group, 0)),
            behind.eq(Cat((insn.tail != 0) & (insn.tail <= k) for k in range(lanes))),
        ]
        made: list[Lane] = []
        for k in range(lanes):
            m.submodules[f"lane{k}"] = one = Lane()
            entry = self.entries.word_select(k, 8 * VEC_CHANNEL_BYTES)
            m.d.comb += [
                one.en.eq(self.en), one.settings.eq(settings),
                one.valid.eq(self.step.valid & ~raw), one.first.eq(self.step.first),
                one.counts.eq(~(self.step.final & behind[k])),
                one.a.eq(self.a.word_select(k, 8)), one.b.eq(self.b.word_select(k, 8)),
                one.addend.eq(Mux(insn.row, -number, self.acc.word_select(k, 32))),
                one.bias.eq(entry[:32]), one.scale.eq(Mux(insn.row, factor, entry[32:])),
                one.plane.eq(Mux(insn.planes, steps[lane.LATENCY].part, 0)),
                one.table_write.eq(self.table_write), one.table_addr.eq(self.table_addr),
                one.table_data.eq(self.table_data),
            ]  # fmt: skip
            made.append(one)

        with m.If(raw):
            m.d.comb += [self.result.eq(self.step), self.vector.eq(self.acc.word_select(self.step.part, 8 * lanes))]
        with m.Elif(insn.across):
            m.d.comb += self.result.eq(steps[-1])
        with m.Else():
            m.d.comb += [self.result.eq(steps[lane.LATENCY]), self.vector.eq(Cat(one.y for one in made))]
        if rows:
            m.submodules.records = made_of = Records(lanes)
            moves = Signal()  # it stands still while nothing needs it
            m.d.comb += [
                moves.eq(self.en & insn.across), made_of.en.eq(moves),
                made_of.op.eq(insn.op), made_of.ma.eq(self.header.ma), made_of.exponent.eq(self.header.mb),
                made_of.bias.eq(self.entries[:32]), made_of.plain.eq(insn.plain),
                made_of.totals.eq(Cat(one.total for one in made)), made_of.squares.eq(Cat(one.squares for one in made)),
                made_of.number.eq(delayed(m, moves, number, lane.PARAM_LATENCY, "number")),
            ]  # fmt: skip
            with m.If(insn.across):
                m.d.comb += self.vector.eq(made_of.record)
        return m

    def _settings(self, m: Module) -> Signal:
        insn, header = self.insn, self.header
        settings = Signal(SETTINGS)
        for name in ("op", "src_acc", "b_en", "a_signed", "b_signed", "table", "row"):
            m.d.comb += settings[name].eq(insn[name])
        for name in ("zp_a", "zp_b", "ma", "mb"):
            m.d.comb += settings[name].eq(header[name])
        half = 1 << (RESULT - 1)
        for name, of_planes in (("zp_y", 0), ("lo", -half), ("hi", half - 1)):
            m.d.comb += settings[name].eq(Mux(insn.planes, of_planes, header[name]))
        return settings


def _across_latency(lanes: int) -> int:
    """Return the enabled cycles from the last operand of a row to its record."""
    return lane.PARAM_LATENCY + records.latency(lanes)
