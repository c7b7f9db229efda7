"""Models the registers as the host reads and writes them: ``hw/control/engine_registers.py`` and ``hw/soc.py``."""

from collections.abc import Callable
from functools import partial

from hw.contract.job import COUNTERS, JOB, Fault
from hw.contract.regs import (
    ENGINE_REGS,
    GLOBAL_REGS,
    ID_VALUE,
    VERSION_VALUE,
    Access,
    engine_reg,
    field_value,
    global_reg,
)
from hw.contract.timing import COUNTER_READ
from sim.model.engine import EngineModel, SocModel
from sim.model.jobs import BAD_READ, JobFault

_WORD = 0xFFFFFFFF
_BASE = _WORD & -JOB.size
_NO_FAULT = JobFault(Fault.NONE, 0)
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
            _add_engine(engine, self.readers, self.writers, self._counters)

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


def _add_engine(e: EngineModel, readers: dict[int, Read], writers: dict[int, Write], counters: set[int]) -> None:
    """Add the registers of an engine. Those that :func:`_read` and :func:`_written` do not know keep a number."""
    read, written = _read(e), _written(e)
    for reg in ENGINE_REGS:
        for i in range(reg.count):
            address = engine_reg(e.number, reg.name, i)
            if reg.name == "SEM":
                readers[address] = partial(e.executor.dispatch.semaphores.count, i)
            elif reg.name == "COUNTER":
                readers[address] = partial(_counter, e, i)
                counters.add(address)
            else:
                readers[address] = read.get(reg.name) or partial(_kept, e, reg.name)
            if reg.access is not Access.RO:
                writers[address] = written.get(reg.name) or partial(_keep, e, reg.name)


def _read(e: EngineModel) -> dict[str, Read]:
    """Return how registers are read that are more than a number which they keep."""
    ring, loader, retirer, executor = e.ring, e.loader, e.retirer, e.executor
    return {
        "CONTROL": lambda _: e.enabled | e.paused << 2,
        "STATUS": lambda time: field_value(
            "STATUS",
            state=e.state(time),
            loader_busy=loader.busy,
            in_job=executor.in_job,
            loaded=loader.loaded,
            retired=retirer.retired,
            point=executor.halt_point,
        ),
        "IRQ_STATUS": lambda _: e.irq_pending,
        "RING_TAIL": lambda _: ring.tail & _WORD,
        "RING_FETCHED": lambda _: ring.fetched & _WORD,
        "RING_LOADED": lambda _: loader.loaded & _WORD,
        "RING_HEAD": lambda _: retirer.retired & _WORD,
        "CPL_TAIL": lambda _: retirer.retired & _WORD,
        "HALT_JOB": lambda _: executor.job.members["job_id"],
        "CURRENT_JOB": lambda _: executor.job.members["job_id"],
        "HALT_POINT": lambda _: executor.halt_point,
        "HALT_PC": lambda _: executor.halt_pc,
        "HALT_CYCLE_LO": lambda _: executor.halt_cycle & _WORD,
        "HALT_CYCLE_HI": lambda _: executor.halt_cycle >> 32,
        "CURRENT_PC": executor.next_pc,
        "FAULT_CODE": lambda _: _fault(e).code | _fault(e).unit << 8,
        "FAULT_JOB": lambda _: _fault_job(e),
        "FAULT_PC": lambda _: _fault(e).pc,
        "FAULT_ADDR": lambda _: _fault(e).address & _WORD,
    }


def _written(e: EngineModel) -> dict[str, Write]:
    """Return how registers are written that do more than keep a number."""

    def acknowledge(_: int, value: int) -> None:
        e.irq_pending &= ~value

    def consumed(time: int, value: int) -> None:
        e.regs["CPL_HEAD"] = value
        e.retirer.consider(time)

    return {"CONTROL": e.control, "IRQ_STATUS": acknowledge, "RING_TAIL": e.ring.doorbell, "CPL_HEAD": consumed}


def _kept(e: EngineModel, name: str, time: int) -> int:
    return e.regs[name]


def _keep(e: EngineModel, name: str, time: int, value: int) -> None:
    e.regs[name] = value & _MASKS.get(name, _WORD)


def _counter(e: EngineModel, number: int, time: int) -> int:
    job = e.executor.job
    return e.counters(job, e.executor.dispatch.queues, time)[COUNTERS[number][0]] & _WORD if job.index >= 0 else 0


def _fault(e: EngineModel) -> JobFault:
    """Return the fault that the registers show: that of a completion, which could not be written, or of the job."""
    return BAD_READ if e.retirer.failed else e.executor.fault or _NO_FAULT


def _fault_job(e: EngineModel) -> int:
    if e.retirer.failed:
        return e.retirer.failed.members["job_id"]
    return e.executor.job.members["job_id"] if e.executor.dead else 0


def _constant(value: int, time: int) -> int:
    return value
