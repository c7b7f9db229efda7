"""The executor: runs bodies in ring order."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.contract.isa import Op, Unit
from hw.contract.job import SEMAPHORES, Fault, FaultUnit, JobFlag
from hw.contract.params import SocParams
from hw.contract.regs import EngineState
from hw.control.decode import Decoder, field_bits
from hw.control.descriptor import HEADER_BITS, JOB_FAULT, HeaderRead, SegmentRead, word_of
from hw.control.events import EVENT_BITS
from hw.control.fetch import InstructionFetch
from hw.control.prepare import JobPreparer
from hw.control.retire import ENDED
from hw.interfaces import COMMAND, PC, BusReadPort

SETTLE = 4  #: cycles the units must have been idle before an aborted job counts as ended
_SEM_WORD = word_of("sem0")
_SEM_WORDS = SEMAPHORES // 8  #: 64-bit words of semaphore counts in a descriptor


class Executor(wiring.Component):
    """Fetches, decodes and dispatches the body of one job after the other, and ends jobs in order.

    An instruction takes two cycles: decode and segment look-up, then dispatch to its unit queue. At END all queues
    drain, semaphores are checked, and the job goes to the :class:`~hw.control.retire.Retirer`. The next job is
    prepared meanwhile, so its first instruction is usually there when the last one ends.

    With ``pause`` it halts behind the next CANCEL or before a body, once all units have finished, the loader rests and
    the completions of earlier jobs are written, and goes on when ``pause`` is taken back. A pause that is taken back
    before that leaves no trace. An engine that is not enabled halts at cancellation points only. A job with the RESUME
    flag starts with the semaphores of its descriptor.

    A fault stops dispatch and aborts the units; the job ends with the fault, and the engine stays in FAULT until it
    is reset.

    Members
    -------
    enable, halt : In(1)
    pause : In(1)
        Halt at the next cancellation point or job boundary, and stay until it is taken back.
    calm : In(1)
        The loader rests; nothing halts before it does.
    loaded, load_failed, load_fault : In
        From :class:`~hw.control.loader.Loader`.
    now : In(64)
    header, src, dst : Out
        Read ports of the slots.
    bus : Out(BusReadPort)
    command, push, queue_ready : Out(COMMAND), Out(7), In(7)
        To the unit queues, one at a time.
    drained : In(1)
        Queues and units are idle.
    units_quiet : In(1)
        No unit is busy.
    nonzero : In(semaphores)
    fault, fault_info : In
        From :class:`~hw.control.faults.FaultCollector`.
    retire_failed : In(1)
        A completion could not be written: stop for good.
    event_wait, event_id, event_value, event_reached
        See :class:`hw.control.events.EventPort`.
    ended, retire, retire_free, copied
        To the retirer.
    released : Out(32)
        Jobs that have ended = index of the current job.
    state : Out(4)
        ``hw.contract.regs.EngineState``.
    begin, measure : Out(1)
        A body starts (clear counters and semaphores); a body is in progress.
    issued, starved : Out(1)
        An instruction was dispatched; the executor waited for one.
    blocked : Out(1)
        Dispatch is over, or waits for a full queue.
    abort : Out(1)
    next_pc : Out(PC)
        Of the next instruction to dispatch.
    halt_point, halt_pc : Out
        The last CANCEL: its number, and the PC after it.
    halted, in_job : Out(1)
        Halted since the cycle before (pulse); halted at a cancellation point.
    halt_cycle : Out(64)
        When it halted last.
    sem_load, sem_group, sem_counts : Out(1), Out(2), Out(64)
        Set semaphores, eight at a time.
    quiet : Out(1)
        No instruction fetch is outstanding.
    """

    def __init__(self, params: SocParams) -> None:
        self.params = params
        units = len(Unit)
        super().__init__(
            {
                "enable": In(1),
                "halt": In(1),
                "pause": In(1),
                "calm": In(1),
                "loaded": In(32),
                "load_failed": In(1),
                "load_fault": In(JOB_FAULT),
                "now": In(64),
                "header": Out(HeaderRead(params)),
                "src": Out(SegmentRead(params)),
                "dst": Out(SegmentRead(params)),
                "bus": Out(BusReadPort(params)),
                "command": Out(COMMAND),
                "push": Out(units),
                "queue_ready": In(units),
                "drained": In(1),
                "units_quiet": In(1),
                "nonzero": In(params.semaphores),
                "fault": In(1),
                "fault_info": In(JOB_FAULT),
                "retire_failed": In(1),
                "event_wait": Out(1),
                "event_id": Out(EVENT_BITS),
                "event_value": Out(32),
                "event_reached": In(1),
                "ended": Out(ENDED),
                "retire": Out(1),
                "retire_free": In(1),
                "copied": In(1),
                "released": Out(32),
                "state": Out(4),
                "begin": Out(1),
                "measure": Out(1),
                "issued": Out(1),
                "starved": Out(1),
                "blocked": Out(1),
                "abort": Out(1),
                "next_pc": Out(PC),
                "halt_point": Out(16),
                "halt_pc": Out(PC),
                "halted": Out(1),
                "in_job": Out(1),
                "halt_cycle": Out(64),
                "sem_load": Out(1),
                "sem_group": Out(range(_SEM_WORDS)),
                "sem_counts": Out(64),
                "quiet": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.fetch = fetch = InstructionFetch(self.params)
        m.submodules.decoder = decoder = Decoder(self.params)
        m.submodules.preparer = preparer = JobPreparer(self.params)
        wiring.connect(m, wiring.flipped(self.bus), fetch.bus)
        fetched = fetch.insn.payload
        ended = self.ended
        slot = self.released[: self.params.job_slot_bits]
        dispatching = Signal()  # the body's instructions need the segment ports

        self._connect_preparer(m, preparer, fetch, dispatching)
        with m.If(dispatching):
            m.d.comb += self.src.addr.eq(Cat(field_bits(fetched.insn, Op.LD2, "src_seg"), slot))
        with m.Else():
            m.d.comb += self.src.addr.eq(preparer.segment.addr)
        restoring, restored = Signal(), Signal(range(_SEM_WORDS + 1))
        still = Signal()  # nothing moves but instruction fetch
        m.d.comb += [
            still.eq(self.drained & self.units_quiet & self.calm & self.retire_free),
            preparer.hold.eq(restoring | self.pause),
            self.header.addr.eq(Mux(restoring, Cat((restored + _SEM_WORD)[:HEADER_BITS], slot), preparer.header.addr)),
            self.sem_load.eq(restoring & (restored != 0)),
            self.sem_group.eq(restored - 1),
            self.sem_counts.eq(self.header.data),
        ]
        m.d.comb += [
            decoder.insn.eq(fetched.insn),
            self.dst.addr.eq(Cat(field_bits(fetched.insn, Op.LD2, "dst_seg"), slot)),
            self.command.insn.eq(fetched.insn),
            self.command.pc.eq(fetched.pc),
            self.command.src_base.eq(self.src.data.base),
            self.command.src_limit.eq(self.src.data.limit),
            self.command.dst_base.eq(self.dst.data.base),
            self.command.dst_limit.eq(self.dst.data.limit),
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
        settled = Signal(range(SETTLE + 1))
        issuing, halting, halting_now = Signal(), Signal(), Signal()
        with m.If(self.measure):
            m.d.sync += cycles.eq(cycles + 1)
        m.d.sync += [
            over_time.eq((cycles == ended.job.cycle_limit) & (ended.job.cycle_limit != 0)),
        ]

        def raise_fault(code, addr) -> None:
            m.d.comb += [wrong.eq(1), own.code.eq(code), own.addr.eq(addr)]

        def halt_now() -> None:
            m.d.comb += halting_now.eq(1)
            m.d.sync += self.halt_cycle.eq(self.now)

        m.d.comb += [own.unit.eq(FaultUnit.EXECUTOR), own.pc.eq(pc)]
        with m.FSM() as fsm:
            m.d.comb += [
                issuing.eq(fsm.ongoing("DECODE") | fsm.ongoing("DISPATCH")),
                halting.eq(fsm.ongoing("QUIESCE") | fsm.ongoing("SETTLED")),
                self.in_job.eq(fsm.ongoing("HALTED")),
                dispatching.eq(issuing | halting | self.in_job | restoring),
                self.measure.eq(issuing | halting | fsm.ongoing("DRAIN") | fsm.ongoing("CHECK")),
                self.abort.eq(ended.fault.code != Fault.NONE),
                self.next_pc.eq(Mux(dispatching, fetched.pc, pc)),
            ]
            with m.State("IDLE"):
                with m.If(self.retire_failed):
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
                        m.d.sync += ended.fault.eq(self.load_fault)
                        m.next = "ABORT"
                    with m.Elif((preparer.job.flags & JobFlag.RESUME).any()):
                        m.next = "RESTORE"
            with m.State("RESTORE"):
                # Semaphore counts of the descriptor, a word behind its address.
                m.d.comb += restoring.eq(1)
                m.d.sync += restored.eq(restored + 1)
                with m.If(restored == _SEM_WORDS):
                    m.d.sync += restored.eq(0)
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
                m.d.comb += self.starved.eq(~fetch.insn.valid)
                with m.If(trap):
                    m.next = "ABORT"
                with m.Elif(fetch.insn.valid & ~self.halt):
                    m.next = "DISPATCH"
            with m.State("DISPATCH"):
                accepted = (unit & self.queue_ready).any()
                m.d.comb += self.blocked.eq(~accepted)
                with m.If(fetched.fault != Fault.NONE):
                    raise_fault(fetched.fault, fetched.pc << 6)
                with m.Elif(illegal):
                    raise_fault(Fault.ILLEGAL, fetched.pc << 6)
                with m.If(trap):
                    m.next = "ABORT"
                with m.Elif(end):
                    m.d.comb += flush.eq(1)
                    m.next = "DRAIN"
                with m.Elif(cancel):
                    m.d.comb += fetch.insn.ready.eq(1)
                    m.d.sync += [
                        self.halt_point.eq(field_bits(fetched.insn, Op.CANCEL, "point")),
                        self.halt_pc.eq(fetched.pc + 1),
                    ]
                    m.next = "DECODE"
                    with m.If(self.pause):
                        m.next = "QUIESCE"
                with m.Else():
                    m.d.comb += [
                        self.push.eq(unit),
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
                with m.Elif(self.retire_failed):
                    m.next = "DEAD"
                with m.Else():
                    halt_now()
                    m.next = "HALTED"
            with m.State("HALTED"):
                with m.If(~self.pause):
                    m.next = "DECODE"
            with m.State("DRAIN"):
                m.d.comb += self.blocked.eq(1)
                with m.If(trap):
                    m.next = "ABORT"
                with m.Elif(self.drained):
                    m.next = "CHECK"
            with m.State("CHECK"):
                # One cycle after the last signal, so that its overflow is seen as well.
                with m.If(self.nonzero.any()):
                    raise_fault(Fault.SEMAPHORE_RESIDUE, self.nonzero)
                m.d.sync += ended.end.eq(self.now)
                m.next = "RETIRE"
                with m.If(trap):
                    m.next = "ABORT"
            with m.State("ABORT"):
                m.d.comb += flush.eq(1)
                with m.If(~self.units_quiet):
                    m.d.sync += settled.eq(0)
                with m.Elif(settled != SETTLE):
                    m.d.sync += settled.eq(settled + 1)
                with m.Else():
                    m.d.sync += ended.end.eq(self.now)
                    m.next = "RETIRE"
            with m.State("RETIRE"):
                m.d.comb += self.retire.eq(1)
                with m.If(self.retire_failed):
                    m.next = "DEAD"
                with m.Elif(self.retire_free):
                    m.next = "COPY"
            with m.State("COPY"):
                with m.If(self.copied):
                    m.d.sync += self.released.eq(self.released + 1)
                    m.next = "IDLE"
                    with m.If(ended.fault.code != Fault.NONE):
                        m.next = "REPORT"
            with m.State("REPORT"):
                # FAULT is what the host sees once the completion has been written.
                with m.If(self.retire_free):
                    m.next = "DEAD"
            with m.State("DEAD"):
                pass
        m.d.comb += [
            trap.eq(self.measure & (self.fault | wrong | over_time)),
            fetch.flush.eq(flush | self.halt),
        ]
        m.d.sync += self.halted.eq(halting_now)
        with m.If(trap):
            with m.If(self.fault):
                m.d.sync += ended.fault.eq(self.fault_info)
            with m.Elif(wrong):
                m.d.sync += ended.fault.eq(own)
            with m.Else():
                m.d.sync += [ended.fault.eq(own), ended.fault.code.eq(Fault.CYCLE_LIMIT)]

        with m.If(fsm.ongoing("DEAD")):
            m.d.comb += self.state.eq(EngineState.FAULT)
        with m.Elif(self.in_job | fsm.ongoing("BETWEEN")):
            m.d.comb += self.state.eq(EngineState.HALTED)
        with m.Elif(dispatching & ~halting):
            m.d.comb += self.state.eq(EngineState.RUNNING)
        with m.Elif(~fsm.ongoing("IDLE")):
            m.d.comb += self.state.eq(EngineState.DRAINING)
        with m.Elif(self.enable):
            m.d.comb += self.state.eq(EngineState.IDLE)
        return m

    def _connect_preparer(self, m: Module, preparer: JobPreparer, fetch: InstructionFetch, dispatching: Signal) -> None:
        m.d.comb += [
            preparer.enable.eq(self.enable),
            preparer.halt.eq(self.halt),
            preparer.loaded.eq(self.loaded),
            preparer.failed.eq(self.load_failed),
            preparer.header.data.eq(self.header.data),
            preparer.segment.data.eq(self.src.data),
            preparer.fetch_free.eq(~dispatching & ~fetch.running),
            fetch.start.eq(preparer.fetch_start),
            fetch.pc.eq(preparer.fetch_pc),
            fetch.base.eq(preparer.fetch_base),
            fetch.limit.eq(preparer.fetch_limit),
            self.event_wait.eq(preparer.wait),
            self.event_id.eq(preparer.wait_id),
            self.event_value.eq(preparer.wait_value),
            preparer.reached.eq(self.event_reached),
        ]
