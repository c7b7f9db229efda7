"""Defines a suspended task: everything needed to continue it, as a record in host memory (of **Cancellation points**).

What lies on chip for it stays there until something else needs the place: *dirty ranges* lie on chip, in
DRAM, or both; *clean* bytes of LV2 and prefetched weight windows only need to be known as lost.
"""

from dataclasses import dataclass, field

from hw.contract.image import CancelPoint
from hw.contract.isa import INSN_BYTES, Insn, Op
from hw.contract.job import JobFlag
from hw.contract.spaces import Space
from sw.driver.errors import DriverError, NotSuspendable
from sw.driver.memory.footprint import LV2, Footprint, MemoryId
from sw.driver.memory.ranges import Range, intersect, normalise, overlap, subtract
from sw.driver.models.loaded_model import LoadedModel
from sw.driver.preempt.halting import HaltRecord

WORD = 1 << 32


@dataclass(frozen=True)
class QueuedJob:
    """Describes a job that has not finished: its descriptor, as first queued, and whose it is.

    ``held``: it was queued again without its prologue, as its weight window was intact.
    """

    job_id: int
    model: LoadedModel
    job: int  #: index in the image's job table
    descriptor: dict[str, int]
    place: int  #: index in the ring it was pushed to
    held: bool = False

    @classmethod
    def of(cls, job_id: int, model: LoadedModel, job: int, members: dict[str, int], place: int) -> "QueuedJob":
        """Return the job of a descriptor in the ring, in which prologue and window may have been changed."""
        info = model.image.meta.jobs[job]
        prologue = int(JobFlag.PROLOGUE) if info.prologue_pc is not None else 0
        held = bool(prologue and not members["flags"] & prologue)
        changed = {"flags": members["flags"] | prologue, "window_after": info.window_after}
        return cls(job_id, model, job, members | changed, place, held)


@dataclass(eq=False)
class DirtyRange:
    """Describes bytes of one memory, of a ``model``, whose content is nowhere else, unless they were dumped. ``copy``
    is the DRAM address of a valid dump; ``on_chip`` says that they are still in their place."""

    model: LoadedModel
    memory: MemoryId
    start: int
    end: int
    copy: int | None = None
    on_chip: bool = True

    @property
    def size(self) -> int:
        """Return how many bytes the range has."""
        return self.end - self.start


@dataclass(frozen=True)
class CleanRange:
    """Describes LV2 bytes of a ``model`` with a copy at ``source`` in DRAM."""

    model: LoadedModel
    start: int
    end: int
    source: int


@dataclass(eq=False)
class Suspension:
    """Is a task taken off its engines. ``Device.suspend`` makes it; ``Device.resume`` continues it.

    ``points``: by engine that halted inside a body, its cancellation point. ``queues``: by engine, jobs not finished,
    in ring order.
    """

    engines: tuple[int, ...]
    halts: dict[int, HaltRecord]
    queues: dict[int, list[QueuedJob]]
    models: list[LoadedModel]  #: whose jobs are in it
    points: dict[int, CancelPoint]
    dirty: list[DirtyRange]
    clean: list[CleanRange]
    windows: dict[int, Range]  #: prefetched weights by job id, intact in LV2
    sent: int  #: cycle at which the pause was sent
    announced: int = 0  #: cycle at which all stopped jobs were queued again
    areas: list[int] = field(default_factory=list)  #: DRAM blocks that hold copies
    lost_clean: list[Range] = field(default_factory=list)
    stale: set[int] = field(default_factory=set)  #: engines whose LV1 and LV0 were overwritten

    def on_chip(self, memory: MemoryId) -> list[Range]:
        """Return the dirty bytes of ``memory`` still in their place."""
        return normalise((p.start, p.end) for p in self.dirty if p.on_chip and p.memory == memory)

    def kept_clean(self) -> list[Range]:
        """Return the clean bytes of LV2 still in their place."""
        return subtract([(c.start, c.end) for c in self.clean], self.lost_clean)

    def to_dump(self, footprint: Footprint) -> list[DirtyRange]:
        """Return the dirty ranges that ``footprint`` would destroy; ranges are split at its edges."""
        result, ranges = [], []
        for dirty in self.dirty:
            hit = intersect([(dirty.start, dirty.end)], footprint.get(dirty.memory, ()))
            if not hit or not dirty.on_chip or dirty.copy is not None:
                ranges.append(dirty)
                continue
            mine = [DirtyRange(dirty.model, dirty.memory, *r) for r in hit]
            rest = [DirtyRange(dirty.model, dirty.memory, *r) for r in subtract([(dirty.start, dirty.end)], hit)]
            ranges += mine + rest
            result += mine
        self.dirty = ranges
        return result

    def overwrite(self, footprint: Footprint) -> None:
        """Note that ``footprint`` is about to be overwritten; raises :class:`DriverError` if that would lose a byte."""
        for dirty in self.dirty:
            if dirty.on_chip and overlap([(dirty.start, dirty.end)], footprint.get(dirty.memory, ())):
                if dirty.copy is None:
                    raise DriverError(
                        f"bytes {dirty.start} to {dirty.end} of {dirty.memory[0]} hold data of a suspended task "
                        "without a copy: admit what comes in first"
                    )
                dirty.on_chip = False
        lv2 = footprint.get(LV2, ())
        self.lost_clean = normalise([*self.lost_clean, *intersect([(c.start, c.end) for c in self.clean], lv2)])
        self.windows = {i: w for i, w in self.windows.items() if not overlap([w], lv2)}
        self.stale |= {e for space, e in footprint if space in (Space.LV1, Space.LV0_ACT) and footprint[space, e]}

    def missing(self) -> list[DirtyRange]:
        """Return the dirty ranges that must be copied back."""
        return [p for p in self.dirty if not p.on_chip]

    def missing_clean(self) -> list[CleanRange]:
        """Return the parts of clean ranges that must be loaded again."""
        return [
            CleanRange(c.model, start, end, c.source + start - c.start)
            for c in self.clean
            for start, end in intersect([(c.start, c.end)], self.lost_clean)
        ]

    def reloads(self, engine: int) -> tuple[QueuedJob, list[Insn]] | None:
        """Return the halted job and its reload instructions, if the engine's own memories were overwritten."""
        point = self.points.get(engine)
        if point is None or engine not in self.stale or not point.reload:
            return None
        halted = self.queues[engine][0]
        code = halted.model.code
        return halted, [_reload_instruction(halted.model, code, pc) for pc in point.reload]

    def drop(self, model: LoadedModel) -> None:
        """Give ``model`` up: nothing of it is brought back or queued again."""
        for e, queue in self.queues.items():
            if queue and queue[0].model is model:
                self.points.pop(e, None)
            self.queues[e] = [job for job in queue if job.model is not model]
        left = {job.job_id for queue in self.queues.values() for job in queue}
        self.windows = {job_id: window for job_id, window in self.windows.items() if job_id in left}
        self.dirty = [r for r in self.dirty if r.model is not model]
        self.clean = [r for r in self.clean if r.model is not model]
        self.models = [other for other in self.models if other is not model]

    def descriptors(self, engine: int) -> list[tuple[QueuedJob, dict[str, int]]]:
        """Return what to queue again, in order: the halted job as a RESUME job, then those that had not started."""
        result = []
        for i, job in enumerate(self.queues[engine]):
            members = dict(job.descriptor)
            if i == 0 and engine in self.points:
                members = _resume_members(members, self.points[engine])
            elif job.job_id in self.windows:
                members["flags"] &= ~int(JobFlag.PROLOGUE)
            result.append((job, members))
        return result


def _resume_members(members: dict[str, int], point: CancelPoint) -> dict[str, int]:
    dropped = JobFlag.PROLOGUE | JobFlag.WAIT0 | JobFlag.WAIT1
    flags = members["flags"] & ~int(dropped) | JobFlag.RESUME
    counts = {f"sem{i}": 0 for i in range(32)} | {f"sem{number}": count for number, count in point.semaphores}
    return members | counts | {"flags": int(flags), "body_pc": point.pc + 1, "window_after": 0}


def _reload_instruction(model: LoadedModel, code: bytes, pc: int) -> Insn:
    insn = Insn.decode(code[pc * INSN_BYTES : (pc + 1) * INSN_BYTES])
    if insn.op not in (Op.LD2, Op.LD1, Op.LD0):
        raise NotSuspendable(
            model, f"image {model.name!r}: the reload list names {insn.op.name} at PC {pc}; compile the model again"
        )
    return insn
