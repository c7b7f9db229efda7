"""Defines the executor, which runs bodies in ring order."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.contract.formats import PARAMETERS
from hw.contract.isa import Op, Unit
from hw.contract.job import SEMAPHORES, Fault, FaultUnit, JobFlag
from hw.contract.params import SocParams
from hw.contract.regs import EngineState
from hw.contract.timing import SETTLED
from hw.control.body_end import end_states
from hw.control.decode import Decoder, field_bits
from hw.control.fetch import InstructionFetch
from hw.control.prepare import JobPreparer
from hw.control.resolver import Resolver
from hw.control.signatures import (
    HEADER_BITS,
    JOB_FAULT,
    SEMAPHORE_GROUP,
    Dispatch,
    EndedJob,
    EventWait,
    ExecutorStatus,
    LoadedJobs,
    SemaphoreSetup,
    Slots,
    word_of,
)
from hw.interfaces import PC, BusReadPort

_SEM_WORD = word_of("sem0")
_SEM_WORDS = SEMAPHORES // SEMAPHORE_GROUP  #: 64-bit words of semaphore counts in a descriptor
_COUNTS_AND_PARAMETERS = _SEM_WORDS + PARAMETERS // 2  #: those of parameters follow


class Executor(wiring.Component):
    """Fetches, decodes and dispatches the body of one job after the other, and ends jobs in order.

    An instruction takes two cycles: decode and segment look-up, then dispatch to its unit queue; between them two more
    for each parameter that it names. At END all queues
    drain, semaphores are checked, and the job goes to the :class:`~hw.control.retire.Retirer`. The next job is
    prepared meanwhile, so its first instruction is usually there when the last one ends.

    With ``pause`` it halts behind the next CANCEL or before a body, once all units have finished, the loader rests and
    the completions of earlier jobs are written, and goes on when ``pause`` is taken back. A pause that is taken back
    before that leaves no trace. An engine that is not enabled halts at cancellation points only. A job with the RESUME
    flag starts with the semaphores of its descriptor, one with PARAMS with its parameters.

    A fault stops dispatch and aborts the units; the job ends with the fault, and the engine stays in FAULT until it
    is reset.

    Members
    -------
    enable, halt : In(1)
    pause : In(1)
        Halt at the next cancellation point or job boundary, and stay until it is taken back.
    loaded : In(LoadedJobs)
        Nothing halts before the loader rests.
    now : In(64)
    slots : Out(Slots)
    bus : Out(BusReadPort)
    dispatch : Out(Dispatch)
    drained : In(1)
        Queues and units are idle.
    units_quiet : In(1)
        No unit is busy.
    semaphores : Out(SemaphoreSetup)
    fault, fault_info : In
        From :class:`~hw.control.faults.FaultCollector`.
    event : Out(EventWait)
    ended : Out(EndedJob)
        A completion that could not be written stops the executor for good.
    released : Out(32)
        Jobs that have ended = index of the current job.
    status : Out(ExecutorStatus)
    begin, measure : Out(1)
        A body starts (clear counters and semaphores); a body is in progress.
    issued, starved : Out(1)
        An instruction was dispatched; the executor waited for one.
    blocked : Out(1)
        Dispatch is over, or waits for a full queue.
    abort : Out(1)
    quiet : Out(1)
        No instruction fetch is outstanding.
    """

    def __init__(self, params: SocParams) -> None:
        self.params = params
        super().__init__(
            {
                "enable": In(1),
                "halt": In(1),
                "pause": In(1),
                "loaded": In(LoadedJobs()),
                "now": In(64),
                "slots": Out(Slots(params)),
                "bus": Out(BusReadPort(params)),
                "dispatch": Out(Dispatch()),
                "drained": In(1),
                "units_quiet": In(1),
                "semaphores": Out(SemaphoreSetup(params)),
                "fault": In(1),
                "fault_info": In(JOB_FAULT),
                "event": Out(EventWait()),
                "ended": Out(EndedJob()),
                "released": Out(32),
                "status": Out(ExecutorStatus()),
                "begin": Out(1),
                "measure": Out(1),
                "issued": Out(1),
                "starved": Out(1),
                "blocked": Out(1),
                "abort": Out(1),
                "quiet": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.fetch = fetch = InstructionFetch(self.params)
        m.submodules.decoder = decoder = Decoder(self.params)
        m.submodules.preparer = preparer = JobPreparer(self.params)
        m.submodules.resolver = resolver = Resolver()
        wiring.connect(m, wiring.flipped(self.bus), fetch.bus)
        fetched = fetch.insn.payload
        ended = self.ended.info
        slot = self.released[: self.params.job_slot_bits]
        dispatching = Signal()  # the body's instructions need the segment ports

        preparer.connect(m, self, fetch, dispatching)
        with m.If(dispatching):
            m.d.comb += self.slots.src.addr.eq(Cat(field_bits(fetched.insn, Op.LD2, "src_seg"), slot))
        with m.Else():
            m.d.comb += self.slots.src.addr.eq(preparer.segment.addr)
        restoring, restored = Signal(), Signal(range(_COUNTS_AND_PARAMETERS + 1))
        resuming, with_parameters = ((ended.job.flags & flag).any() for flag in (JobFlag.RESUME, JobFlag.PARAMS))
        still = Signal()  # nothing moves but instruction fetch
        m.d.comb += [
            still.eq(self.drained & self.units_quiet & self.loaded.resting & self.ended.free),
            preparer.hold.eq(restoring | self.pause),
            self.slots.header.addr.eq(
                Mux(restoring, Cat((restored + _SEM_WORD)[:HEADER_BITS], slot), preparer.header.addr)
            ),
            self.semaphores.clear.eq(self.begin),
            self.semaphores.load.eq(restoring & resuming & (restored != 0) & (restored <= _SEM_WORDS)),
            self.semaphores.group.eq(restored - 1),
            self.semaphores.counts.eq(self.slots.header.data),
            resolver.load.eq(restoring & (restored > _SEM_WORDS)),
            resolver.group.eq(restored - 1),
            resolver.words.eq(self.slots.header.data),
            resolver.insn.eq(fetched.insn),
            fetch.resolve.eq(resolver.write),
            fetch.resolved.eq(resolver.resolved),
            decoder.insn.eq(fetched.insn),
            decoder.parameters.eq(with_parameters),
            self.slots.dst.addr.eq(Cat(field_bits(fetched.insn, Op.LD2, "dst_seg"), slot)),
            self.dispatch.command.insn.eq(fetched.insn),
            self.dispatch.command.pc.eq(fetched.pc),
            self.dispatch.command.src_base.eq(self.slots.src.data.base),
            self.dispatch.command.src_limit.eq(self.slots.src.data.limit),
            self.dispatch.command.dst_base.eq(self.slots.dst.data.base),
            self.dispatch.command.dst_limit.eq(self.slots.dst.data.limit),
            self.quiet.eq(fetch.quiet),
            ended.index.eq(self.released),
        ]

        unit, end, cancel, illegal = Signal(len(Unit)), Signal(), Signal(), Signal()
        cycles = Signal(32)
        over_time = Signal()
        wrong, own = Signal(), Signal(JOB_FAULT)  # a fault the executor itself finds in this cycle
        flush = Signal()
        trap = Signal()  # any fault in this cycle
        pc = Signal(PC)  # of the last instruction decoded
        settled = Signal(range(SETTLED + 1))
        issuing, halting, halting_now = Signal(), Signal(), Signal()
        with m.If(self.measure):
            m.d.sync += cycles.eq(cycles + 1)
        m.d.sync += over_time.eq((cycles == ended.job.cycle_limit) & (ended.job.cycle_limit != 0))

        def raise_fault(code, addr) -> None:
            m.d.comb += [wrong.eq(1), own.code.eq(code), own.addr.eq(addr)]

        def halt_now() -> None:
            m.d.comb += halting_now.eq(1)
            m.d.sync += self.status.cycle.eq(self.now)

        m.d.comb += [own.unit.eq(FaultUnit.EXECUTOR), own.pc.eq(pc)]
        with m.FSM() as fsm:
            m.d.comb += [
                issuing.eq(fsm.ongoing("DECODE") | fsm.ongoing("RESOLVE") | fsm.ongoing("DISPATCH")),
                halting.eq(fsm.ongoing("QUIESCE") | fsm.ongoing("SETTLED")),
                self.status.in_job.eq(fsm.ongoing("HALTED")),
                dispatching.eq(issuing | halting | self.status.in_job | restoring),
                self.measure.eq(issuing | halting | fsm.ongoing("DRAIN") | fsm.ongoing("CHECK")),
                self.abort.eq(ended.fault.code != Fault.NONE),
                self.status.next_pc.eq(Mux(dispatching, fetched.pc, pc)),
            ]
            with m.State("IDLE"):
                with m.If(self.ended.failed):
                    m.next = "DEAD"
                with m.Elif(self.pause):
                    with m.If(still & self.enable & ~self.halt):
                        halt_now()
                        m.next = "BETWEEN"
                with m.Elif(preparer.ready & self.enable & ~self.halt):
                    m.d.comb += [self.begin.eq(1), preparer.take.eq(1)]
                    m.d.sync += [
                        ended.job.eq(preparer.job),
                        ended.fault.eq(0),
                        ended.start.eq(self.now),
                        ended.end.eq(self.now),
                        cycles.eq(1),
                        over_time.eq(0),
                    ]
                    m.next = "DECODE"
                    with m.If(preparer.job.failed):
                        m.d.sync += ended.fault.eq(self.loaded.fault)
                        m.next = "ABORT"
                    with m.Elif((preparer.job.flags & (JobFlag.RESUME | JobFlag.PARAMS)).any()):
                        m.d.sync += restored.eq(Mux((preparer.job.flags & JobFlag.RESUME).any(), 0, _SEM_WORDS))
                        m.next = "RESTORE"
            with m.State("RESTORE"):
                # Semaphore counts and parameters of the descriptor, a word behind its address.
                m.d.comb += restoring.eq(1)
                m.d.sync += restored.eq(restored + 1)
                with m.If(restored == Mux(with_parameters, _COUNTS_AND_PARAMETERS, _SEM_WORDS)):
                    m.next = "DECODE"
            with m.State("BETWEEN"):
                with m.If(~self.pause | ~self.enable):
                    m.next = "IDLE"
            with m.State("DECODE"):
                m.d.sync += [
                    pc.eq(fetched.pc),
                    unit.eq(decoder.unit),
                    end.eq(decoder.end),
                    cancel.eq(decoder.cancel),
                    illegal.eq(decoder.illegal),
                ]
                m.d.comb += [self.starved.eq(~fetch.insn.valid), resolver.clear.eq(1)]
                with m.If(trap):
                    m.next = "ABORT"
                with m.Elif(fetch.insn.valid & ~self.halt):
                    m.next = "DISPATCH"
                    with m.If(resolver.left & ~decoder.illegal & (fetched.fault == Fault.NONE)):
                        m.next = "RESOLVE"
            with m.State("RESOLVE"):
                m.d.comb += resolver.step.eq(1)
                with m.If(trap):
                    m.next = "ABORT"
                with m.Elif(~resolver.left):
                    m.next = "DISPATCH"
            with m.State("DISPATCH"):
                accepted = (unit & self.dispatch.ready).any()
                m.d.comb += self.blocked.eq(~accepted)
                with m.If(fetched.fault != Fault.NONE):
                    raise_fault(fetched.fault, fetched.pc << 6)
                with m.Elif(illegal | resolver.overflow):
                    raise_fault(Fault.ILLEGAL, fetched.pc << 6)
                with m.If(trap):
                    m.next = "ABORT"
                with m.Elif(end):
                    m.d.comb += flush.eq(1)
                    m.next = "DRAIN"
                with m.Elif(cancel):
                    m.d.comb += fetch.insn.ready.eq(1)
                    m.d.sync += [
                        self.status.point.eq(field_bits(fetched.insn, Op.CANCEL, "point")),
                        self.status.pc.eq(fetched.pc + 1),
                    ]
                    m.next = "DECODE"
                    with m.If(self.pause):
                        m.next = "QUIESCE"
                with m.Else():
                    m.d.comb += [
                        self.dispatch.push.eq(unit),
                        fetch.insn.ready.eq(accepted),
                        self.issued.eq(accepted),
                    ]
                    with m.If(accepted):
                        m.next = "DECODE"
            with m.State("QUIESCE"):
                m.d.comb += self.blocked.eq(1)
                with m.If(trap):
                    m.next = "ABORT"
                with m.Elif(~self.pause):
                    m.next = "DECODE"
                with m.Elif(still):
                    m.next = "SETTLED"
            with m.State("SETTLED"):
                # One cycle after the last signal, so that its overflow is seen as well.
                with m.If(trap):
                    m.next = "ABORT"
                with m.Elif(~self.pause):
                    m.next = "DECODE"
                with m.Elif(self.ended.failed):
                    m.next = "DEAD"
                with m.Else():
                    halt_now()
                    m.next = "HALTED"
            with m.State("HALTED"):
                with m.If(~self.pause):
                    m.next = "DECODE"
            end_states(m, self, trap, flush, settled, raise_fault)
        m.d.comb += [
            trap.eq(self.measure & (self.fault | wrong | over_time)),
            fetch.flush.eq(flush | self.halt),
        ]
        m.d.sync += self.status.halted.eq(halting_now)
        with m.If(trap):
            with m.If(self.fault):
                m.d.sync += ended.fault.eq(self.fault_info)
            with m.Elif(wrong):
                m.d.sync += ended.fault.eq(own)
            with m.Else():
                m.d.sync += [ended.fault.eq(own), ended.fault.code.eq(Fault.CYCLE_LIMIT)]

        with m.If(fsm.ongoing("DEAD")):
            m.d.comb += self.status.state.eq(EngineState.FAULT)
        with m.Elif(self.status.in_job | fsm.ongoing("BETWEEN")):
            m.d.comb += self.status.state.eq(EngineState.HALTED)
        with m.Elif(dispatching & ~halting):
            m.d.comb += self.status.state.eq(EngineState.RUNNING)
        with m.Elif(~fsm.ongoing("IDLE")):
            m.d.comb += self.status.state.eq(EngineState.DRAINING)
        with m.Elif(self.enable):
            m.d.comb += self.status.state.eq(EngineState.IDLE)
        return m
