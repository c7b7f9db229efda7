"""Defines the vector unit of an engine."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from hw.contract.isa import Op, VecOp
from hw.contract.job import Fault
from hw.contract.params import SocParams
from hw.data_register import data_register
from hw.interfaces import ReadPort, UnitPort, WritePort, struct_layout
from hw.mac.accumulators import AccReadPort
from hw.scratchpad import word_bits
from hw.spill_register import SpillRegister
from hw.vec import check
from hw.vec.combine import WriteCombiner
from hw.vec.datapath import Datapath
from hw.vec.parameters import ParameterLoader
from hw.vec.walker import LV1_ADDR, STEP, Walker


class VecUnit(wiring.Component):
    """Runs VEC instructions in order; see ``VEC_FORMAT`` in ``hw.contract.isa``.

    One operand vector per cycle; results leave through a write combiner. The parameter block is read before the first
    operand, and an instruction starts when the one before has landed. Operands that share an LV1 word with the one
    before do not read it again.

    Members: ``unit``: Out(UnitPort); ``a``, ``b``: Out(ReadPort), operands (``a`` also reads parameters);
    ``d``: Out(WritePort), results; ``acc``: Out(AccReadPort), accumulators.
    """

    def __init__(self, params: SocParams) -> None:
        self._params = params
        address = word_bits(params.lv1_bytes, params.lv1_word)
        super().__init__(
            {
                "unit": Out(UnitPort()),
                "a": Out(ReadPort(address, params.lv1_word)),
                "b": Out(ReadPort(address, params.lv1_word)),
                "d": Out(WritePort(address, params.lv1_word)),
                "acc": Out(AccReadPort(params)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params, unit = self._params, self.unit
        lanes, word = params.vec_lanes, params.lv1_word
        word_low, lane_low = (word - 1).bit_length(), (lanes - 1).bit_length()

        # Accept a command, check it, load its parameters, walk its steps, wait until its last result has landed.
        cmd = Signal(unit.cmd.payload.shape())
        insn = Signal(struct_layout(Op.VEC))
        m.d.comb += insn.eq(cmd.insn)
        m.submodules.walker = walker = Walker(params)
        m.submodules.loader = loader = ParameterLoader(params)
        m.submodules.datapath = datapath = Datapath(params)
        m.submodules.spill = spill = SpillRegister(data.StructLayout({"d": LV1_ADDR, "vector": 8 * lanes, "last": 1}))
        m.submodules.combiner = combiner = WriteCombiner(params)
        wiring.connect(m, wiring.flipped(self.d), combiner.port)
        m.d.comb += [walker.insn.eq(insn), loader.p.eq(insn.p), loader.t.eq(insn.t)]
        raw, lookup = Signal(), Signal()
        m.d.comb += [
            raw.eq(insn.op == VecOp.RAW),
            lookup.eq(insn.op == VecOp.LOOKUP),
            loader.table.eq(insn.table | lookup),
            loader.wide.eq(lookup),
            loader.groups.eq(Mux(insn.per_channel, insn.n0, 1)),
        ]
        illegal, (outside, outside_at) = check.illegal(m, insn, params), check.beyond(m, insn, params)
        dead, walking = Signal(), Signal()
        fault, fault_code, fault_addr = Signal(), Signal(8), Signal(LV1_ADDR)
        stop = Signal()
        offered = Signal(3)  # requests that were made and not accepted: they stay until they are, whatever happens
        for request, stays in zip((self.a.req, self.b.req, self.acc.req), offered, strict=True):
            m.d.sync += stays.eq(request.valid & ~request.ready)
        m.d.comb += [stop.eq(dead | unit.abort), loader.hold.eq(stop), combiner.discard.eq(stop)]
        with m.FSM(name="phase") as phase:
            with m.State("IDLE"):
                m.d.comb += unit.cmd.ready.eq(~stop)
                with m.If(unit.cmd.valid & ~stop):
                    m.d.sync += cmd.eq(unit.cmd.payload)
                    m.next = "CHECK"
            with m.State("CHECK"):
                with m.If(illegal):
                    m.d.comb += [fault.eq(1), fault_code.eq(Fault.ILLEGAL)]
                with m.Elif(outside):
                    m.d.comb += [fault.eq(1), fault_code.eq(Fault.LIMIT), fault_addr.eq(outside_at)]
                with m.Else():
                    m.d.comb += [loader.start.eq(~raw), walker.start.eq(1)]
                    m.next = "PARAMETERS"
            with m.State("PARAMETERS"):
                with m.If(~loader.busy):
                    m.d.sync += walking.eq(1)
                    m.next = "RUN"
            with m.State("RUN"):
                with m.If(combiner.done):
                    m.next = "IDLE"
            m.d.comb += unit.busy.eq(Mux(stop, combiner.busy | offered.any(), ~phase.ongoing("IDLE")))
        with m.If(stop):
            m.d.sync += walking.eq(0)

        # Ask for operands. A step leaves when every read it needs was accepted, in this cycle or an earlier one.
        en, fetched_free = Signal(), Signal()
        uses_b, uses_lv1 = insn.b_en, ~insn.src_acc
        leave = Signal()
        a_bad, b_bad = uses_lv1 & (walker.a >= params.lv1_bytes), uses_b & (walker.b >= params.lv1_bytes)
        acc_bad = insn.src_acc & (walker.a >= params.lv0_acc_rows)
        d_bad = walker.d >= params.lv1_bytes
        # An address out of range is known a cycle after its step came; what that step reads meanwhile goes nowhere.
        beyond, culprit = Signal(), data_register(LV1_ADDR)
        m.d.sync += [
            beyond.eq(walking & ~stop & (a_bad | b_bad | acc_bad | d_bad)),
            culprit.eq(Mux(a_bad | acc_bad, walker.a, Mux(b_bad, walker.b, walker.d))),
        ]
        with m.If(beyond):
            m.d.comb += [fault.eq(1), fault_code.eq(Fault.LIMIT), fault_addr.eq(culprit)]

        may_ask = Signal()
        m.d.comb += may_ask.eq(walking & ~stop & fetched_free)
        a_ask, a_word, a_done = self._operand(m, "a", self.a, may_ask & uses_lv1, walker, walker.a_turns)
        b_ask, b_word, b_done = self._operand(m, "b", self.b, may_ask & uses_b, walker, walker.b_turns)
        m.d.comb += [
            self.a.req.valid.eq(a_ask | loader.read_valid | offered[0]),  # never both a_ask and the loader
            self.a.req.payload.eq(Mux(loader.busy, loader.addr[word_low:], walker.a[word_low:])),
            self.b.req.valid.eq(b_ask | offered[1]),
            self.b.req.payload.eq(walker.b[word_low:]),
            loader.read_ready.eq(self.a.req.ready),
            loader.rsp_valid.eq(self.a.rsp_valid & loader.busy),
            loader.rsp_data.eq(self.a.rsp_data),
            self.acc.req.valid.eq(may_ask & insn.src_acc | offered[2]),
            self.acc.req.payload.row.eq(walker.a),
            self.acc.req.payload.group.eq(walker.group),
            leave.eq(may_ask & a_done & b_done & (~insn.src_acc | self.acc.req.ready)),
            walker.step.eq(leave),
        ]
        with m.If(leave & walker.last):
            m.d.sync += walking.eq(0)

        # Operands are here a cycle later; hold them while the lanes stand still.
        fetched = Signal(STEP)
        a_at, b_at = Signal(range(max(word // lanes, 2))), Signal(range(max(word // lanes, 2)))
        acc_held, acc_data, acc_came = data_register(32 * lanes), Signal(32 * lanes), Signal()
        m.d.comb += fetched_free.eq(~fetched.valid | ~spill.kept)
        m.d.sync += acc_came.eq(self.acc.req.valid & self.acc.req.ready)
        with m.If(acc_came):
            m.d.sync += acc_held.eq(self.acc.data)
        m.d.comb += acc_data.eq(Mux(acc_came, self.acc.data, acc_held))
        with m.If(fetched_free):
            m.d.sync += [
                fetched.valid.eq(leave), fetched.d.eq(walker.d), fetched.group.eq(walker.group),
                fetched.part.eq(walker.part),
                fetched.first.eq(walker.first), fetched.final.eq(walker.final), fetched.last.eq(walker.last),
                a_at.eq(walker.a[lane_low:word_low]), b_at.eq(walker.b[lane_low:word_low]),
            ]  # fmt: skip
        a_vector, b_vector, acc_vector = data_register(8 * lanes), data_register(8 * lanes), data_register(32 * lanes)
        ready = Signal(STEP)
        with m.If(en):
            m.d.sync += [
                ready.eq(fetched),
                a_vector.eq(a_word.word_select(a_at, 8 * lanes)),
                b_vector.eq(b_word.word_select(b_at, 8 * lanes)),
                acc_vector.eq(acc_data),
            ]

        m.d.comb += [
            loader.en.eq(en), loader.group.eq(datapath.group),
            datapath.en.eq(en), datapath.clear.eq(stop), datapath.insn.eq(insn), datapath.header.eq(loader.header),
            datapath.step.eq(ready), datapath.a.eq(a_vector), datapath.b.eq(b_vector), datapath.acc.eq(acc_vector),
            datapath.entries.eq(loader.entries), datapath.table_write.eq(loader.table_write),
            datapath.table_addr.eq(loader.table_addr), datapath.table_data.eq(loader.table_data),
            spill.i.valid.eq(datapath.result.valid & datapath.result.final & ~stop),
            spill.i.payload.d.eq(datapath.result.d),
            spill.i.payload.last.eq(datapath.result.last),
            spill.i.payload.vector.eq(datapath.vector),
            spill.clear.eq(stop),
            en.eq(spill.i.ready),
            combiner.valid.eq(spill.o.valid & ~stop),
            combiner.d.eq(spill.o.payload.d),
            combiner.last.eq(spill.o.payload.last),
            combiner.vector.eq(spill.o.payload.vector),
            spill.o.ready.eq(combiner.ready),
        ]  # fmt: skip
        with m.If(stop):
            m.d.sync += [fetched.valid.eq(0), ready.valid.eq(0)]

        with m.If(fault):
            m.d.sync += dead.eq(1)
        m.d.sync += [
            unit.done.eq(combiner.done & ~stop),
            unit.fault.eq(fault & ~stop),
            unit.fault_info.code.eq(fault_code),
            unit.fault_info.pc.eq(cmd.pc),
            unit.fault_info.addr.eq(fault_addr),
            unit.mon_active.eq(leave),
            unit.mon_stalled.eq(walking & ~leave),
        ]
        return m

    def _operand(self, m: Module, name: str, port, asks, walker, turns):
        """Return for the reads of one operand: whether to ask for the word of the current step, the word of the step
        before, which arrives now or stays in a register, and whether the step need not wait. The word asked for last is
        not read again."""
        wanted = Signal(name=f"{name}_wanted")
        held = data_register(8 * self._params.lv1_word, name=f"{name}_held")
        word = Signal(held.shape(), name=f"{name}_word")
        ask = Signal(name=f"{name}_ask")
        m.d.comb += [
            ask.eq(asks & wanted),
            word.eq(Mux(port.rsp_valid, port.rsp_data, held)),
        ]
        with m.If(walker.start):
            m.d.sync += wanted.eq(1)
        with m.Elif(walker.step):
            m.d.sync += wanted.eq(turns)
        with m.Elif(ask & port.req.ready):
            m.d.sync += wanted.eq(0)
        with m.If(port.rsp_valid):
            m.d.sync += held.eq(port.rsp_data)
        return ask, word, ~ask | port.req.ready
