"""Divides what is scheduled, the layers of a step, into groups. A layer with many jobs goes in groups, so that one
group loads into the model's ring of weight windows while another computes."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hw.image import Image, LayerInfo, StepInfo
from sw.driver.models.job_order import predecessors
from sw.runtime.policies.contract import LayerCost
from sw.runtime.reference import Durations, stored

Expected = Callable[[LayerInfo], Durations]


@dataclass(frozen=True)
class JobGroup:
    """Holds jobs of one layer that are queued together.

    ``cost``: by the durations that are expected of the layer. ``holder``: the group of the same step that must end
    before this one's weights have a place in LV2. ``after``: of a placed image, the groups of the step that must end
    before this one begins; None: the group before it.
    """

    layer: int
    jobs: tuple[int, ...]
    cost: LayerCost
    holder: int | None
    after: tuple[int, ...] | None = None


def job_groups(image: Image, step: StepInfo, expected: Expected = stored) -> list[JobGroup]:
    """Return all groups of a step, in order. ``expected`` gives the durations of a layer, by default those in the
    image."""
    layers: dict[int, list[int]] = {}
    for index in range(step.first, step.first + step.count):
        layers.setdefault(image.meta.jobs[index].layer, []).append(index)
    if image.meta.parts:
        return _placed_groups(image, layers, expected)
    before = predecessors(image)
    depth = _ring_depth(image, before)
    groups: list[JobGroup] = []
    number: dict[int, int] = {}  #: of the group, by job
    for layer, jobs in layers.items():
        for piece in _split(image, jobs, depth):
            held = [number[job] for index in piece if (job := before[index]) in number and job is not None]
            number |= dict.fromkeys(piece, len(groups))
            cost = _cost(image, expected(image.meta.layers[layer]), jobs, piece)
            groups.append(JobGroup(layer, tuple(piece), cost, max(held, default=None)))
    return groups


def first_job(image: Image, steps: Iterable[StepInfo], known: Container[int]) -> int | None:
    """Return the first job of ``steps``, as they are scheduled, that is not ``known``; None if all are."""
    jobs = (job for step in steps for group in job_groups(image, step) for job in group.jobs)
    return next((job for job in jobs if job not in known), None)


def whole_step(step: StepInfo) -> JobGroup:
    """Return all jobs of a step as one group, of which nobody asks for the cost."""
    return JobGroup(-1, tuple(range(step.first, step.first + step.count)), LayerCost(0.0, 0.0), None)


def _placed_groups(image: Image, layers: Mapping[int, Sequence[int]], expected: Expected) -> list[JobGroup]:
    """Return the layers of a step of a placed image, each whole: its jobs go to one engine, which has windows of its
    own."""
    number = {job: i for i, jobs in enumerate(layers.values()) for job in jobs}
    return [
        JobGroup(
            layer,
            tuple(jobs),
            _cost(image, expected(image.meta.layers[layer]), jobs, jobs),
            None,
            tuple(sorted({number[earlier] for earlier in image.meta.jobs[jobs[0]].after if earlier in number})),
        )
        for layer, jobs in layers.items()
    ]


def reference_duration(image: Image, step: StepInfo, expected: Expected = stored) -> float:
    """Return the cycles that a step takes when the model runs alone: memory access or compute, whichever is longer."""
    costs = [group.cost for group in job_groups(image, step, expected)] if step.kind == "jobs" else []
    return max(sum(cost.load for cost in costs), sum(cost.compute for cost in costs))


def _ring_depth(image: Image, before: Sequence[int | None]) -> int:
    """Return how many jobs of an engine have windows at a time, or the number of all jobs if they have windows of their
    own."""
    place: dict[int, int] = {}
    queues: dict[int, int] = {}
    for index, job in enumerate(image.meta.jobs):
        place[index] = queues.get(job.engine, 0)
        queues[job.engine] = place[index] + 1
    distances = [place[index] - place[job] for index, job in enumerate(before) if job is not None]
    return min(distances, default=len(before))


def _split(image: Image, jobs: Sequence[int], depth: int) -> list[list[int]]:
    """Return groups of at most half as many jobs on each engine as have windows at a time."""
    engines: dict[int, list[int]] = {}
    for index in jobs:
        engines.setdefault(image.meta.jobs[index].engine, []).append(index)
    most = max(len(mine) for mine in engines.values())
    count = min(most, -(-most // max(1, depth // 2)))
    cut = [
        {e: mine[len(mine) * i // count : len(mine) * (i + 1) // count] for e, mine in engines.items()}
        for i in range(count)
    ]
    return [[index for mine in piece.values() for index in mine] for piece in cut]


def _cost(image: Image, took: Durations, jobs: Sequence[int], piece: Sequence[int]) -> LayerCost:
    """Return the piece's share of what the layer ``took``: of its load by bytes, of its compute and what it streams by
    jobs."""
    size, whole = _windows(image, piece), _windows(image, jobs)
    load = took.load * size / whole if whole else 0.0
    compute = took.compute * len(piece) / len(jobs)
    depth = max(_count(image, piece).values())
    streamed = took.stream * len(piece) / len(jobs)
    overlap = (depth - 1) / depth * min(load, compute) + streamed
    return LayerCost(load + streamed, compute, size, overlap, depth, streamed)


def _count(image: Image, jobs: Sequence[int]) -> Mapping[int, int]:
    """Return how many jobs each engine has."""
    result: dict[int, int] = {}
    for index in jobs:
        engine = image.meta.jobs[index].engine
        result[engine] = result.get(engine, 0) + 1
    return result


def _windows(image: Image, jobs: Sequence[int]) -> int:
    return sum(image.meta.jobs[index].window[1] for index in jobs)
