"""Defines how the executor ends a body: its states from END, or a fault, until the next job may begin."""

from collections.abc import Callable

from amaranth.hdl import Module, Signal

from hw.contract.job import Fault
from hw.contract.timing import SETTLED


def end_states(
    m: Module, executor, trap: Signal, flush: Signal, settled: Signal, raise_fault: Callable[[Fault, Signal], None]
) -> None:  # fmt: skip
    """Add the states to the state machine of ``executor``, whose others go to DRAIN at END and to ABORT on a fault: the
    queues drain, or the units are silent; then the job goes to the retirer. ``trap`` is any fault in this cycle,
    ``flush`` stops instruction fetch, and ``settled`` counts cycles of silence."""
    ended = executor.ended.info
    with m.State("DRAIN"):
        m.d.comb += executor.blocked.eq(1)
        with m.If(trap):
            m.next = "ABORT"
        with m.Elif(executor.drained):
            m.next = "CHECK"
    with m.State("CHECK"):
        # One cycle after the last signal, so that its overflow is seen as well.
        with m.If(executor.semaphores.nonzero.any()):
            raise_fault(Fault.SEMAPHORE_RESIDUE, executor.semaphores.nonzero)
        m.d.sync += ended.end.eq(executor.now)
        m.next = "RETIRE"
        with m.If(trap):
            m.next = "ABORT"
    with m.State("ABORT"):
        m.d.comb += flush.eq(1)
        with m.If(~executor.units_quiet):
            m.d.sync += settled.eq(0)
        with m.Elif(settled != SETTLED):
            m.d.sync += settled.eq(settled + 1)
        with m.Else():
            m.d.sync += ended.end.eq(executor.now)
            m.next = "RETIRE"
    with m.State("RETIRE"):
        m.d.comb += executor.ended.valid.eq(1)
        with m.If(executor.ended.failed):
            m.next = "DEAD"
        with m.Elif(executor.ended.free):
            m.next = "COPY"
    with m.State("COPY"):
        with m.If(executor.ended.copied):
            m.d.sync += executor.released.eq(executor.released + 1)
            m.next = "IDLE"
            with m.If(ended.fault.code != Fault.NONE):
                m.next = "REPORT"
    with m.State("REPORT"):
        # FAULT is what the host sees once the completion has been written.
        with m.If(executor.ended.free):
            m.next = "DEAD"
    with m.State("DEAD"):
        pass
