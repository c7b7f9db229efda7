"""Defines a suspended task, everything needed to continue it, as a record in host memory, and tells from the live
ranges of its image what it has on chip (of **Cancellation points**).

What lies on chip for it stays there until something else needs the place: *dirty ranges* lie on chip, in
DRAM, or both; *clean* bytes of LV2 and prefetched weight windows only need to be known as lost."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from hw.contract.isa import INSN_BYTES, LV2_SEGMENTS, Insn, Op, Segment
from hw.contract.spaces import Space
from hw.image import CancelPoint, LiveRange
from sw.driver.errors import DriverError, NotSuspendable
from sw.driver.memory.ranges import LV2, Footprint, MemoryId, Range, intersect, normalise, overlap, row_bytes, subtract
from sw.driver.models.loaded_model import LoadedModel
from sw.driver.preempt.halting import HaltRecord
from sw.driver.queues.job import DeviceJob, JobState


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

    ``queues``: by engine, the jobs that are OFF, in ring order. The suspension keeps them while they are queued behind
    a restore, so that it has them again should that fail.
    """

    engines: tuple[int, ...]
    halts: dict[int, HaltRecord]
    queues: dict[int, list[DeviceJob]]
    models: list[LoadedModel]  #: whose jobs are in it
    dirty: list[DirtyRange]
    clean: list[CleanRange]
    windows: dict[DeviceJob, Range]  #: prefetched weights by job, intact in LV2
    sent: int  #: cycle at which the pause was sent
    announced: int = 0  #: cycle at which all stopped jobs were queued again
    areas: list[int] = field(default_factory=list)  #: DRAM blocks that hold copies
    lost_clean: list[Range] = field(default_factory=list)
    stale: set[int] = field(default_factory=set)  #: engines whose LV1 and LV0 were overwritten

    @property
    def points(self) -> dict[int, CancelPoint]:
        """Return the cancellation point of each engine that halted inside a body."""
        return {e: jobs[0].point for e, jobs in self.queues.items() if jobs and jobs[0].point is not None}

    def divide(self, models: Collection[LoadedModel]) -> "Suspension":
        """Return what is suspended of ``models`` as a task of its own, which this one does not have any more. Both may
        continue apart, in any order. Nothing may have left the chip yet."""
        queues = {e: [job for job in jobs if job.model in models] for e, jobs in self.queues.items()}
        part = Suspension(
            *self._standing(models, queues), queues, [model for model in self.models if model in models],
            [r for r in self.dirty if r.model in models], [r for r in self.clean if r.model in models],
            {job: window for job, window in self.windows.items() if job.model in models}, self.sent,
        )  # fmt: skip
        for model in models:
            self._forget(model)
        self.engines, self.halts = self._standing(self.models, self.queues)
        return part

    def _standing(
        self, models: Iterable[LoadedModel], queues: dict[int, list[DeviceJob]]
    ) -> tuple[tuple[int, ...], dict[int, HaltRecord]]:
        """Return the engines that ``models`` need to go on with what is left of them in ``queues``, and where each of
        those that were halted stands for them: before a body if the one that has halted is another's."""
        engines = {e for e, jobs in queues.items() if jobs}.union(*(model.engines for model in models))
        halts = {e: halt for e, halt in self.halts.items() if e in engines}
        others = [e for e, halt in halts.items() if halt.in_job and halt.job_id not in {job.id for job in queues[e]}]
        return tuple(sorted(engines)), halts | {e: replace(halts[e], in_job=False, point=0, pc=0) for e in others}

    def jobs_again(self) -> None:
        """Take its jobs back as OFF: the restore ahead of them has failed."""
        for job in (job for jobs in self.queues.values() for job in jobs):
            job.state = JobState.OFF

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
        self.windows = {job: w for job, w in self.windows.items() if not overlap([w], lv2)}
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

    def reloads(self, engine: int) -> tuple[DeviceJob, list[Insn]] | None:
        """Return the halted job and its reload instructions, if the engine's own memories were overwritten."""
        point = self.points.get(engine)
        if point is None or engine not in self.stale or not point.reload:
            return None
        halted = self.queues[engine][0]
        code = halted.model.code_of(halted.index)
        return halted, [_reload_instruction(halted, code, pc) for pc in point.reload]

    def drop(self, model: LoadedModel) -> None:
        """Give ``model`` up: nothing of it is brought back or queued again."""
        for job in (job for jobs in self.queues.values() for job in jobs):
            if job.model is model and job.state is JobState.OFF:
                job.state = JobState.LOST
        self._forget(model)

    def _forget(self, model: LoadedModel) -> None:
        self.queues = {e: [job for job in jobs if job.model is not model] for e, jobs in self.queues.items()}
        self.windows = {job: window for job, window in self.windows.items() if job.model is not model}
        self.dirty = [r for r in self.dirty if r.model is not model]
        self.clean = [r for r in self.clean if r.model is not model]
        self.models = [other for other in self.models if other is not model]


def _reload_instruction(job: DeviceJob, code: bytes, pc: int) -> Insn:
    model, insn = job.model, Insn.decode(code[pc * INSN_BYTES : (pc + 1) * INSN_BYTES]).resolve(job.work.parameters)
    if insn.op not in (Op.LD2, Op.LD1, Op.LD0):
        raise NotSuspendable(
            model, f"image {model.name!r}: the reload list names {insn.op.name} at PC {pc}; compile the model again"
        )
    return insn


def absolute(model: LoadedModel, live: LiveRange, engine: int) -> tuple[MemoryId, Range]:
    """Return where a live range lies on chip; accumulators count in whole rows. Raises ``NotSuspendable`` if that is
    nowhere."""
    if live.space == Space.LV2:
        if live.segment not in LV2_SEGMENTS:
            raise NotSuspendable(model, f"image {model.name!r} has a live range of LV2 in segment {live.segment}")
        base = model.segments_on(engine)[live.segment][0]
        return LV2, (base + live.offset, base + live.offset + live.size)
    if live.space == Space.LV1:
        return (Space.LV1, engine), (live.offset, live.offset + live.size)
    row = row_bytes(model.image.params)
    return (Space.LV0_ACC, engine), (live.offset // row * row, -(-(live.offset + live.size) // row) * row)


Live = tuple[LoadedModel, int, Sequence[LiveRange]]  #: model, engine, its live ranges


def dirty_ranges(lives: Iterable[Live]) -> list[DirtyRange]:
    """Return the union of each model's dirty ranges, by memory and address; raises ``NotSuspendable`` for dirty LV0, as
    nothing dumps it."""
    by_memory: dict[MemoryId, dict[int, tuple[LoadedModel, list[Range]]]] = {}
    for model, engine, ranges in lives:
        for live in ranges:
            if live.dirty and live.space in (Space.LV0_ACT, Space.LV0_WGT):
                raise NotSuspendable(
                    model, f"image {model.name!r} declares dirty {live.space}, which cannot be dumped: compile again"
                )
            if live.dirty:
                memory, where = absolute(model, live, engine)
                by_memory.setdefault(memory, {}).setdefault(id(model), (model, []))[1].append(where)
    result = []
    for memory in sorted(by_memory):
        found = [DirtyRange(model, memory, *r) for model, own in by_memory[memory].values() for r in normalise(own)]
        result += sorted(found, key=lambda r: r.start)
    return result


def clean_ranges(lives: Iterable[Live], dirty: Iterable[DirtyRange]) -> list[CleanRange]:
    """Return the clean LV2 ranges with their sources, without what is dirty for another engine."""
    written = [(r.start, r.end) for r in dirty if r.memory == LV2]
    seen: list[Range] = []
    result = []
    for model, engine, ranges in lives:
        for live in ranges:
            if live.dirty or live.space != Space.LV2:
                continue
            _, where = absolute(model, live, engine)
            source = model.segments[live.source_segment][0] + live.source_offset
            for start, end in subtract([where], [*written, *seen]):
                result.append(CleanRange(model, start, end, source + start - where[0]))
            seen.append(where)
    return result


def prefetched_windows(jobs: Sequence[DeviceJob], loaded: int) -> dict[DeviceJob, Range]:
    """Return the weight windows that hold what jobs need whose body has not begun, by job: the loader, whose
    RING_LOADED is ``loaded``, had filled them, or they were intact before."""
    windows = {}
    for job in jobs:
        offset, length = job.model.image.meta.jobs[job.index].window
        if job.work.prologue_pc is not None and length and (not job.prologue or job.has_loaded(loaded)):
            base = job.model.segments_on(job.engine)[Segment.WINDOWS][0]
            windows[job] = (base + offset, base + offset + length)
    return windows


def first_live(jobs: Iterable[tuple[LoadedModel, int]], engine: int) -> list[Live]:
    """Return the live ranges of the first job of each model: what lies in LV2 for it before its body starts. It has
    nothing in memories of an engine yet, whatever its image says."""
    first: dict[int, tuple[LoadedModel, int]] = {}
    for model, job in jobs:
        first.setdefault(id(model), (model, job))
    lives = [(model, model.image.meta.jobs[job].live) for model, job in first.values()]
    return [(model, engine, [live for live in ranges if live.space == Space.LV2]) for model, ranges in lives]
