"""Collects what goes wrong while a body runs."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.contract.isa import Unit
from hw.contract.job import Fault
from hw.contract.params import SocParams
from hw.contract.timing import STUCK_CYCLES
from hw.control.signatures import JOB_FAULT
from hw.interfaces import FAULT, PC


class FaultCollector(wiring.Component):
    """Keeps the first fault of the units and semaphores until reset.

    A semaphore overflow is reported for the instruction whose signal caused it, with the mask of semaphores as its
    address. A wait that no instruction in flight can satisfy any more would take its semaphore below zero: it is a
    SEMAPHORE_UNDERFLOW of the waiting instruction, with the mask of missing semaphores.

    Members
    -------
    unit_fault, unit_info : In(7), In(FAULT).array(7)
    signal, signal_pc, overflow : In
        What the unit queues signal in this cycle, and the semaphores it is too much for.
    blocked : In(1)
        Nothing more can be dispatched unless a queue moves.
    stuck, idle : In(7)
        Per queue: the head waits with nothing in flight; nothing queued and nothing in flight.
    wait, head_pc, nonzero : In
        Masks and PCs of the queue heads, and the semaphores above zero.
    fault, info : Out(1), Out(JOB_FAULT)
        Level, from the cycle after the fault.
    """

    def __init__(self, params: SocParams) -> None:
        n, units = params.semaphores, len(Unit)
        super().__init__(
            {
                "unit_fault": In(units),
                "unit_info": In(FAULT).array(units),
                "signal": In(n).array(units),
                "signal_pc": In(PC).array(units),
                "overflow": In(n),
                "blocked": In(1),
                "stuck": In(units),
                "idle": In(units),
                "wait": In(n).array(units),
                "head_pc": In(PC).array(units),
                "nonzero": In(n),
                "fault": Out(1),
                "info": Out(JOB_FAULT),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        deadlock = Signal(range(STUCK_CYCLES + 1))
        with m.If(self.blocked & self.stuck.any() & (self.stuck | self.idle).all() & (deadlock != STUCK_CYCLES)):
            m.d.sync += deadlock.eq(deadlock + 1)
        with m.Else():
            m.d.sync += deadlock.eq(0)

        # Overflow, and whose signals it was, are looked at one cycle later, to keep both out of the semaphores' path.
        too_much = Signal.like(self.overflow)
        masks = [Signal.like(self.overflow, name=f"signalled{u}") for u in range(len(Unit))]
        m.d.sync += too_much.eq(self.overflow)
        m.d.sync += [mask.eq(source) for mask, source in zip(masks, self.signal, strict=True)]
        pcs = [Signal(PC, name=f"signalled_pc{u}") for u in range(len(Unit))]
        m.d.sync += [pc.eq(source) for pc, source in zip(pcs, self.signal_pc, strict=True)]

        found, info = Signal(), Signal(JOB_FAULT)
        with m.If(~self.fault):
            m.d.sync += [self.fault.eq(found), self.info.eq(info)]
        for u in reversed(range(len(Unit))):
            with m.If((deadlock == STUCK_CYCLES) & self.stuck[u]):
                missing = self.wait[u] & ~self.nonzero
                self._report(m, found, info, Fault.SEMAPHORE_UNDERFLOW, u, self.head_pc[u], missing)
        for u in reversed(range(len(Unit))):
            with m.If((masks[u] & too_much).any()):
                self._report(m, found, info, Fault.SEMAPHORE_OVERFLOW, u, pcs[u], too_much)
        for u in reversed(range(len(Unit))):
            with m.If(self.unit_fault[u]):
                unit = self.unit_info[u]
                self._report(m, found, info, unit.code, u, unit.pc, unit.addr)
        return m

    @staticmethod
    def _report(m: Module, found: Signal, info, code, unit: int, pc, addr) -> None:
        m.d.comb += [found.eq(1), info.code.eq(code), info.unit.eq(unit), info.pc.eq(pc), info.addr.eq(addr)]
