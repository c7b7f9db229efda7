"""Tells from the fields of a VEC instruction alone whether it can run."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from hw.contract.isa import RECORD_BYTES, TABLE_BYTES, VEC_CHANNEL_BYTES, WIDE_BYTES, WIDE_TABLE_BYTES, VecOp
from hw.contract.params import SocParams

#: Base and strides of each side of an instruction, which are multiples of the lanes.
_A = ("a", "a_s2", "a_s1", "a_s0", "a_k1", "a_k0")
_B = ("b", "b_s2", "b_s1", "b_s0")
_D = ("d", "d_s2", "d_s1", "d_s0")


def illegal(m: Module, insn, params: SocParams) -> Signal:
    """Return whether the fields of ``insn`` do not fit together, or its addresses and strides are not aligned; the
    rules of ``sim.functional.vector``."""
    word_low, lane_low = (params.lv1_word - 1).bit_length(), (params.vec_lanes - 1).bit_length()
    names = ("raw", "lin", "lookup", "window", "reduces", "crosses", "flags", "bad")
    raw, lin, lookup, window, reduces, crosses, flags, bad = (Signal(name=name) for name in names)
    acc, tabled = insn.src_acc, insn.table | lookup
    # Strides count whatever their loops: one check of the instruction, none of its addresses.
    a, b, d = (Cat(insn[name][:lane_low] for name in names).any() for names in (_A, _B, _D))
    m.d.comb += [
        raw.eq(insn.op == VecOp.RAW),
        lin.eq(insn.op == VecOp.LIN),
        lookup.eq(insn.op == VecOp.LOOKUP),
        window.eq((insn.k1 != 1) | (insn.k0 != 1)),
        crosses.eq(_one_of(insn.op, VecOp.MAX, VecOp.SUM, VecOp.LOOKUP, VecOp.MOMENTS)),
        reduces.eq(_one_of(insn.op, VecOp.MAX, VecOp.SUM, VecOp.MOMENTS, VecOp.WIDE) | (lookup & insn.across)),
        flags.eq(
            insn.b_en | insn.a_signed | insn.b_signed | insn.table | insn.per_channel
            | insn.across | insn.tail.any() | insn.row | insn.planes | insn.plain
        ),
        bad.eq(
            (raw & (~acc | (insn.n2 != 4) | flags))
            | (acc & ((~lin & ~raw) | insn.b_en))
            | (~lin & (insn.b_en != ((insn.op == VecOp.MUL) | lookup)))
            | (window & ~reduces)
            | ((insn.per_channel | acc) & (insn.n0 > params.vec_groups))
            | ((insn.op == VecOp.MOMENTS) & ~insn.across)
            | (insn.across & (~crosses | (insn.n0 != 1) | insn.per_channel | insn.table | insn.planes))
            | (insn.tail > Mux(insn.across, params.vec_lanes, 0))
            | ((insn.row != lookup) & ~(lin & insn.b_en))
            | ((insn.row | insn.across) & (params.vec_lanes < RECORD_BYTES))
            | (lookup & insn.table)
            | (insn.planes & ((insn.n2 != WIDE_BYTES) | insn.table))
            | (insn.plain & (insn.op != VecOp.MOMENTS))
            | (~raw & insn.p[:word_low].any())
            | (tabled & insn.t[:word_low].any())
            | (~acc & a) | (insn.b_en & b) | d
        ),
    ]  # fmt: skip
    return bad


def beyond(m: Module, insn, params: SocParams) -> tuple[Value, Signal]:
    """Return whether the parameter block or the table of a legal ``insn`` does not lie in LV1, and where that
    begins."""
    raw, lookup = insn.op == VecOp.RAW, insn.op == VecOp.LOOKUP
    block = params.vec_header_bytes + VEC_CHANNEL_BYTES * params.vec_lanes * Mux(insn.per_channel, insn.n0, 1)
    block_beyond, table_beyond, culprit = Signal(), Signal(), Signal.like(insn.p)
    m.d.comb += [
        block_beyond.eq(~raw & (insn.p + block > params.lv1_bytes)),
        table_beyond.eq(
            (insn.table & (insn.t + TABLE_BYTES > params.lv1_bytes))
            | (lookup & (insn.t + WIDE_TABLE_BYTES > params.lv1_bytes))
        ),
        culprit.eq(Mux(block_beyond, insn.p, insn.t)),
    ]
    return block_beyond | table_beyond, culprit


def _one_of(value, *operations: VecOp):
    return Cat(value == operation for operation in operations).any()
