"""Defines what the registers of an engine hold, and what they show."""

from amaranth.hdl import Module, Mux, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.contract.job import COMPLETION, JOB, SEMAPHORES, Fault, FaultUnit
from hw.contract.regs import ENGINE_REGS, EngineState
from hw.control.retire import COUNTER_WORD
from hw.control.signatures import ENDED, CompletionRingControl, ExecutorStatus, JobRingControl
from hw.interfaces import ADDR
from hw.registers import Registers

#: Bits of a ring's base that can be set: a burst of a descriptor or completion lies in one 4 KiB page then.
_WHOLE_ENTRIES = (1 << ADDR) - JOB.size
assert JOB.size == COMPLETION.size


class EngineRegisters(wiring.Component):
    """Keeps what the host writes, collects interrupts, and shows what the parts of the engine tell.

    Members
    -------
    regs : In(Registers(ENGINE_REGS))
        CONTROL.reset is the business of whoever resets this component.
    enable, pause : Out(1)
        Bits of CONTROL.
    ring : Out(JobRingControl)
    completions : Out(CompletionRingControl)
    status : In(ExecutorStatus)
    ended : In(ENDED)
        The current job, and its fault.
    loading, loaded : In(1), In(32)
        A prologue runs; jobs handed to the executor.
    semaphore, semaphore_count : Out, In(8)
        Register read of one semaphore.
    interrupt : Out(1)
        An enabled interrupt is pending.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "regs": In(Registers(ENGINE_REGS)),
                "enable": Out(1),
                "pause": Out(1),
                "ring": Out(JobRingControl()),
                "completions": Out(CompletionRingControl()),
                "status": In(ExecutorStatus()),
                "ended": In(ENDED),
                "loading": In(1),
                "loaded": In(32),
                "semaphore": Out(range(SEMAPHORES)),
                "semaphore_count": In(8),
                "interrupt": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        self._control(m)
        self._interrupts(m)
        self._rings(m)
        self._job(m)
        return m

    def _control(self, m: Module) -> None:
        control, status = self.regs.control, self.regs.status.r_data
        with m.If(control.w_stb):
            m.d.sync += [self.enable.eq(control.w_data.enable), self.pause.eq(control.w_data.pause)]
        m.d.comb += [
            control.r_data.enable.eq(self.enable),
            control.r_data.pause.eq(self.pause),
            status.state.eq(self.status.state),
            status.loader_busy.eq(self.loading),
            status.in_job.eq(self.status.in_job),
            status.loaded.eq(self.loaded),
            status.retired.eq(self.completions.retired),
            status.point.eq(self.status.point),
        ]

    def _interrupts(self, m: Module) -> None:
        status = self.regs.irq_status
        wanted = self._register(m, "irq_enable", kept=True)
        pending = Signal(wanted.shape())
        dead, was_dead = self.status.state == EngineState.FAULT, Signal()
        raised = {
            "completion": self.completions.interrupt,
            "fault": dead & ~was_dead,
            "halted": self.status.halted,
        }
        for name, event in raised.items():
            cleared = status.w_stb & status.w_data[name]
            m.d.sync += pending[name].eq((pending[name] & ~cleared) | event)
            m.d.comb += status.r_data[name].eq(pending[name])
        m.d.sync += was_dead.eq(dead)
        m.d.comb += self.interrupt.eq((pending.as_value() & wanted.as_value()).any())

    def _rings(self, m: Module) -> None:
        regs, ring, completions = self.regs, self.ring, self.completions
        m.d.comb += [
            ring.base.eq(self._register(m, "ring_base", kept=True, legal=_WHOLE_ENTRIES)),
            ring.size_log2.eq(self._register(m, "ring_size", kept=True).log2),
            ring.tail_stb.eq(regs.ring_tail.w_stb),
            ring.tail_data.eq(regs.ring_tail.w_data),
            regs.ring_tail.r_data.eq(ring.tail),
            regs.ring_fetched.r_data.eq(ring.fetched),
            regs.ring_loaded.r_data.eq(self.loaded),
            completions.base.eq(self._register(m, "cpl_base", kept=True, legal=_WHOLE_ENTRIES)),
            completions.size_log2.eq(self._register(m, "cpl_size", kept=True).log2),
            completions.consumed.eq(self._register(m, "cpl_head", kept=False)),
            regs.ring_head.r_data.eq(completions.retired),
            regs.cpl_tail.r_data.eq(completions.retired),
        ]

    def _job(self, m: Module) -> None:
        """Show which job runs, and what went wrong."""
        regs, status, fault, completions = self.regs, self.status, self.ended.fault, self.completions
        job_id = Signal(32)
        dead = status.state == EngineState.FAULT
        m.d.comb += [job_id.eq(self.ended.job.job_id), regs.fault_job.r_data.eq(Mux(dead, job_id, 0))]
        with m.If(completions.failed):
            m.d.comb += [
                regs.fault_code.r_data.code.eq(Fault.BUS),
                regs.fault_code.r_data.unit.eq(FaultUnit.RING),
                regs.fault_job.r_data.eq(completions.failed_job),
            ]
        with m.Else():
            m.d.comb += [
                regs.fault_code.r_data.code.eq(fault.code),
                regs.fault_code.r_data.unit.eq(fault.unit),
                regs.fault_pc.r_data.eq(fault.pc),
                regs.fault_addr.r_data.eq(fault.addr),
            ]
        m.d.comb += [
            regs.halt_job.r_data.eq(job_id),
            regs.halt_point.r_data.eq(status.point),
            regs.halt_pc.r_data.eq(status.pc),
            regs.halt_cycle_lo.r_data.eq(status.cycle[:32]),
            regs.halt_cycle_hi.r_data.eq(status.cycle[32:]),
            regs.current_job.r_data.eq(job_id),
            regs.current_pc.r_data.eq(status.next_pc),
            self.semaphore.eq(regs.sem.index),
            regs.sem.r_data.eq(self.semaphore_count),
            regs.sem.ack.eq(1),
            completions.view_index.eq(regs.counter.index + COUNTER_WORD),
            completions.view_request.eq(regs.counter.read),
            regs.counter.r_data.eq(completions.view),
            regs.counter.ack.eq(completions.view_ack),
        ]

    def _register(self, m: Module, name: str, *, kept: bool, legal: int | None = None):
        """Connect a plain register that is read and written. ``kept``: only a reset of the whole clock domain clears
        it. ``legal``: bits that can be set."""
        element = getattr(self.regs, name)
        value = Signal(element.w_data.shape(), name=name, reset_less=kept)
        m.d.comb += element.r_data.eq(value)
        with m.If(element.w_stb):
            m.d.sync += value.eq(element.w_data if legal is None else element.w_data & legal)
        if kept:
            with m.If(ResetSignal(allow_reset_less=True)):
                m.d.sync += value.eq(0)
        return value
