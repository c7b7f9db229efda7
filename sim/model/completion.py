"""Makes completions and counters as ``hw/control/monitor.py`` does, from when instructions began and ended, and keeps
these times for who asked for them."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from hw.contract.isa import Unit
from hw.contract.job import COMPLETION, COUNTERS, SEMAPHORES, JobFlag
from sim.cost.exact.program import ProgramTable
from sim.instruction_runs import InstructionRun
from sim.model.jobs import Job, JobFault
from sim.model.queues import QueueModel
from sim.model.waiting import waiting_counters

_COPIES = (Unit.LD2, Unit.ST2, Unit.LD1, Unit.ST1, Unit.LD0)
_ZEROS = dict.fromkeys((name for name, _ in COUNTERS), 0)
_TIMES = ("prologue_start", "prologue_end", "start", "end")  #: of a job that a completion tells
_KEPT = 128  #: counters of bodies of a program


class Spans(NamedTuple):
    """Holds the instructions of a unit in order: their PCs, and the cycles in which they were accepted and
    signalled."""

    pcs: Sequence[int]
    begins: Sequence[int]
    ends: Sequence[int]


def completion_of(job: Job, fault: JobFault | None, counters: Mapping[str, int]) -> bytes:
    """Return the completion record that goes to DRAM."""
    members = {"job_id": job.members["job_id"], "tag": job.members["tag"], "index": job.index & 0xFFFFFFFF}
    if fault is not None:
        members |= {"status": fault.code, "unit": fault.unit, "pc": fault.pc, "address": fault.address & 0xFFFFFFFF}
    members |= {name: job.times[name] for name in _TIMES if name in job.times}
    return COMPLETION.pack(**members, **{name: value & 0xFFFFFFFF for name, value in counters.items()})


def copy_counters(prefix: str, spans: Spans, program: ProgramTable) -> dict[str, int]:
    """Return ``bytes``, ``busy`` and ``occupancy`` of a unit that copies. Cycles in which it was held up are part of
    ``busy``; how many they are is not known."""
    return {
        f"{prefix}_bytes": _sum(program.amount, spans.pcs),
        f"{prefix}_busy": _union(spans.begins, spans.ends),
        f"{prefix}_occupancy": max(map(program.extent.__getitem__, spans.pcs), default=0),
    }


class BodyCounters:
    """Works out the counters of the bodies of a SoC. A body that goes as an earlier one did, cycle by cycle from its
    start on, is not worked out again: inferences repeat themselves."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[ProgramTable, dict[tuple[int, bytes], Mapping[str, int]]] = WeakKeyDictionary()

    def counted(
        self, queues: Sequence[QueueModel], program: ProgramTable, job: Job, loads: Spans, now: int
    ) -> Mapping[str, int]:
        """Return what :func:`body_counters` returns, worked out once."""
        known, key = self._known.setdefault(program, {}), (program.forgotten, _course(queues, job, loads, now))
        found = known.get(key)
        if found is None:
            if len(known) >= _KEPT:
                del known[next(iter(known))]
            found = known[key] = body_counters(queues, program, job, loads, now)
        return found


def _course(queues: Sequence[QueueModel], job: Job, loads: Spans, now: int) -> bytes:
    """Return a digest of all that counters of a body follow from, times counted from its start."""
    start, numbers = job.times["start"], list[int]()
    columns = [[now], loads.begins, loads.ends]
    for queue in queues:
        columns += (queue.issued, queue.taken, queue.done)
        numbers += queue.pcs
        numbers.append(len(queue.granted))
    for times in columns:
        numbers += [time - start for time in times]
    numbers += map(len, columns)
    if job.has(JobFlag.RESUME):
        numbers += [job.members[f"sem{number}"] for number in range(SEMAPHORES)]
    return blake2b(array("q", numbers), digest_size=16).digest()


def body_counters(
    queues: Sequence[QueueModel], program: ProgramTable, job: Job, loads: Spans, now: int
) -> dict[str, int]:
    """Return the counters of the body of ``job``, as they stand in cycle ``now``; ``loads``: what the loader had LD2
    do."""
    counters = dict(_ZEROS)
    for queue in queues:
        spans = _spans(queue, queue.taken, now)
        name = queue.unit.name.lower()
        if queue.unit in _COPIES:
            counters |= copy_counters(name, spans, program)
        else:
            counters[f"{name}_busy"] = _union(spans.begins, spans.ends)
            counters[f"{name}_active"] = _sum(program.amount, spans.pcs)
        counters["instructions"] += bisect_left(queue.issued, now)
    mac = queues[Unit.MAC]
    queued = _spans(mac, mac.issued, now)
    counters["mac_empty"] = max(0, now - job.times["start"] - _union(queued.begins, queued.ends))
    resumes = job.has(JobFlag.RESUME)
    restored = {number: job.members[f"sem{number}"] for number in range(SEMAPHORES) if resumes}
    counters |= waiting_counters(queues, restored, zip(loads.begins, loads.ends, strict=True), now)
    return counters


def _spans(queue: QueueModel, begins: Sequence[int], now: int) -> Spans:
    """Return what ``queue`` has done, as it stands in cycle ``now``; each began at ``begins``, which are in order."""
    count = bisect_left(begins, now, 0, len(queue.done))
    return Spans(queue.pcs[:count], begins[:count], [end if end < now else now for end in queue.done[:count]])


def _sum(column: Sequence[int], pcs: Sequence[int]) -> int:
    return sum(map(column.__getitem__, pcs))


def _union(begins: Sequence[int], ends: Sequence[int]) -> int:
    """Return the cycles in which any of the spans, which begin in order, is under way."""
    total, last = 0, 0
    for begin, end in zip(begins, ends, strict=True):
        if begin < last:
            begin = last
        if end > begin:
            total += end - begin
            last = end
    return total


class UnitRun(NamedTuple):
    """Holds the instructions that one unit of an engine ran for one job, in order."""

    engine: int
    unit: Unit
    job: Job
    pcs: Sequence[int]
    taken: Sequence[int]
    done: Sequence[int]


class Recorder:
    """Keeps what ran while ``enabled``, as it comes."""

    def __init__(self) -> None:
        self.enabled = False
        self._bodies: list[UnitRun] = []
        self._prologues: list[UnitRun] = []

    def body(self, engine: int, job: Job, queues: Iterable[QueueModel]) -> None:
        """Keep a body that has ended; what its queues hold will not change any more."""
        if self.enabled:
            self._bodies += [UnitRun(engine, q.unit, job, q.pcs, q.taken, q.done) for q in queues if q.done]

    def prologue(self, engine: int, job: Job, loads: Spans) -> None:
        """Keep the ``loads`` of a prologue that has ended."""
        if self.enabled:
            self._prologues.append(UnitRun(engine, Unit.LD2, job, *loads))

    def table(self) -> npt.NDArray[np.int64]:
        """Return a table with a row for each instruction, whose columns are the members of ``InstructionRun``."""
        parts = [_rows(run) for run in (*self._prologues, *self._bodies)]
        return np.concatenate(parts) if parts else np.empty((0, len(InstructionRun._fields)), np.int64)


def _rows(run: UnitRun) -> npt.NDArray[np.int64]:
    """Return the rows of the instructions that have ended."""
    rows = np.empty((len(run.done), len(InstructionRun._fields)), np.int64)
    rows[:, :3] = run.engine, run.unit, run.job.members["job_id"]
    for column, values in enumerate((run.pcs, run.taken, run.done), 3):
        rows[:, column] = values[: len(run.done)]
    return rows
