"""Models the registers as the host reads and writes them: ``hw/control/engine_registers.py`` and ``hw/soc.py``."""

from collections.abc import Callable
from functools import partial

from hw.contract.job import COUNTERS, JOB, SEMAPHORES, Fault, FaultUnit
from hw.contract.regs import (
    ENGINE_REGS,
    GLOBAL_REGS,
    ID_VALUE,
    VERSION_VALUE,
    Access,
    engine_reg,
    global_reg,
)
from hw.contract.timing import COUNTER_READ
from sim.model.engine import EngineModel, SocModel

_WORD = 0xFFFFFFFF
_BASE = _WORD & -JOB.size
_MASKS = {
    "RING_BASE": _BASE,
    "CPL_BASE": _BASE,
    "RING_SIZE": 15,
    "CPL_SIZE": 15,
    "IRQ_ENABLE": 7,
}  #: bits of registers that have fewer than 32

Read = Callable[[int], int]  #: told the cycle
Write = Callable[[int, int], None]  #: told the cycle from which on, and the value


class RegisterModel:
    """Holds every register of ``hw.contract.regs`` by its address: ``readers`` and ``writers``."""

    def __init__(self, soc: SocModel) -> None:
        self._soc = soc
        self._upper = 0
        self.readers: dict[int, Read] = {}
        self.writers: dict[int, Write] = {}
        self._events: set[int] = set()
        self._counters: set[int] = set()
        self._add_globals()
        for engine in soc.engines:
            _EngineRegisters(engine).add(self.readers, self.writers, self._counters)

    def touched(self, address: int, time: int) -> int:
        """Return when an access that reaches the register file at ``time`` is carried out: some registers take
        turns."""
        if address in self._events:
            return self._soc.shared.events.accessed(time)
        return time + COUNTER_READ if address in self._counters else time

    def _add_globals(self) -> None:
        shared = self._soc.shared
        values = {
            "ID": ID_VALUE, "VERSION": VERSION_VALUE, "PARAMS": int(shared.params.digest()[:8], 16),
            "ENGINES": shared.params.engines,
        }  # fmt: skip
        for name, value in values.items():
            self.readers[global_reg(name)] = partial(_constant, value)
        attributes = next(reg for reg in GLOBAL_REGS if reg.name == "AXI_ATTRIBUTES")
        self._kept = {attributes.offset: attributes.reset}
        self.readers[attributes.offset] = partial(self._read_kept, attributes.offset)
        self.writers[attributes.offset] = partial(self._keep, attributes.offset, attributes.mask)
        self.readers[global_reg("CYCLE_LO")] = self._cycle
        self.readers[global_reg("CYCLE_HI")] = self._cycle_upper
        self.readers[global_reg("IRQ")] = self._irq
        count = next(reg.count for reg in GLOBAL_REGS if reg.name == "EVENT")
        for number in range(count):
            address = global_reg("EVENT", number)
            self._events.add(address)
            self.readers[address] = partial(self._event, number)
            self.writers[address] = partial(self._set_event, number)

    def _read_kept(self, address: int, time: int) -> int:
        return self._kept[address]

    def _keep(self, address: int, mask: int, time: int, value: int) -> None:
        self._kept[address] = value & mask

    def _cycle(self, time: int) -> int:
        self._upper = time >> 32
        return time & _WORD

    def _cycle_upper(self, time: int) -> int:
        return self._upper

    def _irq(self, time: int) -> int:
        return sum(bool(e.irq_pending & e.regs["IRQ_ENABLE"]) << e.number for e in self._soc.engines)

    def _event(self, number: int, time: int) -> int:
        counts = self._soc.shared.events.counts
        return counts[number] if number < len(counts) else 0

    def _set_event(self, number: int, time: int, value: int) -> None:
        shared = self._soc.shared
        if number < len(shared.events.counts):
            shared.events.counts[number] = value
            for told in shared.event_changed:
                told(time)


class _EngineRegisters:
    """Holds the registers of one engine, with a method for each that is more than a number it keeps."""

    def __init__(self, engine: EngineModel) -> None:
        self._engine = engine

    def add(self, readers: dict[int, Read], writers: dict[int, Write], counters: set[int]) -> None:
        e = self._engine
        for reg in ENGINE_REGS:
            name = reg.name.lower()
            for i in range(reg.count):
                address = engine_reg(e.number, reg.name, i)
                read = getattr(self, f"_{name}", None)
                if read is None:
                    readers[address] = partial(self._kept, reg.name)
                else:
                    readers[address] = read if reg.count == 1 else partial(read, i)
                if reg.access is not Access.RO:
                    writers[address] = getattr(self, f"_write_{name}", None) or partial(self._keep, reg.name)
                if reg.name == "COUNTER":
                    counters.add(address)

    def _kept(self, name: str, time: int) -> int:
        return self._engine.regs[name]

    def _keep(self, name: str, time: int, value: int) -> None:
        self._engine.regs[name] = value & _MASKS.get(name, _WORD)

    # -- control ---------------------------------------------------------------------------------------------
    def _control(self, time: int) -> int:
        return self._engine.enabled | self._engine.paused << 2

    def _write_control(self, time: int, value: int) -> None:
        self._engine.control(time, value)

    def _status(self, time: int) -> int:
        e = self._engine
        return e.state(time) | e.loader.busy << 4 | e.executor.in_job << 5

    def _irq_status(self, time: int) -> int:
        return self._engine.irq_pending

    def _write_irq_status(self, time: int, value: int) -> None:
        self._engine.irq_pending &= ~value

    # -- rings -----------------------------------------------------------------------------------------------
    def _ring_tail(self, time: int) -> int:
        return self._engine.ring.tail & _WORD

    def _write_ring_tail(self, time: int, value: int) -> None:
        self._engine.ring.doorbell(time, value)

    def _ring_fetched(self, time: int) -> int:
        return self._engine.ring.fetched & _WORD

    def _ring_loaded(self, time: int) -> int:
        return self._engine.loader.loaded & _WORD

    def _ring_head(self, time: int) -> int:
        return self._engine.retirer.retired & _WORD

    _cpl_tail = _ring_head

    def _write_cpl_head(self, time: int, value: int) -> None:
        self._engine.regs["CPL_HEAD"] = value
        self._engine.retirer.consider(time)

    # -- the job at hand -------------------------------------------------------------------------------------
    def _halt_job(self, time: int) -> int:
        return self._engine.executor.job.members["job_id"]

    _current_job = _halt_job

    def _halt_point(self, time: int) -> int:
        return self._engine.executor.halt_point

    def _halt_pc(self, time: int) -> int:
        return self._engine.executor.halt_pc

    def _halt_cycle_lo(self, time: int) -> int:
        return self._engine.executor.halt_cycle & _WORD

    def _halt_cycle_hi(self, time: int) -> int:
        return self._engine.executor.halt_cycle >> 32

    def _current_pc(self, time: int) -> int:
        return self._engine.executor.next_pc(time)

    def _sem(self, number: int, time: int) -> int:
        assert number < SEMAPHORES
        return self._engine.executor.dispatch.semaphores.count(number, time)

    def _counter(self, number: int, time: int) -> int:
        e = self._engine
        job = e.executor.job
        return e.counters(job, e.executor.dispatch.queues, time)[COUNTERS[number][0]] & _WORD if job.index >= 0 else 0

    # -- faults ----------------------------------------------------------------------------------------------
    def _fault_code(self, time: int) -> int:
        e = self._engine
        if e.retirer.failed:
            return Fault.BUS | FaultUnit.RING << 8
        fault = e.executor.fault
        return fault.code | fault.unit << 8 if fault else 0

    def _fault_job(self, time: int) -> int:
        e = self._engine
        if e.retirer.failed:
            return e.retirer.failed.members["job_id"]
        return self._halt_job(time) if e.executor.dead else 0

    def _fault_pc(self, time: int) -> int:
        fault = self._engine.executor.fault
        return fault.pc if fault and not self._engine.retirer.failed else 0

    def _fault_addr(self, time: int) -> int:
        fault = self._engine.executor.fault
        return fault.address & _WORD if fault and not self._engine.retirer.failed else 0


def _constant(value: int, time: int) -> int:
    return value
