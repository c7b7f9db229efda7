"""Collects what goes wrong while a body runs."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, Value
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

        # Faults of units come first, then overflows, then what can never be satisfied; of several, the first unit.
        stuck, overflowed = Signal(len(Unit)), Signal(len(Unit))
        m.d.comb += [
            stuck.eq(Mux(deadlock == STUCK_CYCLES, self.stuck, 0)),
            overflowed.eq(Cat((mask & too_much).any() for mask in masks)),
        ]
        found, info = Signal(), Signal(JOB_FAULT)
        m.d.comb += found.eq(Cat(self.unit_fault, overflowed, stuck).any())
        with m.If(self.unit_fault.any()):
            unit, (code, pc, addr) = _of_first(
                m, self.unit_fault, *([unit[name] for unit in self.unit_info] for name in ("code", "pc", "addr"))
            )
            m.d.comb += [info.code.eq(code), info.unit.eq(unit), info.pc.eq(pc), info.addr.eq(addr)]
        with m.Elif(overflowed.any()):
            unit, (pc,) = _of_first(m, overflowed, pcs)
            m.d.comb += [info.code.eq(Fault.SEMAPHORE_OVERFLOW), info.unit.eq(unit)]
            m.d.comb += [info.pc.eq(pc), info.addr.eq(too_much)]
        with m.Else():
            unit, (wait, pc) = _of_first(m, stuck, list(self.wait), list(self.head_pc))
            m.d.comb += [info.code.eq(Fault.SEMAPHORE_UNDERFLOW), info.unit.eq(unit)]
            m.d.comb += [info.pc.eq(pc), info.addr.eq(wait & ~self.nonzero)]
        with m.If(~self.fault):
            m.d.sync += [self.fault.eq(found), self.info.eq(info)]
        return m


def _of_first(m: Module, which: Value, *values: list) -> tuple[Value, list[Value]]:
    """Return the number of the first unit of ``which``, and what it has of each of ``values``."""
    first, candidates = Signal(len(which)), Signal(len(which))
    m.d.comb += [candidates.eq(which), first.eq(candidates & -candidates)]

    def of_it(choices) -> Value:
        return reduce(or_, (Mux(first[number], choice, 0) for number, choice in enumerate(choices)))

    return of_it(range(len(which))), [of_it(choices) for choices in values]
