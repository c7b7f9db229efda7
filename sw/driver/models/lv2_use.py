"""Measures how full LV2 is, and with whose data.

The hardware's high-water marks cannot tell: they never fall, and of a ring of buffers they see the end alone. The
driver knows what is reserved; what of it holds data follows from the live ranges of images and from how far the loaders
are.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from hw.contract.isa import Segment
from hw.contract.spaces import Space
from sw.driver.memory.ranges import Range, normalise, size
from sw.driver.models.loaded_model import LoadedModel
from sw.driver.queues.job import DeviceJob


@dataclass(frozen=True)
class ModelLv2:
    """Describes the part of LV2 that one loaded model has, in bytes. ``reserved`` counts places of tensors, staging
    areas and weight windows; ``held`` counts those of them with data that its queued jobs will read, as of the
    beginning of the oldest body on each engine."""

    model: LoadedModel
    reserved: int
    held: int


@dataclass(frozen=True)
class Lv2Use:
    """Describes LV2 in bytes: all of it, what is reserved and what holds data (bytes that models share count once), and
    the same by model."""

    total: int
    reserved: int
    held: int
    models: list[ModelLv2]

    @property
    def free(self) -> int:
        """Return how many bytes no model has reserved."""
        return self.total - self.reserved


def lv2_use(
    total: int, models: Sequence[LoadedModel], queued: Sequence[DeviceJob], waiting: Collection[DeviceJob]
) -> Lv2Use:
    """Return the use of LV2. ``queued`` is outstanding jobs, oldest first; ``waiting`` is those whose prologue has not
    run."""
    held = {id(model): _held(model, queued, waiting) for model in models}
    parts = [ModelLv2(model, size(model.windows()), size(held[id(model)])) for model in models]
    reserved = normalise(window for model in models for window in model.windows())
    return Lv2Use(total, size(reserved), size(r for ranges in held.values() for r in ranges), parts)


def _held(model: LoadedModel, queued: Sequence[DeviceJob], waiting: Collection[DeviceJob]) -> list[Range]:
    ranges: list[Range] = []
    begun: set[int] = set()  # engines whose oldest job has been seen
    for job in queued:
        if job.model is not model:
            continue
        info = model.image.meta.jobs[job.index]
        if job.engine not in begun:
            begun.add(job.engine)
            live = job.point.live if job.point else info.live
            parts = ((r.segment, r.offset, r.size) for r in live if r.space == Space.LV2)
            ranges += _absolute(model, job.engine, parts)
        if job not in waiting:
            ranges += _absolute(model, job.engine, [(Segment.WINDOWS, *info.window)])
    return normalise(ranges)


def _absolute(model: LoadedModel, engine: int, ranges: Iterable[tuple[int, int, int]]) -> list[Range]:
    """Return the ranges given by segment, offset and size as addresses in LV2."""
    bases = [base for base, _ in model.segments_on(engine)]
    return [(bases[segment] + offset, bases[segment] + offset + length) for segment, offset, length in ranges]
