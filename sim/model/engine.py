"""Models one engine: ``hw/engine.py`` and ``hw/control/engine_control.py``."""

from collections.abc import Callable

from hw.contract.job import Fault, FaultUnit, JobFlag
from hw.contract.regs import EngineState
from hw.contract.timing import RESET_PATIENCE, SETTLED
from sim.cost.exact.copies import run_of_burst
from sim.cost.exact.program import ProgramTable
from sim.functional.state import Segments
from sim.model.completion import copy_counters
from sim.model.executor import ExecutorModel
from sim.model.jobs import Job, JobFault
from sim.model.load_unit import LoadUnit
from sim.model.loader import LoaderModel
from sim.model.queues import QueueModel
from sim.model.requests import READ_PORTS
from sim.model.retirer import RetirerModel
from sim.model.ring import RingModel
from sim.model.shared import Shared
from sim.model.store_unit import StoreUnit
from sim.model.transfer import LOADER, Transfer

KEPT = ("RING_BASE", "RING_SIZE", "CPL_BASE", "CPL_SIZE", "IRQ_ENABLE")  #: registers that a reset leaves alone
_LOOK = 4  #: cycles between two looks whether an engine is quiet
_IRQS = {"completion": 1, "fault": 2, "halted": 4}


class EngineModel:
    """Joins ring, loader, executor, retirer and units, with the registers that the host writes (``regs``)."""

    def __init__(self, shared: Shared, number: int) -> None:
        self.shared, self.number = shared, number
        self.params, self.agenda, self.memory, self.events = shared.params, shared.agenda, shared.memory, shared.events
        self.data, self.recorder = shared.units is not None, shared.recorder
        self.regs = dict.fromkeys((*KEPT, "CPL_HEAD"), 0)
        self.enabled = self.paused = self.resetting = self.stopped = False
        self.irq_pending = 0
        self.ld2 = LoadUnit(self.params, self.memory, self.agenda, READ_PORTS * number + 2, self._load_struck)
        self.st2 = StoreUnit(self.params, self.memory, self.agenda, 2 * number, self._store_struck)
        self._reset_at = 0  # when the reset at hand began
        self.ring = RingModel(self)
        self.retirer = RetirerModel(self)
        self.loader = LoaderModel(self)
        self.executor = ExecutorModel(self)
        shared.event_changed.append(self.executor.preparer.event_changed)

    # -- what the parts use ----------------------------------------------------------------------------------
    def read_dram(self, address: int, size: int) -> bytes:
        """Return the bytes of the DRAM, zeros beyond its end."""
        return self.shared.dram[address : address + size].tobytes().ljust(size, b"\0")

    def write_dram(self, address: int, data: bytes) -> None:
        """Set bytes of the DRAM."""
        self.shared.store(address, data)

    def program(self, job: Job) -> ProgramTable:
        """Return the code segment of a job."""
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
            job.counters = copy_counters("prologue", self.loader.counted(), self.program(job))

    def counters(self, job: Job, queues: list[QueueModel], now: int) -> dict[str, int]:
        """Return the COUNTER registers in cycle ``now``."""
        counters = self.shared.counters.counted(queues, queues[0].program, job, self.loader.counted(), now)
        return {**counters, "fetch_stalled": self.executor.dispatch.starved, **job.counters}

    # -- errors of the memory ----------------------------------------------------------------------------------
    def _load_struck(self, time: int, transfer: Transfer, number: int) -> None:
        """Burst ``number`` of a load was answered with an error."""
        loading = transfer.side == LOADER
        job = self.loader.job if loading else self.executor.job
        fault = self._bus_fault(job, transfer.pc, FaultUnit.LD2, number)
        (self.loader if loading else self.executor).struck(time, fault)

    def _store_struck(self, time: int, transfer: Transfer, number: int) -> None:
        self.executor.struck(time, self._bus_fault(self.executor.job, transfer.pc, FaultUnit.ST2, number))

    def _bus_fault(self, job: Job, pc: int, unit: FaultUnit, number: int) -> JobFault:
        """Return the fault that the completion tells, which names the run to which the burst belongs."""
        fields = self.program(job).insn(pc).fields
        loads = unit is FaultUnit.LD2
        base = job.segments[fields["src_seg" if loads else "dst_seg"]][0]
        params = self.params
        at = run_of_burst(fields, base, params.dram_word, params.axi_burst_beats * params.dram_word, loads, number)
        return JobFault(Fault.BUS, unit, pc, at)

    # -- what the host does ----------------------------------------------------------------------------------
    def control(self, time: int, value: int) -> None:
        """Write CONTROL, which takes effect in cycle ``time``."""
        enabled, paused = bool(value & 1), bool(value & 4)
        was_paused = self.paused
        self.enabled, self.paused = enabled, paused
        if value & 2:
            self._reset(time)
            return
        if paused and not was_paused:
            self.loader.pause(time)
            self.executor.pause(time)
        elif was_paused and not paused:
            self.loader.resume(time)
            self.executor.resume(time)
        if enabled:
            self.ring.consider(time)
            self.loader.consider(time)
            self.executor.preparer.prepare(time)
            self.executor.consider(time)

    def state(self, time: int) -> EngineState:
        """Return STATUS.state."""
        if self.resetting:
            return EngineState.HUNG if time - self._reset_at >= RESET_PATIENCE else EngineState.RESETTING
        return self.executor.state(time)

    def stop(self) -> None:
        """Stand still until the engine is reset."""
        self.stopped = True
        self.loader.stop()

    def quiet(self) -> bool:
        """Return whether no transaction is outstanding."""
        parts = self.executor.dispatch.fetch.outstanding + self.loader.fetch.outstanding + self.retirer.writing
        return not (parts + self.ld2.outstanding + self.st2.outstanding + self.ring.fetching)

    def poll(self, time: int, quiet: Callable[[int], None]) -> None:
        """Call ``quiet`` once no transaction of the units is outstanding."""
        if self.ld2.outstanding + self.st2.outstanding:
            self.agenda.at(time + _LOOK, lambda at, _: self.poll(at, quiet))
        else:
            quiet(time)

    def _reset(self, time: int) -> None:
        if self.resetting:
            return
        self.resetting = self.stopped = True
        self._reset_at = time
        self.loader.stop()
        self.executor.generation += 1
        self.executor.preparer.generation += 1
        self.executor.dispatch.fetch.stop()
        self.ld2.stop()
        self.st2.stop()
        self.agenda.at(time + 1, self._await_quiet)

    def _await_quiet(self, time: int, _: None) -> None:
        if not self.quiet():
            self.agenda.at(time + _LOOK, self._await_quiet)
        else:
            self.agenda.at(time + SETTLED + 1, self._cleared)

    def _cleared(self, time: int, _: None) -> None:
        self.resetting = self.stopped = False
        self.enabled = self.paused = False
        self.irq_pending = 0
        self.regs["CPL_HEAD"] = 0
        self.ld2.clear()
        self.st2.clear()
        for part in (self.ring, self.retirer, self.loader, self.executor):
            part.reset()
