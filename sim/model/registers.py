"""The registers as the host reads and writes them: ``hw/control/engine_registers.py`` and ``hw/soc.py``."""

from collections.abc import Callable

from hw.contract.job import COUNTERS
from hw.contract.regs import (
    ENGINE_REGS,
    GLOBAL_REGS,
    ID_VALUE,
    VERSION_VALUE,
    Access,
    engine_reg,
    global_reg,
)
from sim.model.engine import Engine
from sim.model.soc import Soc

_WORD = 0xFFFFFFFF
_WIDTHS = {"RING_SIZE": 15, "CPL_SIZE": 15, "IRQ_ENABLE": 7}


class Registers:
    """Every register of ``hw.contract.regs`` by its address: how to read it, and how to write it."""

    def __init__(self, soc: Soc) -> None:
        self._soc = soc
        self._upper = 0
        self.readers: dict[int, Callable[[int], int]] = {}
        self.writers: dict[int, Callable[[int, int], None]] = {}
        #: Registers that answer in a turn of their own, by address.
        self.events = {global_reg("EVENT", number) for number in range(64)}
        self.counters: set[int] = set()
        self._globals()
        for engine in soc.engines:
            self._engine(engine)

    def _globals(self) -> None:
        soc = self._soc
        values = {
            "ID": ID_VALUE, "VERSION": VERSION_VALUE, "PARAMS": int(soc.params.digest()[:8], 16),
            "ENGINES": soc.params.engines,
        }  # fmt: skip
        for name, value in values.items():
            self.readers[global_reg(name)] = lambda time, value=value: value
        self.readers[global_reg("CYCLE_LO")] = self._cycle
        self.readers[global_reg("CYCLE_HI")] = lambda time: self._upper
        self.readers[global_reg("IRQ")] = lambda time: sum(
            bool(e.irq_pending & e.regs["IRQ_ENABLE"]) << e.number for e in soc.engines
        )
        counts = soc.events.counts
        for reg in GLOBAL_REGS:
            if reg.name == "EVENT":
                for number in range(reg.count):
                    address = global_reg("EVENT", number)
                    self.readers[address] = lambda time, n=number: counts[n] if n < len(counts) else 0
                    self.writers[address] = lambda time, value, n=number: self._set_event(time, n, value)

    def _cycle(self, time: int) -> int:
        self._upper = time >> 32
        return time & _WORD

    def _set_event(self, time: int, number: int, value: int) -> None:
        counts = self._soc.events.counts
        if number < len(counts):
            counts[number] = value
            self._soc.engines[0].event_changed(time)

    def _engine(self, e: Engine) -> None:
        executor, ring, retirer, loader, number = e.executor, e.ring, e.retirer, e.loader, e.number

        def fault(member: str) -> Callable[[int], int]:
            return lambda time: getattr(executor.fault, member) & _WORD if executor.fault else 0

        reads: dict[str, Callable[[int], int]] = {
            "CONTROL": lambda time: e.enabled | e.paused << 2,
            "STATUS": lambda time: e.state(time) | loader.busy << 4 | executor.in_job << 5,
            "IRQ_STATUS": lambda time: e.irq_pending,
            "RING_TAIL": lambda time: ring.tail & _WORD,
            "RING_FETCHED": lambda time: ring.fetched & _WORD,
            "RING_HEAD": lambda time: retirer.retired & _WORD,
            "CPL_TAIL": lambda time: retirer.retired & _WORD,
            "RING_LOADED": lambda time: loader.loaded & _WORD,
            "FAULT_CODE": lambda time: self._fault_code(e),
            "FAULT_JOB": lambda time: self._fault_job(e),
            "FAULT_PC": fault("pc"),
            "FAULT_ADDR": fault("address"),
            "HALT_JOB": lambda time: self._job_id(e),
            "HALT_POINT": lambda time: executor.halt_point,
            "HALT_PC": lambda time: executor.halt_pc,
            "CURRENT_JOB": lambda time: self._job_id(e),
            "CURRENT_PC": executor.next_pc,
            "HALT_CYCLE_LO": lambda time: executor.halt_cycle & _WORD,
            "HALT_CYCLE_HI": lambda time: executor.halt_cycle >> 32,
        }
        for name in e.regs:
            reads[name] = lambda time, name=name: e.regs[name]
        writes: dict[str, Callable[[int, int], None]] = {
            "CONTROL": e.control,
            "IRQ_STATUS": lambda time, value: self._clear_irq(e, value),
            "RING_TAIL": ring.doorbell,
            "CPL_HEAD": lambda time, value: self._consumed(e, time, value),
        }
        for reg in ENGINE_REGS:
            if reg.count == 1:
                self.readers[engine_reg(number, reg.name)] = reads[reg.name]
                if reg.access is not Access.RO:
                    kept = lambda time, value, name=reg.name: self._keep(e, name, value)  # noqa: E731
                    self.writers[engine_reg(number, reg.name)] = writes.get(reg.name, kept)
        for i in range(32):
            self.readers[engine_reg(number, "SEM", i)] = lambda time, i=i: executor.semaphores.count(i, time)
        for i, (name, _) in enumerate(COUNTERS):
            address = engine_reg(number, "COUNTER", i)
            self.counters.add(address)
            self.readers[address] = lambda time, name=name: self._counter(e, name, time)

    @staticmethod
    def _keep(e: Engine, name: str, value: int) -> None:
        e.regs[name] = value & _WIDTHS.get(name, _WORD)

    @staticmethod
    def _clear_irq(e: Engine, value: int) -> None:
        e.irq_pending &= ~value

    @staticmethod
    def _consumed(e: Engine, time: int, value: int) -> None:
        e.regs["CPL_HEAD"] = value
        e.retirer.consider(time)

    @staticmethod
    def _job_id(e: Engine) -> int:
        return e.executor.job.members["job_id"] if e.executor.job else 0

    def _fault_code(self, e: Engine) -> int:
        if e.retirer.failed:
            return 6 | 10 << 8
        fault = e.executor.fault
        return fault.code | fault.unit << 8 if fault else 0

    def _fault_job(self, e: Engine) -> int:
        if e.retirer.failed:
            return e.retirer.failed.members["job_id"]
        return self._job_id(e) if e.executor.dead else 0

    @staticmethod
    def _counter(e: Engine, name: str, time: int) -> int:
        job = e.executor.job
        return e.counters(job, e.executor.queues, time)[name] & _WORD if job else 0
