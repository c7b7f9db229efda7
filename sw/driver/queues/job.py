"""Describes a job: one record from when it is made until it has ended or is lost, and what its completion says."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from hw.contract.job import COUNTERS, Fault, FaultUnit, JobFlag
from hw.image import CancelPoint
from sw.driver.errors import DeviceFault, DeviceTimeout, FaultRecord
from sw.driver.models.loaded_model import LoadedModel
from sw.driver.queues.descriptor import Descriptor, EventCount

_WORD = 1 << 32
_WAITS = (int(JobFlag.WAIT0), int(JobFlag.WAIT1))
_SIGNAL, _INTERRUPT, _RESUME, _PROLOGUE, _PARAMS = map(
    int, (JobFlag.SIGNAL, JobFlag.INTERRUPT, JobFlag.RESUME, JobFlag.PROLOGUE, JobFlag.PARAMS)
)


@dataclass(frozen=True)
class DmaTraffic:
    """Says what one DMA did for one job. ``bytes``: read from the source; ``busy``: cycles with an instruction in
    progress; ``stalled``: of these, cycles in which a memory held data up."""

    bytes: int = 0
    busy: int = 0
    stalled: int = 0

    def __add__(self, other: "DmaTraffic") -> "DmaTraffic":
        return DmaTraffic(self.bytes + other.bytes, self.busy + other.busy, self.stalled + other.stalled)


@dataclass(frozen=True)
class DramTraffic:
    """Holds all that one job moved between DRAM and LV2.

    ``ahead``: loads of its prologue, while earlier jobs computed; ``loads`` and ``stores``: of its body.
    """

    ahead: DmaTraffic
    loads: DmaTraffic
    stores: DmaTraffic

    @classmethod
    def of(cls, counters: Mapping[str, int]) -> "DramTraffic":
        """Return the traffic that counters by the names of ``hw.contract.job.COUNTERS`` tell."""
        parts = ("prologue", "ld2", "st2")
        return cls(*(DmaTraffic(*(counters[f"{p}_{what}"] for what in ("bytes", "busy", "stalled"))) for p in parts))

    @property
    def total(self) -> DmaTraffic:
        """Return loads, stores and the prologue's loads together. They overlap in time, so ``busy`` may exceed the
        duration of the job."""
        return self.ahead + self.loads + self.stores


@dataclass(frozen=True)
class JobResult:
    """Says how one job ran: times are the SoC's global cycle count, ``counters`` those of
    ``hw.contract.job.COUNTERS``."""

    model: LoadedModel
    job: int  #: index in the image's job table
    engine: int
    prologue_start: int  #: 0 without a prologue
    prologue_end: int
    start: int
    end: int
    counters: dict[str, int]
    resumed: bool = False  #: the job was preempted; times and counters cover what came after

    @property
    def traffic(self) -> DramTraffic:
        """Return what the job moved between DRAM and LV2."""
        return DramTraffic.of(self.counters)


class JobState(enum.Enum):
    """Says where a job is. It begins as NEW and ends as DONE or LOST; in between it is in one queue or one
    suspension."""

    NEW = enum.auto()
    HELD = enum.auto()  #: in a queue whose ring has no room for it yet
    QUEUED = enum.auto()  #: in a ring, so that its engine may have begun with it
    OFF = enum.auto()  #: taken off its engine, to be queued again later
    DONE = enum.auto()
    LOST = enum.auto()  #: it will not end: its engine was reset, or it was given up


class Party(Protocol):
    """Is whoever has jobs queued, of a class of its own, and is told once what became of each."""

    def ended(self, job: Any, completion: dict[str, int]) -> None:
        """Note that ``job`` is DONE. ``completion``: members of its ``hw.contract.job.COMPLETION``."""

    def fault_of(self, job: Any, record: FaultRecord) -> DeviceFault:
        """Return the error to raise for ``job``, which stopped its engine. The job is lost when the engine is reset."""
        ...

    def overdue(self, job: Any, message: str) -> DeviceTimeout:
        """Return the error to raise for ``job``, which has kept its engine longer than it may. The job is lost when the
        engine is reset."""
        ...

    def lost(self, engine: int, jobs: Sequence[Any]) -> None:
        """Note that ``engine`` was reset, and with it these jobs of the party are LOST, oldest first."""

    def describe(self, job: Any) -> str:
        """Return the job as text, for messages."""
        ...


@dataclass(eq=False)
class DeviceJob:
    """Is one job of one engine, with all that the driver knows of it. Its queue sets what is said of the ring.

    ``work``: what it is to do; ``models``: those that it is for. ``index``: its number in the table of the image of its
    model; -1 for a job of the driver's own. ``purpose``: what its party, which alone reads that, has to know of it.
    ``point``: its body goes on behind this cancellation point; ``prologue``: whether its prologue, if it has one, is to
    run; ``interrupt``: whether it interrupts when it retires.
    """

    id: int
    engine: int
    work: Descriptor
    party: Party
    models: tuple[LoadedModel, ...] = ()
    index: int = -1
    purpose: Any = None
    interrupt: bool = False
    prologue: bool = True
    point: CancelPoint | None = None
    state: JobState = JobState.NEW
    place: int = 0  #: ring index
    posted: int = 0  #: cycle at which it was put in the ring
    window_after: int = 0  #: places earlier in the ring lies the job before whose end the prologue must not start
    result: JobResult | None = None  #: of a job of an image that is DONE

    @property
    def model(self) -> LoadedModel:
        """Return the model that the job is of, or is for."""
        return self.models[0]

    @property
    def of_image(self) -> bool:
        """Return whether the job is one of an image, and not the driver's own."""
        return self.index >= 0

    @property
    def waits(self) -> tuple[EventCount, ...]:
        """Return the events that are to come before its body begins, or goes on."""
        return self.work.waits if self.point is None else ()

    def has_loaded(self, loaded: int) -> bool:
        """Return whether its prologue has run on an engine whose RING_LOADED is ``loaded``."""
        return 0 < (loaded - self.place) % _WORD <= _WORD // 2

    def retire(self, completion: dict[str, int]) -> None:
        """Keep what the completion of the job says."""
        times = {name: completion[name] for name in ("prologue_start", "prologue_end", "start", "end")}
        counters = {name: completion[name] for name, _ in COUNTERS}
        resumed = self.point is not None
        self.result = JobResult(self.model, self.index, self.engine, counters=counters, resumed=resumed, **times)

    def __str__(self) -> str:
        return self.model.describe_job(self.index)


def describe(job: DeviceJob) -> Descriptor:
    """Return what is written to the ring each time that ``job`` is put there."""
    work, point = job.work, job.point
    flags = 0
    for flag, _ in zip(_WAITS, job.waits, strict=False):
        flags |= flag
    if work.signal is not None:
        flags |= _SIGNAL
    if job.interrupt:
        flags |= _INTERRUPT
    if work.parameters:
        flags |= _PARAMS
    body, semaphores = work.body_pc, tuple[tuple[int, int], ...]()
    if point is not None:
        flags, body, semaphores = flags | _RESUME, point.pc + 1, tuple(point.semaphores)
    elif job.prologue and work.prologue_pc is not None:
        flags |= _PROLOGUE
    return replace(work, job_id=job.id, flags=flags, body_pc=body, window_after=job.window_after, semaphores=semaphores)


def checked(entry: dict[str, int], job: DeviceJob, address: int) -> dict[str, int]:
    """Return the completion of ``job``; if it is not that, or says what none can, return a BUS fault of the job."""
    expected = job.id, job.place & 0xFFFFFFFF
    if (entry["job_id"], entry["index"]) == expected and entry["status"] in Fault.__members__.values():
        return entry
    damaged = {"status": int(Fault.BUS), "unit": int(FaultUnit.RING), "pc": 0, "address": address & 0xFFFFFFFF}
    return {**entry, **damaged, "job_id": expected[0], "index": expected[1]}


def fault_record(engine: int, *, status: int, unit: int, job_id: int, pc: int, address: int) -> FaultRecord:
    """Return a :class:`FaultRecord` of raw numbers; numbers without a name stay readable."""
    code = Fault(status) if status in Fault.__members__.values() else Fault.NONE
    name = FaultUnit(unit).name if unit in FaultUnit.__members__.values() else f"unit {unit}"
    return FaultRecord(engine, code, name, job_id, pc, address)
