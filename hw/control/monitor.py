"""Per-job counters of the body."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.interfaces import ADDR
from hw.isa import Unit
from hw.job import COUNTERS

PROLOGUE_COUNTERS = 4  #: the first of ``COUNTERS``; the loader keeps those
BODY_COUNTERS = tuple(name for name, _ in COUNTERS[PROLOGUE_COUNTERS:])

#: What a unit does in this cycle (``mon_*`` and ``busy`` of its ``UnitPort``).
ACTIVITY = data.StructLayout({"bytes": 8, "busy": 1, "active": 1, "stalled": 1, "extent": ADDR, "extent_valid": 1})
_COMPUTE = (Unit.MAC, Unit.VEC)


class Monitor(wiring.Component):
    """Counts what the units report, from ``clear`` on while ``enable`` is set.

    Members
    -------
    clear, enable : In(1)
    activity : In(ACTIVITY).array(7)
        By ``hw.isa.Unit``.
    mac_waiting, vec_waiting, mac_empty, instructions, fetch_stalled : In(1)
        Cycles to count, see ``hw.job.COUNTERS``.
    counters : Out(32).array
        Those of ``COUNTERS`` that do not belong to the prologue, in order.
    """

    SEQUENCER = ("mac_waiting", "vec_waiting", "mac_empty", "instructions", "fetch_stalled")

    def __init__(self) -> None:
        super().__init__(
            {
                "clear": In(1),
                "enable": In(1),
                "activity": In(ACTIVITY).array(len(Unit)),
                **{name: In(1) for name in self.SEQUENCER},
                "counters": Out(32).array(len(BODY_COUNTERS)),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        counter = dict(zip(BODY_COUNTERS, self.counters, strict=True))
        following: dict[str, object] = {name: counter[name] + getattr(self, name) for name in self.SEQUENCER}
        for unit in Unit:
            name, now = unit.name.lower(), self.activity[unit]
            following[f"{name}_busy"] = counter[f"{name}_busy"] + now.busy
            following[f"{name}_stalled"] = counter[f"{name}_stalled"] + (now.busy & now.stalled)
            if unit in _COMPUTE:
                following[f"{name}_active"] = counter[f"{name}_active"] + now.active
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
