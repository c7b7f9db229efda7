"""Counts per job what the units do while its body runs."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.contract.isa import Unit
from hw.contract.job import COUNTERS, SEMAPHORE_CLASSES, SEQUENCER_COUNTERS
from hw.control.signatures import ACTIVITY

PROLOGUE_COUNTERS = 4  #: the first of ``COUNTERS``; the loader keeps those
BODY_COUNTERS = tuple(name for name, _ in COUNTERS[PROLOGUE_COUNTERS:])
_SEQUENCER = tuple(name for name, _ in SEQUENCER_COUNTERS)

_COMPUTE = (Unit.MAC, Unit.VEC)


class Monitor(wiring.Component):
    """Counts what the units report, from ``clear`` on while ``enable`` is set.

    Members
    -------
    clear, enable : In(1)
    activity : In(ACTIVITY).array(7)
        By ``hw.contract.isa.Unit``.
    missing : In(SEMAPHORE_CLASSES).array(2)
        Classes of the semaphores that the heads of the queues of MAC and VEC miss.
    loading : In(1)
        LD2 works, for the body or for a prologue.
    mac_empty, ... : In(1)
        By the names in ``hw.contract.job.SEQUENCER_COUNTERS``: it counts in this cycle.
    counters : Out(32).array
        Those of ``COUNTERS`` that do not belong to the prologue, in order.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "clear": In(1),
                "enable": In(1),
                "activity": In(ACTIVITY).array(len(Unit)),
                "missing": In(SEMAPHORE_CLASSES).array(len(_COMPUTE)),
                "loading": In(1),
                **{name: In(1) for name in _SEQUENCER},
                "counters": Out(32).array(len(BODY_COUNTERS)),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        counter = dict(zip(BODY_COUNTERS, self.counters, strict=True))
        following: dict[str, object] = {name: counter[name] + getattr(self, name) for name in _SEQUENCER}
        for unit in Unit:
            name, now = unit.name.lower(), self.activity[unit]
            following[f"{name}_busy"] = counter[f"{name}_busy"] + now.busy
            following[f"{name}_stalled"] = counter[f"{name}_stalled"] + (now.busy & now.stalled)
            if unit in _COMPUTE:
                following[f"{name}_active"] = counter[f"{name}_active"] + now.active
                for event, cycle in self._waiting(m, unit).items():
                    following[event] = counter[event] + cycle
            else:
                high = counter[f"{name}_occupancy"]
                higher = Signal(name=f"{name}_higher")
                m.d.comb += higher.eq(now.extent_valid & (now.extent > high))
                following[f"{name}_occupancy"] = Mux(higher, now.extent, high)
                following[f"{name}_bytes"] = counter[f"{name}_bytes"] + now.bytes
        with m.If(self.clear):
            m.d.sync += [register.eq(0) for register in self.counters]
        with m.Elif(self.enable):
            m.d.sync += [counter[name].eq(value) for name, value in following.items()]
        return m

    def _waiting(self, m: Module, unit: Unit) -> dict[str, Value]:
        """Return the counters of a compute unit that waits in this cycle, each with whether it counts: ``*_waiting``,
        and exactly one of the others, so that they add up to it."""
        name, missing = unit.name.lower(), self.missing[_COMPUTE.index(unit)]
        waiting, starved = Signal(name=f"{name}_waits"), Signal(name=f"{name}_starves")
        first = missing & ~(missing - 1)[:SEMAPHORE_CLASSES]  # the lowest bit that is set
        m.d.comb += waiting.eq(missing.any() & ~self.activity[unit].busy)
        events = {f"{name}_waiting": waiting}
        if unit == Unit.MAC:
            idle = ~(self.activity[Unit.LD1].busy | self.activity[Unit.LD0].busy)
            m.d.comb += starved.eq(waiting & missing[::2].any() & self.loading & idle)
            events["mac_starved"] = starved
        for c in range(SEMAPHORE_CLASSES):
            events[f"{name}_missing{c}"] = waiting & ~starved & first[c]
        return events
