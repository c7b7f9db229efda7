"""Defines what the parts of an engine share: the engine as they see it, and events that a reset takes back."""

from collections.abc import Callable
from typing import Any, Protocol

from hw.contract.params import SocParams
from sim.cost.exact.program import ProgramTable
from sim.functional.state import Segments
from sim.model.agenda import Agenda
from sim.model.dram import MemoryModel
from sim.model.events import EventModel
from sim.model.jobs import Job
from sim.model.load_unit import LoadUnit
from sim.model.queues import QueueModel
from sim.model.recorder import Recorder
from sim.model.store_unit import StoreUnit


class Surroundings(Protocol):
    """Is an engine as its parts see it. ``ring``, ``loader``, ``executor`` and ``retirer`` are the other parts."""

    params: SocParams
    number: int
    agenda: Agenda
    memory: MemoryModel
    events: EventModel
    regs: dict[str, int]
    data: bool
    enabled: bool
    paused: bool
    resetting: bool
    stopped: bool
    ld2: LoadUnit
    st2: StoreUnit
    recorder: Recorder
    ring: Any
    loader: Any
    executor: Any
    retirer: Any

    def read_dram(self, address: int, size: int) -> bytes:
        """Return the bytes of the DRAM."""

    def write_dram(self, address: int, data: bytes) -> None:
        """Set bytes of the DRAM."""

    def program(self, job: Job) -> ProgramTable:
        """Return the code segment of a job."""

    def execute(self, program: ProgramTable, pc: int, job: Job, patience: int = 0) -> None:
        """Carry out what an instruction of a job, which has ``patience`` cycles, does; raises ``FunctionalFault``."""

    def bases(self, program: ProgramTable, pc: int, segments: Segments) -> tuple[int, int]:
        """Return what the offsets of an instruction's bursts count from, and what it writes in LV2."""

    def event_changed(self, time: int) -> None:
        """An event counter was changed."""

    def interrupt(self, time: int, what: str) -> None:
        """An interrupt is pending from ``time`` on."""

    def record(self, job: Job, queues: list[QueueModel]) -> None:
        """A body has ended."""

    def prologue_counters(self, job: Job) -> None:
        """A prologue has ended."""

    def counters(self, job: Job, queues: list[QueueModel], now: int) -> dict[str, int]:
        """Return the counters of a job in cycle ``now``."""

    def stop(self) -> None:
        """Stand still until a reset."""

    def poll(self, time: int, quiet: Callable[[int], None]) -> None:
        """Call ``quiet`` once no transaction of the units is outstanding."""


class Part:
    """Is a part of ``engine``. What it plans by :meth:`later` does not happen once ``generation`` has changed."""

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
