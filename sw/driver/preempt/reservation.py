"""Tells how much DRAM a preemption may need, before it is known where the task will halt."""

from collections.abc import Sequence

from hw.contract.params import SocParams
from hw.contract.spaces import Space
from hw.image import Image, LiveRange
from sw.driver.memory.footprint import LV2, footprint
from sw.driver.memory.ranges import intersect, size
from sw.driver.models.loaded_model import LoadedModel
from sw.driver.preempt.staging import STAGE_BYTES
from sw.driver.preempt.suspended_tasks import SuspendedTasks

_SLACK = 16 * 1024  #: alignment of the copies
_PRIVATE = (Space.LV1, Space.LV0_ACC)


def dump_reserve(params: SocParams, models: Sequence[LoadedModel], tasks: SuspendedTasks, incoming: LoadedModel) -> int:
    """Return how many bytes of DRAM suspending ``models`` and dumping for ``incoming`` takes at most, over all their
    points.

    Wherever ``incoming`` is placed it displaces no more of LV2 than it has, and what suspended ``tasks`` keep on chip
    counts in full.
    """
    wanted = footprint(params, [], incoming.engines)
    window = sum(end - start for start, end in incoming.windows())
    lv2 = sum(_most_dirty(model.image, e, (Space.LV2,)) for model in models for e, _ in model.roles)
    private = sum(
        _most_dirty(m.image, e, _PRIVATE) for m in models for e, engine in m.roles if (Space.LV1, engine) in wanted
    )
    for s in tasks:
        lv2 += size(s.on_chip(LV2))
        for memory, ranges in wanted.items():
            private += size(intersect(s.on_chip(memory), ranges))
    total = min(lv2, window) + private
    return total + (_SLACK + STAGE_BYTES * params.engines if total else 0)


def most_dirty(model: LoadedModel) -> int:
    """Return the most dirty bytes at any point of ``model``, all memories and engines."""
    return sum(_most_dirty(model.image, e, (Space.LV2, *_PRIVATE)) for e, _ in model.roles)


def _most_dirty(image: Image, engine: int, spaces: Sequence[Space]) -> int:
    """Return the most dirty bytes in ``spaces`` at any point of a job of ``engine``, or before one."""
    meta = image.meta
    places = [p.live for p in meta.cancel_points if meta.jobs[p.job].engine == engine]
    places += [job.live for job in meta.jobs if job.engine == engine]
    return max((_dirty(live, spaces) for live in places), default=0)


def _dirty(live: Sequence[LiveRange], spaces: Sequence[Space]) -> int:
    return sum(r.size for r in live if r.dirty and r.space in spaces)
