import pytest
from amaranth.hdl import Assert, Assume, Cat, Const, Mux, Signal

from hw.contract.isa import Op, Unit
from hw.contract.params import preset
from hw.contract.timing import UNIT_IN_FLIGHT
from hw.control.decode import field_bits
from hw.control.unit_queue import UnitQueue
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
    flying = Signal(range(UNIT_IN_FLIGHT + 1))
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


@pytest.mark.formal
def test_every_command_waits_once_and_signals_once_for_ever(tmp_path):
    """What surrounds the two :class:`RamQueue`, whose own order is proved with them: nothing enters without its
    semaphores, everything that enters is remembered, and each completion signals the oldest of those."""
    m = specification()
    m.submodules.dut = dut = UnitQueue(PARAMS, Unit.MAC)
    grant, ready, done, halt = Signal(), Signal(), Signal(), Signal()
    push = Signal()
    needs, signals = Signal(PARAMS.semaphores), Signal(PARAMS.semaphores)
    insn, memory, queue = dut.push.payload.insn, dut._flying, dut._queue
    flying = Signal(range(UNIT_IN_FLIGHT + 1))  # in the unit: accepted, and not done
    accepted, remembered = Signal(), Signal()
    sent = dut.cmd.payload
    m.d.comb += [
        dut.push.valid.eq(push),
        field_bits(insn, Op.MAC, "wait").eq(needs),
        field_bits(insn, Op.MAC, "signal").eq(signals),
        dut.cmd.ready.eq(ready),
        dut.done.eq(done),
        dut.grant.eq(grant),
        dut.halt.eq(halt),
        accepted.eq(dut.cmd.valid & ready),
        remembered.eq(memory.o.valid & memory.o.ready),
        Assume(~grant | dut.request),
        Assume(~done | (flying != 0)),
        # What leaves the queue is what entered it: its own proof.
        Assert(queue.i.payload.needs == needs.any()),
        Assume(~queue.o.valid | (queue.o.payload.needs == dut.wait.any())),
    ]
    m.d.sync += flying.eq(flying + accepted - done)

    # Every acceptance enters the memory, which has room, with the mask and PC of the command.
    entry = memory.i.payload
    m.d.comb += [
        Assert(memory.i.valid == accepted),
        Assert(~accepted | memory.i.ready),
        Assert(entry.signal == field_bits(sent.insn, Op.MAC, "signal")[: PARAMS.semaphores]),
        Assert(entry.pc == sent.pc),
        Assert(dut._in_flight <= UNIT_IN_FLIGHT),
        Assert(dut._in_flight == memory._level + memory.o.valid),
        Assert(dut._in_flight == flying + dut._owed),
        Assert(memory._level <= UNIT_IN_FLIGHT),
    ]
    # Completions and signals keep step: what is owed is paid as soon as the memory shows it.
    m.d.comb += [
        Assert(dut.signal == Mux(remembered, memory.o.payload.signal, 0)),
        Assert(~remembered | (dut.signal_pc == memory.o.payload.pc)),
        Assert(remembered == (memory.o.valid & (done | (dut._owed != 0)))),
    ]
    # One grant per command that needs one, and none offered without it.
    waited, halted = Signal(), Signal()
    m.d.sync += halted.eq(halt)
    with m.If(accepted):
        m.d.sync += waited.eq(0)
    with m.Elif(grant):
        m.d.sync += waited.eq(1)
    m.d.comb += [
        Assert(waited == dut._granted),
        # What is known ahead is what it stands for.
        Assert(dut._asks == ~(waited | halted)),
        Assert(dut._open == ((dut._in_flight != UNIT_IN_FLIGHT) & ~halted)),
        Assert(~(grant & waited)),
        Assert(~dut.cmd.valid | waited | ~field_bits(sent.insn, Op.MAC, "wait")[: PARAMS.semaphores].any()),
        Assert(~(halted & (dut.cmd.valid | dut.request))),
    ]
    prove(m, [push, needs, signals, grant, ready, done, halt], tmp_path, depth=4, induction=True)
