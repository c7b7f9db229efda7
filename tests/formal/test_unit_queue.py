import pytest
from amaranth.hdl import Assert, Assume, Cat, Const, Signal

from hw.control.decode import field_bits
from hw.control.unit_queue import IN_FLIGHT, UnitQueue
from hw.isa import Op, Unit
from hw.params import preset
from tests.formal.harness import prove, specification

PARAMS = preset("tiny").replace(unit_queue_depth=2, semaphores=16)


@pytest.mark.formal
def test_unit_queue_keeps_order_and_loses_nothing(tmp_path):
    """Commands carry consecutive numbers as PC and signal mask, and every exit must see them one by one.

    Pushes, grants, acceptance and completion come whenever they like.
    """
    m = specification()
    m.submodules.dut = dut = UnitQueue(PARAMS, Unit.MAC)
    push, grant, ready, done, needs = Signal(), Signal(), Signal(), Signal(), Signal()
    pushed, taken, finished = Signal(8), Signal(8), Signal(8)
    flying = Signal(range(IN_FLIGHT + 1))
    accepted = Signal()
    insn = dut.push.payload.insn
    m.d.comb += [
        dut.push.valid.eq(push),
        dut.push.payload.pc.eq(pushed),
        # Bit 15 keeps the mask from being empty, so that every signal is seen.
        field_bits(insn, Op.MAC, "signal").eq(Cat(pushed, Const(0x80, 8))),
        field_bits(insn, Op.MAC, "wait").eq(needs),
        dut.cmd.ready.eq(ready),
        dut.done.eq(done),
        dut.grant.eq(grant),
        accepted.eq(dut.cmd.valid & ready),
        Assume(~grant | dut.request),
        Assume(~done | (flying != 0)),
    ]
    m.d.sync += [
        pushed.eq(pushed + (push & dut.push.ready)),
        taken.eq(taken + accepted),
        flying.eq(flying + accepted - done),
        finished.eq(finished + dut.signal.any()),
    ]
    waited = Signal()  # the head has been granted what it asked for
    with m.If(accepted):
        m.d.sync += waited.eq(0)
        m.d.comb += [
            Assert(dut.cmd.payload.pc == taken),
            Assert(field_bits(dut.cmd.payload.insn, Op.MAC, "signal")[:8] == taken),
            Assert(~field_bits(dut.cmd.payload.insn, Op.MAC, "wait").any() | waited),
        ]
    with m.Elif(grant):
        m.d.sync += waited.eq(1)
    with m.If(dut.signal.any()):
        m.d.comb += [Assert(dut.signal == Cat(finished, Const(0x80, 8))), Assert(dut.signal_pc == finished)]
    with m.If(dut.idle):
        m.d.comb += [Assert(pushed == taken), Assert(taken == finished)]
    prove(m, [push, grant, ready, done, needs], tmp_path, depth=8, induction=False)
