"""Pause, halt and go on, for all programs, times of the pause, and speeds of everything around the sequencers."""

import pytest
from amaranth.hdl import Assert, Assume, Fragment, Module, Signal

from hw.contract.isa import UNIT_OF, Op
from hw.contract.job import Fault
from hw.contract.regs import EngineState
from hw.control import executor as executor_module, loader as loader_module
from hw.control.executor import Executor
from hw.control.loader import Loader
from tests.formal.harness import prove_for_ever, specification
from tests.formal.sequencer import KINDS, PARAMS, AnyFetch, AnyPreparer, instances

_CANCEL = KINDS.index(Op.CANCEL)
_MOST = 3  #: instructions queued or in a unit at a time


class Surroundings:
    """Units, loader and retirer of an executor: they finish what they have whenever they like."""

    def __init__(self, m: Module, dut: Executor) -> None:
        self.ready, self.finish, self.linger = Signal(), Signal(), Signal()
        self.rest, self.free, self.fault = Signal(), Signal(), Signal()
        self.flying = Signal(range(_MOST + 1))  # pushed, and not finished
        lingering, resting, free, faulty = Signal(), Signal(), Signal(init=1), Signal()
        self.accepted = Signal()
        m.d.sync += [
            self.flying.eq(self.flying + self.accepted - (self.finish & (self.flying != 0))),
            lingering.eq((lingering & self.linger) | (self.flying != 0)),
            resting.eq(dut.pause & (resting | self.rest)),
            free.eq(~(dut.ended.valid & free) & (free | self.free)),
            faulty.eq(faulty | self.fault),
        ]
        m.d.comb += [
            self.accepted.eq((dut.dispatch.push & dut.dispatch.ready).any()),
            dut.dispatch.ready.eq((self.ready & (self.flying != _MOST)).replicate(7)),
            dut.drained.eq(self.flying == 0),
            dut.units_quiet.eq((self.flying == 0) & ~lingering),
            dut.loaded.resting.eq(resting & dut.pause),
            dut.ended.free.eq(free),
            dut.fault.eq(faulty),
            dut.fault_info.code.eq(Fault.LIMIT),
        ]

    def inputs(self) -> list[Signal]:
        return [self.ready, self.finish, self.linger, self.rest, self.free, self.fault]


def executor_claims(monkeypatch, dut: Executor) -> tuple[Module, list[Signal]]:
    """What an executor keeps to at a pause."""
    fetches = instances(monkeypatch, executor_module, "InstructionFetch", AnyFetch)
    preparers = instances(monkeypatch, executor_module, "JobPreparer", AnyPreparer)
    m = specification()
    m.submodules.dut = Fragment.get(dut, None)
    (fetch,), (preparer,) = fetches, preparers
    around = Surroundings(m, dut)
    pause, enable, copied = Signal(), Signal(), Signal()
    m.d.comb += [dut.pause.eq(pause), dut.enable.eq(enable), dut.ended.copied.eq(copied)]
    halted = dut.status.state == EngineState.HALTED

    # No instruction is lost or issued twice: they leave the fetch one by one, each to its unit or as a point.
    taken, following, begun = Signal(), Signal.like(dut.status.next_pc), Signal()
    of_unit = Signal(7)
    with m.Switch(fetch.shown):
        for number, op in enumerate(KINDS):
            if op in UNIT_OF:
                with m.Case(number):
                    m.d.comb += of_unit.eq(1 << UNIT_OF[op])
    m.d.comb += taken.eq(fetch.insn.valid & fetch.insn.ready)
    with m.If(fetch.start):
        m.d.sync += following.eq(fetch.pc)
    with m.Elif(taken):
        m.d.sync += following.eq(following + 1)
    with m.If(dut.begin):
        m.d.sync += begun.eq(0)
    with m.Elif(taken):
        m.d.sync += begun.eq(1)
    point = taken & (fetch.shown == _CANCEL)
    m.d.comb += [
        Assert(taken == (around.accepted | point)),
        Assert(~around.accepted | ((dut.dispatch.push == of_unit) & (dut.dispatch.command.pc == following))),
        Assert(dut.issued == around.accepted),
        Assert(~(halted & dut.status.in_job) | (fetch.running & ~fetch.flush)),
    ]

    # A pending pause is honoured at the first point: nothing is issued behind it until the pause is over.
    stopped = Signal()
    m.d.sync += stopped.eq(pause & (stopped | point))
    m.d.comb += [
        Assert(~(stopped & pause & (around.accepted | taken))),
        Assert(~(pause & dut.begin)),
        Assert(~(stopped & pause & dut.ended.valid) | dut.abort),
    ]

    # HALTED: everything is idle, and what has been told of the place holds.
    was_halted, was_in_job = Signal(), Signal()
    m.d.sync += [was_halted.eq(halted), was_in_job.eq(dut.status.in_job)]
    m.d.comb += [
        Assert(~halted | (dut.drained & dut.units_quiet & dut.ended.free)),
        Assert(~(halted & pause) | dut.loaded.resting),
        Assert(~halted | (~dut.dispatch.push.any() & ~dut.ended.valid & ~dut.measure)),
        Assert(~dut.status.in_job | (halted & (dut.status.pc == following) & (dut.status.next_pc == following))),
        Assert(dut.status.halted == (halted & ~was_halted)),
        Assert(~(was_halted & was_in_job & ~halted) | dut.measure),
    ]

    # Semaphores are set before the first instruction of a body and at no other time.
    m.d.comb += [
        Assert(~(dut.semaphores.load & (begun | taken))),
        Assert(~(halted & (dut.begin | dut.semaphores.load))),
        Assert(~(dut.begin & (around.flying != 0))),
    ]
    return m, [pause, enable, copied, *around.inputs(), *fetch.inputs(), *preparer.inputs()]


@pytest.mark.formal
def test_no_instruction_is_lost_or_issued_twice_across_halts(tmp_path, monkeypatch):
    m, inputs = executor_claims(monkeypatch, Executor(PARAMS))
    prove_for_ever(m, inputs, tmp_path)


@pytest.mark.formal
def test_claims_reach_a_halt_behind_issued_instructions_and_beyond(tmp_path, monkeypatch):
    dut = Executor(PARAMS)
    m, inputs = executor_claims(monkeypatch, dut)
    halts = Signal()
    with m.If(dut.status.in_job & (dut.status.pc >= 2)):
        m.d.sync += halts.eq(1)
    m.d.comb += Assert(~(halts & dut.issued))
    with pytest.raises(AssertionError, match="Assert failed"):
        prove_for_ever(m, inputs, tmp_path)


class Hasty(Executor):
    """Takes units for idle as soon as it pauses."""

    def elaborate(self, platform) -> Module:
        m = super().elaborate(platform)
        with m.If(self.pause):
            m.d.comb += [self.status.in_job.eq(1), self.status.state.eq(EngineState.HALTED)]
        return m


@pytest.mark.formal
def test_a_halt_with_work_under_way_is_caught(tmp_path, monkeypatch):
    m, inputs = executor_claims(monkeypatch, Hasty(PARAMS))
    with pytest.raises(AssertionError, match="Assert failed"):
        prove_for_ever(m, inputs, tmp_path)


def loader_claims(monkeypatch, dut: Loader) -> tuple[Module, list[Signal]]:
    """What a loader keeps to while it is held."""
    fetches = instances(monkeypatch, loader_module, "InstructionFetch", AnyFetch)
    m = specification()
    m.submodules.dut = Fragment.get(dut, None)
    (fetch,) = fetches
    loaded, offered = Signal.like(dut.loaded.count), Signal()
    hold, halt, accept, finish, emptied = Signal(), Signal(), Signal(), Signal(), Signal()
    stored, retired, header = Signal(2), Signal(2), Signal(64)
    flying = Signal(range(_MOST + 1))  # loads in the unit
    accepted, done, emptying = Signal(), Signal(), Signal()
    m.d.comb += [
        dut.enable.eq(1),
        dut.hold.eq(hold),
        dut.halt.eq(halt),
        dut.stored.count.eq(stored),
        dut.retired.eq(retired),
        dut.slots.header.data.eq(header),
        dut.loads.cmd.ready.eq(accept & (flying != _MOST) & ~emptying),
        accepted.eq(dut.loads.cmd.valid & dut.loads.cmd.ready),
        done.eq(finish & (flying != 0) & ~emptying),
        dut.loads.done.eq(done),
        dut.loads.active.eq(flying != 0),
        dut.loads.present.eq((flying != 0) | offered | emptying),
        Assume(~halt),
    ]
    m.d.sync += [
        flying.eq(flying + accepted - done),
        emptying.eq((emptying & ~emptied) | (dut.loads.abandon & dut.loads.present)),
    ]
    with m.If(emptying & emptied):
        m.d.sync += [emptying.eq(0), flying.eq(0)]

    # Loads leave the fetch one by one and in order; after a pause from the oldest that had not landed.
    taken, following, oldest, begun = Signal(), Signal.like(fetch.pc), Signal.like(fetch.pc), Signal()
    m.d.comb += taken.eq(fetch.insn.valid & fetch.insn.ready)
    with m.If(fetch.start):
        m.d.sync += following.eq(fetch.pc)
        m.d.sync += [oldest.eq(fetch.pc), begun.eq(1)]
    with m.Elif(taken):
        m.d.sync += following.eq(following + 1)
    with m.If(done):
        m.d.sync += oldest.eq(oldest + 1)
    with m.If(dut.loaded.count != loaded):
        m.d.sync += begun.eq(0)
    m.d.comb += [
        Assert(taken == accepted),
        Assert(~accepted | (dut.loads.cmd.payload.pc == following)),
        Assert(~(fetch.start & begun) | (fetch.pc == oldest)),
        Assert(~(fetch.start & (flying != 0))),
    ]

    # At rest nothing is under way, and nothing begins until the hold is over. A load is withdrawn only when abandoned.
    rested = Signal()
    m.d.sync += [
        rested.eq(dut.loaded.resting),
        loaded.eq(dut.loaded.count),
        offered.eq(dut.loads.cmd.valid & ~accepted),
    ]
    m.d.comb += [
        Assert(~dut.loaded.resting | (hold & (flying == 0) & ~dut.loads.cmd.valid & ~fetch.start & ~emptying)),
        Assert(~(rested & hold) | (dut.loaded.resting & (dut.loaded.count == loaded))),
        Assert(~offered | dut.loads.cmd.valid | dut.loads.abandon),
    ]
    return m, [hold, halt, accept, finish, emptied, stored, retired, header, *fetch.inputs()]


@pytest.mark.formal
def test_a_loader_at_rest_stays_there_and_loses_no_load(tmp_path, monkeypatch):
    m, inputs = loader_claims(monkeypatch, Loader(PARAMS))
    prove_for_ever(m, inputs, tmp_path)


@pytest.mark.formal
def test_loader_claims_reach_a_rest_between_two_loads(tmp_path, monkeypatch):
    dut = Loader(PARAMS)
    m, inputs = loader_claims(monkeypatch, dut)
    first, rested = Signal(), Signal()
    accepted = dut.loads.cmd.valid & dut.loads.cmd.ready
    with m.If(accepted):
        m.d.sync += first.eq(1)
    with m.If(first & dut.loaded.resting & dut.busy):
        m.d.sync += rested.eq(1)
    m.d.comb += Assert(~(rested & accepted))
    with pytest.raises(AssertionError, match="Assert failed"):
        prove_for_ever(m, inputs, tmp_path)
