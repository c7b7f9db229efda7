"""Foresees where an engine will halt if it is paused now, and what would have to leave the chip then (of
**Cancellation points**)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from hw.contract.spaces import Space
from hw.image import LiveRange
from sw.driver import LoadedModel
from sw.driver.queues.engine_queue import EngineQueue

_PRIVATE = (Space.LV1, Space.LV0_ACC)


@dataclass(frozen=True)
class NextStop:
    """Is where ``engine`` is expected to halt in ``cycles``, with ``live`` bytes of a model on chip."""

    engine: int
    cycles: float
    live: Sequence[LiveRange]

    def dirty(self, *spaces: Space) -> int:
        """Return the bytes in ``spaces`` that are nowhere else."""
        return sum(r.size for r in self.live if r.dirty and r.space in spaces)


def next_stop(queue: EngineQueue, models: Collection[LoadedModel]) -> NextStop | None:
    """Return where the engine of ``queue`` halts next, by what the image of its oldest job estimates; None unless that
    is a job of ``models``. Behind the last point of a body that is the next body, which may be another's."""
    jobs = [job for job in queue.unfinished if job.of_image]
    if not jobs or jobs[0].model not in models:
        return None
    job, elapsed = jobs[0], queue.age
    image, at = job.model.image.meta, 0.0
    first = 0 if job.point is None else job.point.point + 1
    for point in (point for point in image.cancel_points[first:] if point.job == job.index):
        at += point.estimated_interval
        if at >= elapsed:
            return NextStop(queue.number, at - elapsed, point.live)
    following = [image.jobs[later.index].live for later in jobs[1:2] if later.model is job.model]
    return NextStop(queue.number, 0.0, [r for live in following for r in live if r.space == Space.LV2])


def usual_stop(queue: EngineQueue, models: Collection[LoadedModel]) -> NextStop | None:
    """Return where the engine of ``queue`` may halt if it is paused later, nobody knows where: in half of a mean
    interval, where most has to leave; None unless its oldest job is one of ``models``, or that has no points."""
    job = next((job for job in queue.unfinished if job.of_image), None)
    if job is None or job.model not in models:
        return None
    points = [NextStop(queue.number, p.estimated_interval, p.live) for p in job.model.image.meta.cancel_points]
    if not points:
        return None
    worst = max(points, key=lambda stop: stop.dirty(Space.LV2, *_PRIVATE))
    return replace(worst, cycles=sum(stop.cycles for stop in points) / len(points) / 2)


def displaced(stops: Collection[NextStop], incoming: LoadedModel, room: int) -> int:
    """Return the bytes that ``incoming`` would displace of what is on chip at ``stops``: in memories of its engines,
    and in ``room`` bytes of LV2, as far as its windows and what is there do not fit side by side."""
    there, windows = sum(stop.dirty(Space.LV2) for stop in stops), sum(end - at for at, end in incoming.windows())
    private = sum(stop.dirty(*_PRIVATE) for stop in stops if stop.engine in incoming.engines)
    return private + min(there, max(0, windows + there - room))
