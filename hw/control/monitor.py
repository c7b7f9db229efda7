"""Counts per job what the units do while its body runs."""

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In

from hw.block_ram import BLOCK_RAM, NO_COLLISION
from hw.contract.isa import Unit
from hw.contract.job import COUNTERS, SEMAPHORE_CLASSES, SEQUENCER_COUNTERS
from hw.contract.params import SocParams
from hw.control.signatures import ACTIVITY, RamRead
from hw.mux_tree import mux_tree

PROLOGUE_COUNTERS = 4  #: the first of ``COUNTERS``; the loader keeps those
BODY_COUNTERS = tuple(name for name, _ in COUNTERS[PROLOGUE_COUNTERS:])
COUNTER_BITS = (len(BODY_COUNTERS) - 1).bit_length()
_SEQUENCER = tuple(name for name, _ in SEQUENCER_COUNTERS)

_COMPUTE = (Unit.MAC, Unit.VEC)
TURN = 4  #: cycles from one counter's sum to the next: few, as its lowest bits have to last for a round of all


class Monitor(wiring.Component):
    """Counts what the units report, from ``clear`` on while ``enable`` is set.

    Sums lie in a RAM. Beside it are the lowest bits of each counter, which count; the RAM follows them in turn, one
    counter in :data:`TURN` cycles, before they can come round to where they were. What is read is both together. An
    occupancy is a maximum, and a register.

    Members
    -------
    clear, enable : In(1)
        Not both at a time.
    activity : In(ACTIVITY).array(7)
        By ``hw.contract.isa.Unit``. At most ``params.lv1_word`` bytes.
    missing : In(SEMAPHORE_CLASSES).array(2)
        Classes of the semaphores that the heads of the queues of MAC and VEC miss.
    loading : In(1)
        LD2 works, for the body or for a prologue.
    mac_empty, ... : In(1)
        By the names in ``hw.contract.job.SEQUENCER_COUNTERS``: it counts in this cycle.
    read, wanted : In(RamRead), In(1)
        One of ``BODY_COUNTERS``, by its number there, as it is in the cycle after the address, if that comes with
        ``wanted``. It is there two cycles after the address, and stays until another is.
    """

    def __init__(self, params: SocParams) -> None:
        self._most_bytes = params.lv1_word
        super().__init__(
            {
                "clear": In(1),
                "enable": In(1),
                "activity": In(ACTIVITY).array(len(Unit)),
                "missing": In(SEMAPHORE_CLASSES).array(len(_COMPUTE)),
                "loading": In(1),
                **{name: In(1) for name in _SEQUENCER},
                "read": In(RamRead(COUNTER_BITS, 32)),
                "wanted": In(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.sums = ram = Memory(shape=32, depth=1 << COUNTER_BITS, init=[], attrs=BLOCK_RAM | NO_COLLISION)
        write, to_add, to_read = ram.write_port(), ram.read_port(), ram.read_port()
        occupancies = self._occupancies(m)
        lowest = {}  # bits of each counter
        stored = Signal(len(BODY_COUNTERS))  # counters whose sum is in the RAM; those of the others are zero
        with m.If(self.clear):
            m.d.sync += stored.eq(0)
        for name, (now, most) in self._counts(m).items():
            round_of_all = TURN * len(BODY_COUNTERS) + 1
            lowest[name] = low = Signal((most * round_of_all).bit_length(), name=f"{name}_lowest")
            m.d.sync += low.eq(low + Mux(self.enable, now, 0))
            with m.If(self.clear):
                m.d.sync += low.eq(0)

        def sum_of(number: Signal, in_ram: Value) -> Value:
            """Return the sum of a counter, from its lowest bits and a sum that they were ahead of."""
            before = Signal(32)
            m.d.comb += before.eq(Mux(stored.bit_select(number, 1), in_ram, 0))
            now = mux_tree(number, [lowest.get(name) for name in BODY_COUNTERS])
            bits = mux_tree(number, [Const((1 << len(lowest[n])) - 1) if n in lowest else None for n in BODY_COUNTERS])
            return before + ((now - before)[: len(bits)] & bits)

        # In turn: read the sum, and in the next cycle write what it has become.
        cycle, turn, adding_to, adding = Signal(range(TURN)), Signal(COUNTER_BITS), Signal(COUNTER_BITS), Signal()
        last = cycle == TURN - 1
        m.d.sync += adding.eq(self.enable & last)
        with m.If(self.enable):
            m.d.sync += cycle.eq(cycle + 1)
            with m.If(last):
                m.d.sync += [adding_to.eq(turn), turn.eq(Mux(turn == len(BODY_COUNTERS) - 1, 0, turn + 1))]
        m.d.comb += [to_add.addr.eq(turn), write.addr.eq(adding_to), write.en.eq(adding)]
        with m.If(adding):
            m.d.comb += write.data.eq(sum_of(adding_to, to_add.data))
            with m.If(~self.clear):
                m.d.sync += stored.eq(stored | (1 << adding_to))

        # The sum that was written last is taken from beside the RAM: it may be written while it is read.
        reading, beside, written, wanted = Signal(COUNTER_BITS), Signal(), Signal(32), Signal()
        m.d.comb += to_read.addr.eq(self.read.addr)
        m.d.sync += [
            reading.eq(self.read.addr),
            beside.eq(adding_to == self.read.addr),
            wanted.eq(self.wanted),
        ]
        with m.If(adding):
            m.d.sync += written.eq(write.data)
        occupancy = mux_tree(reading, [occupancies.get(name) for name in BODY_COUNTERS])
        is_occupancy = mux_tree(reading, [Const(name in occupancies, 1) for name in BODY_COUNTERS])
        in_ram = Mux(beside, written, to_read.data)
        with m.If(wanted):
            m.d.sync += self.read.data.eq(Mux(is_occupancy, occupancy, sum_of(reading, in_ram)))
        return m

    def _occupancies(self, m: Module) -> dict[str, Signal]:
        """Return the highest extents that copy units have reported."""
        highest = {}
        for unit in Unit:
            if unit in _COMPUTE:
                continue
            name, now = f"{unit.name.lower()}_occupancy", self.activity[unit]
            highest[name] = high = Signal(32, name=name)
            with m.If(self.clear):
                m.d.sync += high.eq(0)
            with m.Elif(self.enable & now.extent_valid & (now.extent > high)):
                m.d.sync += high.eq(now.extent)
        return highest

    def _counts(self, m: Module) -> dict[str, tuple[Value, int]]:
        """Return what each counter counts in this cycle, and the most that it can be."""
        counts: dict[str, tuple[Value, int]] = {name: (getattr(self, name), 1) for name in _SEQUENCER}
        for unit in Unit:
            name, now = unit.name.lower(), self.activity[unit]
            counts[f"{name}_busy"] = now.busy, 1
            counts[f"{name}_stalled"] = now.busy & now.stalled, 1
            if unit in _COMPUTE:
                counts[f"{name}_active"] = now.active, 1
                counts.update((event, (cycle, 1)) for event, cycle in self._waiting(m, unit).items())
            else:
                counts[f"{name}_bytes"] = now.bytes, self._most_bytes
        return counts

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
