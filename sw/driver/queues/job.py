"""Describes the job of one engine: one record from when it is made until it has ended or is lost, the descriptor that
the engine reads, and what its completion says."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hw.contract.job import JOB, JOB_MAGIC, Fault, FaultUnit, JobFlag
from hw.image import CancelPoint
from sw.driver.errors import DeviceFault, DeviceTimeout, FaultRecord


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


EventCount = tuple[int, int]  #: a hardware event, and the count that it has to reach
_WORD = 1 << 32
_WAITS = (JobFlag.WAIT0, JobFlag.WAIT1)


class JobState(enum.Enum):
    """Says where a job is. It begins as NEW and ends as DONE or LOST; in between it is in one queue or one
    suspension."""

    NEW = enum.auto()
    HELD = enum.auto()  #: in a queue whose ring has no room for it yet
    QUEUED = enum.auto()  #: in a ring, so that its engine may have begun with it
    OFF = enum.auto()  #: taken off its engine, to be queued again later
    DONE = enum.auto()
    LOST = enum.auto()  #: it will not end: its engine was reset, or it was given up


@dataclass(frozen=True, slots=True)
class JobWork:
    """Says what a job is to do. ``segments``: the first byte and the size of each; ``waits``: events that its body
    waits for; ``signal``: the event that it signals; ``tag``: a number of the driver's that its completion repeats."""

    segments: tuple[tuple[int, int], ...]
    cycle_limit: int
    tag: int
    body_pc: int = 0
    prologue_pc: int | None = None
    waits: tuple[EventCount, ...] = ()
    signal: int | None = None


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
    """Is one job of one engine. Its queue sets what is said of the ring.

    ``point``: its body goes on behind this cancellation point; ``prologue``: whether its prologue, if it has one, is to
    run; ``interrupt``: whether it interrupts when it retires.
    """

    id: int
    engine: int
    work: JobWork
    party: Party
    interrupt: bool = False
    prologue: bool = True
    point: CancelPoint | None = None
    state: JobState = JobState.NEW
    place: int = 0  #: ring index
    posted: int = 0  #: cycle at which it was put in the ring
    window_after: int = 0  #: places earlier in the ring lies the job before whose end the prologue must not start

    @property
    def waits(self) -> tuple[EventCount, ...]:
        """Return the events that are to come before its body begins, or goes on."""
        return self.work.waits if self.point is None else ()

    def has_loaded(self, loaded: int) -> bool:
        """Return whether its prologue has run on an engine whose RING_LOADED is ``loaded``."""
        return 0 < (loaded - self.place) % _WORD <= _WORD // 2


@dataclass(frozen=True, slots=True)
class Descriptor:
    """Is a job as its engine reads it, see ``hw.contract.job.JOB``."""

    job_id: int
    flags: JobFlag
    body_pc: int
    window_after: int
    work: JobWork
    semaphores: tuple[tuple[int, int], ...] = ()

    def pack(self) -> bytes:
        """Return the bytes in the ring."""
        work = self.work
        members = {
            "magic": JOB_MAGIC,
            "flags": int(self.flags),
            "job_id": self.job_id,
            "body_pc": self.body_pc,
            "prologue_pc": work.prologue_pc or 0,
            "cycle_limit": work.cycle_limit,
            "window_after": self.window_after,
            "signal_id": work.signal or 0,
            "tag": work.tag,
        }
        for i, (event, count) in enumerate(work.waits):
            members[f"wait{i}_id"], members[f"wait{i}_value"] = event, count
        for number, count in self.semaphores:
            members[f"sem{number}"] = count
        for i, (base, size) in enumerate(work.segments):
            members[f"base{i}"], members[f"limit{i}"] = base, size
        return JOB.pack(**members)


def describe(job: DeviceJob) -> Descriptor:
    """Return what is written to the ring each time that ``job`` is put there."""
    work, point = job.work, job.point
    flags = JobFlag(0)
    for flag, _ in zip(_WAITS, job.waits, strict=False):
        flags |= flag
    if work.signal is not None:
        flags |= JobFlag.SIGNAL
    if job.interrupt:
        flags |= JobFlag.INTERRUPT
    if point is not None:
        counts = tuple(point.semaphores)
        return Descriptor(job.id, flags | JobFlag.RESUME, point.pc + 1, job.window_after, work, counts)
    if job.prologue and work.prologue_pc is not None:
        flags |= JobFlag.PROLOGUE
    return Descriptor(job.id, flags, work.body_pc, job.window_after, work)


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
