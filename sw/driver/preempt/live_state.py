"""Tells what a task that is being suspended has on chip, from the live ranges of its image (of **Cancellation
points**)."""

from collections.abc import Iterable, Sequence

from hw.contract.isa import LV2_SEGMENTS, Segment
from hw.contract.spaces import Space
from hw.image import LiveRange
from sw.driver.errors import NotSuspendable
from sw.driver.memory.footprint import LV2, MemoryId, row_bytes
from sw.driver.memory.ranges import Range, normalise, subtract
from sw.driver.models.loaded_model import LoadedModel
from sw.driver.models.model_job import ModelJob
from sw.driver.preempt.suspension import CleanRange, DirtyRange


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


def prefetched_windows(jobs: Sequence[ModelJob], loaded: int) -> dict[ModelJob, Range]:
    """Return the weight windows that hold what jobs need whose body has not begun, by job: the loader, whose
    RING_LOADED is ``loaded``, had filled them, or they were intact before."""
    windows = {}
    for job in jobs:
        offset, length = job.model.image.meta.jobs[job.index].window
        if job.work.prologue_pc is not None and length and (not job.prologue or job.has_loaded(loaded)):
            base = job.work.segments[Segment.WINDOWS][0]
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
