"""Defines the engine as its components see it, and what they have in common: events that a reset takes back."""

from collections.abc import Callable
from typing import Any

from hw.contract.job import Fault, FaultUnit, JobFlag
from sim.cost.exact.copies import run_of_burst
from sim.cost.exact.program import ProgramTable
from sim.functional.state import Segments
from sim.model.commands import LOADER, READ_PORTS, Command
from sim.model.completion import copy_counters
from sim.model.jobs import Job, JobFault
from sim.model.memory_units import LoadUnit, StoreUnit
from sim.model.queues import QueueModel
from sim.model.shared import Shared

KEPT = ("RING_BASE", "RING_SIZE", "CPL_BASE", "CPL_SIZE", "IRQ_ENABLE")  #: registers that a reset leaves alone
LOOK = 4  #: cycles between two looks whether an engine is quiet
_IRQS = {"completion": 1, "fault": 2, "halted": 4}


class Surroundings:
    """Is an engine as its components see it: what engines share, its units that reach DRAM, the registers that the host
    writes (``regs``), and the other components: ``ring``, ``loader``, ``executor`` and ``retirer``."""

    ring: Any
    loader: Any
    executor: Any
    retirer: Any

    def __init__(self, shared: Shared, number: int) -> None:
        self.shared, self.number = shared, number
        self.params, self.agenda, self.memory, self.events = shared.params, shared.agenda, shared.memory, shared.events
        self.data, self.recorder = shared.units is not None, shared.recorder
        self.regs = dict.fromkeys((*KEPT, "CPL_HEAD"), 0)
        self.enabled = self.paused = self.resetting = self.stopped = False
        self.irq_pending = 0
        self.ld2 = LoadUnit(self.memory, self.agenda, READ_PORTS * number + 2, self._load_struck)
        self.st2 = StoreUnit(self.memory, self.agenda, 2 * number, self._store_struck)

    def read_dram(self, address: int, size: int) -> bytes:
        """Return the bytes of the DRAM, zeros beyond its end."""
        return self.shared.dram[address : address + size].tobytes().ljust(size, b"\0")

    def write_dram(self, address: int, data: bytes) -> None:
        """Set bytes of the DRAM."""
        self.shared.store(address, data)

    def program(self, job: Job) -> ProgramTable:
        """Return the code segment of a job, with its parameters in the instructions that name them."""
        return self.shared.programs.at(*job.segments[0], job.parameters)

    def loads(self, job: Job) -> ProgramTable:
        """Return the code segment of a job as its prologue sees it, in which nothing names parameters."""
        return self.shared.programs.at(*job.segments[0])

    def execute(self, program: ProgramTable, pc: int, job: Job, patience: int = 0) -> None:
        """Carry out what an instruction of ``job`` does to the memories; raises ``FunctionalFault``. ``patience``: the
        cycles that the job has, 0 if there is no limit."""
        self.shared.execute(program, pc, job.segments, self.number, patience)

    @staticmethod
    def bases(program: ProgramTable, pc: int, segments: Segments) -> tuple[int, int]:
        """Return what the offsets of an instruction's bursts count from, and what it writes in LV2."""
        into = segments[program.into_segment[pc]][0] + program.into[pc]
        return segments[program.segment[pc]][0] + program.at[pc], into

    def event_changed(self, time: int) -> None:
        """An event counter was changed."""
        for told in self.shared.event_changed:
            told(time)

    def interrupt(self, time: int, what: str) -> None:
        """An interrupt is pending from ``time`` on."""
        self.irq_pending |= _IRQS[what]
        if self.shared.awaiting_interrupt and self.irq_pending & self.regs["IRQ_ENABLE"]:
            self.agenda.stop(time)

    def record(self, job: Job, queues: list[QueueModel]) -> None:
        """A body has ended: hand on when its instructions ran."""
        self.recorder.body(self.number, job, queues)

    def prologue_counters(self, job: Job) -> None:
        """A prologue has ended: keep its counters for the completion."""
        if job.has(JobFlag.PROLOGUE):
            job.counters = copy_counters("prologue", self.loader.counted(), self.loads(job))

    def counters(self, job: Job, queues: list[QueueModel], now: int) -> dict[str, int]:
        """Return the COUNTER registers in cycle ``now``."""
        counters = self.shared.counters.counted(queues, queues[0].program, job, self.loader.counted(), now)
        return {**counters, "fetch_stalled": self.executor.dispatch.starved, **job.counters}

    def stop(self) -> None:
        """Stand still until the engine is reset."""
        self.stopped = True
        self.loader.stop()

    def poll(self, time: int, quiet: Callable[[int], None]) -> None:
        """Call ``quiet`` once no transaction of the units is outstanding."""
        if self.ld2.outstanding + self.st2.outstanding:
            self.agenda.at(time + LOOK, lambda at, _: self.poll(at, quiet))
        else:
            quiet(time)

    # -- errors of the memory ----------------------------------------------------------------------------------
    def _load_struck(self, time: int, command: Command, number: int) -> None:
        """Burst ``number`` of a load was answered with an error."""
        loading = command.side == LOADER
        job = self.loader.job if loading else self.executor.job
        fields = (self.loads(job) if loading else self.program(job)).insn(command.pc).fields
        fault = self._bus_fault(job, fields, command.pc, FaultUnit.LD2, number)
        (self.loader if loading else self.executor).struck(time, fault)

    def _store_struck(self, time: int, command: Command, number: int) -> None:
        job, pc = self.executor.job, command.pc
        fields = self.program(job).insn(pc).fields
        self.executor.struck(time, self._bus_fault(job, fields, pc, FaultUnit.ST2, number))

    def _bus_fault(self, job: Job, fields: dict[str, int], pc: int, unit: FaultUnit, number: int) -> JobFault:
        """Return the fault that the completion tells, which names the run to which the burst belongs."""
        loads = unit is FaultUnit.LD2
        base = job.segments[fields["src_seg" if loads else "dst_seg"]][0]
        params = self.params
        at = run_of_burst(fields, base, params.dram_word, params.axi_burst_beats * params.dram_word, loads, number)
        return JobFault(Fault.BUS, unit, pc, at)


class Component:
    """Is a component of ``engine``. What it plans by :meth:`later` does not happen once ``generation`` has changed."""

    def __init__(self, engine: Surroundings) -> None:
        self.engine = engine
        self.generation = 0
        self.build()
        self.reset()

    def build(self) -> None:
        """Make what a reset leaves alone."""

    def reset(self) -> None:
        """Go to the state after a reset of the engine."""
        raise NotImplementedError

    def later(self, time: int, action: Callable[[int, Any], None], subject: Any = None) -> None:
        """Call ``action(time, subject)`` at ``time``."""
        self.engine.agenda.at(time, self._happen, (self.generation, action, subject))

    def _happen(self, time: int, what: tuple[int, Callable[[int, Any], None], Any]) -> None:
        generation, action, subject = what
        if generation == self.generation:
            action(time, subject)
