"""Orders the prologues and bodies of an image's jobs when one body runs at a time."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hw.image.image import Image, StepInfo


@dataclass(frozen=True)
class Turn:
    """Says what runs next: the prologue or the body of ``job`` (index into the job table)."""

    job: int
    body: bool


def turns(image: Image, step: StepInfo, order: Sequence[int] | None = None) -> Iterator[Turn]:
    """Yield all turns of a step of jobs, bodies in ``order`` (the table's by default).

    The prologue of a job runs as early as its ``window_after`` and the prologues before it in its ring allow, ahead of
    earlier bodies: weights that overwrite what an earlier job still needs show as wrong results.
    """
    jobs, rings = image.meta.jobs, _rings(image, step)
    loaded = dict.fromkeys(rings, 0)
    retired: set[int] = set()
    for number in step_jobs(step) if order is None else order:
        for engine, ring in rings.items():
            while loaded[engine] < len(ring) and _may_load(image, ring, loaded[engine], number, retired):
                if jobs[ring[loaded[engine]]].prologue_pc is not None:
                    yield Turn(ring[loaded[engine]], body=False)
                loaded[engine] += 1
        yield Turn(number, body=True)
        retired.add(number)


def lagging(image: Image, step: StepInfo, engine: int) -> list[int]:
    """Return the order in which the bodies of ``engine`` run as late as events allow: all others are ahead of it as far
    as they can be. Raises ValueError if jobs wait for each other in a circle."""
    jobs, rings = image.meta.jobs, _rings(image, step)
    signals = Counter(job.signal for job in jobs[: step.first])
    engines = sorted(rings, key=lambda number: number == engine)
    order: list[int] = []
    while any(rings.values()):
        ready = (e for e in engines if rings[e] and may_start(image, rings[e][0], signals))
        chosen = next(ready, None)
        if chosen is None:
            raise ValueError(f"jobs {[ring[0] for ring in rings.values() if ring]} wait for events nobody signals")
        order.append(rings[chosen].pop(0))
        signals[jobs[order[-1]].signal] += 1
    return order


def may_start(image: Image, job: int, signals: Counter[int | None]) -> bool:
    """Return whether the events that ``job`` waits for have been signalled often enough."""
    return all(signals[event] >= count for event, count in image.meta.jobs[job].waits)


def step_jobs(step: StepInfo) -> range:
    """Return the indices of the jobs of a step."""
    return range(step.first, step.first + step.count)


def _rings(image: Image, step: StepInfo) -> dict[int, list[int]]:
    rings: dict[int, list[int]] = {}
    for number in step_jobs(step):
        rings.setdefault(image.meta.jobs[number].engine, []).append(number)
    return rings


def _may_load(image: Image, ring: list[int], place: int, running: int, retired: set[int]) -> bool:
    """Return whether the prologue at ``place`` of a ring may run just before the body of job ``running``."""
    after = image.meta.jobs[ring[place]].window_after
    return ring[place] == running or after == 0 or after > place or ring[place - after] in retired
