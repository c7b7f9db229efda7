"""Defines the MAC unit of one engine."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.contract.isa import Lv0Space
from hw.contract.params import SocParams
from hw.interfaces import Lv0WritePort, UnitPort
from hw.mac.accumulators import AccReadPort, Accumulators
from hw.mac.array import PeArray, sign_flip
from hw.mac.lv0 import Lv0Memory
from hw.mac.sequencer import MacSequencer


class MacUnit(wiring.Component):
    """Joins sequencer, LV0 memories, PE arrays and accumulators of one engine; all PEs work in lockstep.

    A block of p pixels takes max(p, rows) cycles; between blocks and between queued commands no cycle is lost. A pixel
    is in its accumulator eight cycles after it was issued.

    Members: ``unit``: :class:`UnitPort`; ``lv0``: writes into both LV0 spaces and the accumulators; ``acc``: the other
    side of :class:`AccReadPort`, for VEC. ``act``, ``wgt`` and ``accumulators`` give access to the memories' ``data``.
    """

    def __init__(self, params: SocParams) -> None:
        self._params = params
        self.taps = params.depthwise_taps
        self.act = Lv0Memory(params, Lv0Space.ACT, self.taps)
        self.wgt = Lv0Memory(params, Lv0Space.WGT)
        self.accumulators = Accumulators(params)
        super().__init__({"unit": Out(UnitPort()), "lv0": In(Lv0WritePort(params)), "acc": In(AccReadPort(params))})

    def elaborate(self, platform):
        m = Module()
        p, unit = self._params, self.unit
        m.submodules.sequencer = sequencer = MacSequencer(p, self.taps)
        m.submodules.act = self.act
        m.submodules.wgt = self.wgt
        m.submodules.accumulators = self.accumulators
        pixel, weight = sequencer.pixel, sequencer.wgt

        # Pixel and weight word move on one stage per cycle, whatever happens; `age[i]` is i + 1 cycles old.
        stages = 7
        age = [Signal(pixel.shape(), name=f"pixel{i}") for i in range(stages)]
        m.d.sync += age[0].eq(pixel)
        m.d.sync += [younger.eq(older) for older, younger in pairwise(age)]
        wgt_age = [Signal(weight.shape(), name=f"weight{i}") for i in range(2)]
        m.d.sync += [wgt_age[0].eq(weight), wgt_age[1].eq(wgt_age[0])]

        # Stage 0 to 1: LV0. Stage 1 to 2: signed bytes become unsigned of the same order, and so do zero points.
        m.d.comb += [
            self.act.read_en.eq(pixel.valid), self.act.read_addr.eq(pixel.addr),
            self.wgt.read_en.eq(weight.valid), self.wgt.read_addr.eq(weight.addr),
        ]  # fmt: skip
        flip = sign_flip(p.lv1_word)
        taps = [Signal(8 * p.lv1_word, name=f"tap{t}") for t in range(self.taps)]
        wgt_word = Signal(8 * p.lv1_word)
        x_zp, w_zp = Signal(8), Signal(8)
        with m.If(age[0].valid):
            m.d.sync += x_zp.eq(age[0].zp ^ (age[0].signed << 7))
            m.d.sync += [
                tap.eq(word ^ Mux(age[0].signed, flip, 0)) for tap, word in zip(taps, self.act.words, strict=True)
            ]
        with m.If(wgt_age[0].valid):
            m.d.sync += w_zp.eq(wgt_age[0].zp ^ (wgt_age[0].signed << 7))
            m.d.sync += wgt_word.eq(self.wgt.words[0] ^ Mux(wgt_age[0].signed, flip, 0))

        # Stages 2 to 6: the arrays.
        dots = []
        for pe in range(p.pes):
            m.submodules[f"pe{pe}"] = array = PeArray(p.rows, p.cols, self.taps)
            m.d.comb += [
                array.wgt.eq(wgt_word.word_select(pe, 8 * p.rows)),
                array.w_zp.eq(w_zp), array.w_cols.eq(wgt_age[1].cols), array.w_load.eq(wgt_age[1].valid),
                *(own.eq(tap.word_select(pe, 8 * p.rows)) for own, tap in zip(array.tap, taps, strict=True)),
                array.x_zp.eq(x_zp), array.depthwise.eq(age[1].depthwise), array.x_load.eq(age[1].valid),
                array.swap.eq(age[1].valid & age[1].swap),
                array.mul_en.eq(age[2].valid), array.half_en.eq(age[3].valid), array.sum_en.eq(age[4].valid),
            ]  # fmt: skip
            dots.extend(array.dot)

        # Stages 5 to 7: accumulate.
        acc = self.accumulators
        m.d.comb += [
            acc.issue.eq(age[4].valid), acc.row.eq(age[4].row), acc.keep.eq(age[4].keep),
            *(addend.eq(dot) for addend, dot in zip(acc.addend, dots, strict=True)),
        ]  # fmt: skip
        wiring.connect(m, wiring.flipped(self.acc), acc.vec)
        m.d.comb += [
            acc.restore.eq(self.lv0.valid & (self.lv0.space == Lv0Space.ACC)),
            acc.restore_addr.eq(self.lv0.addr),
            acc.restore_data.eq(self.lv0.data),
        ]

        wiring.connect(m, wiring.flipped(unit.cmd), sequencer.cmd)
        m.d.sync += unit.done.eq(age[6].valid & age[6].last & ~unit.abort)
        m.d.comb += [
            sequencer.abort.eq(unit.abort),
            unit.fault.eq(sequencer.fault),
            unit.fault_info.eq(sequencer.fault_info),
            unit.busy.eq(sequencer.busy | Cat(one.valid for one in age).any() | unit.done),
            unit.mon_active.eq(pixel.valid),
        ]
        for memory in (self.act, self.wgt):
            for name in self.lv0.signature.members:
                m.d.comb += getattr(memory.write, name).eq(getattr(self.lv0, name))
        return m
