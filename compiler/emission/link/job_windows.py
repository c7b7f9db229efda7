"""Where in LV2 the weights of each job go, and which job must retire before they may.

Windows lie side by side if all fit, and else wherever LV2 is free (:mod:`compiler.plan.memory.window_space`). Which
places keep loads furthest ahead depends on sizes to come: where the schedule says that loads wait for windows, other
ways to place them are tried.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from compiler.emission.link.job_schedule import scheduled_cycles
from compiler.emission.objects.step_object import JobObject
from compiler.plan.memory.budget import Lv2Budget
from compiler.plan.memory.tensor_placement import TensorPlacement
from compiler.plan.memory.weight_ring import WeightRing
from compiler.plan.memory.window_space import WAYS, HeldBytes, NoRoom, WindowSpace, WindowWay
from hw.contract.isa import Segment
from hw.contract.params import SocParams

_LOST = 0.003  #: share of an inference that loads wait for windows, from which on another way may pay


class JobWindow(NamedTuple):
    """Where a window starts in LV2, and ``window_after``, see :class:`hw.image.image.JobInfo`: in the first inference,
    and where the same jobs run a second time right behind the first."""

    start: int
    after: int
    again: int


def shared_bytes(placement: TensorPlacement, budget: Lv2Budget) -> int:
    """Return the bytes of LV2 that tensors and staging areas take, from the first on; they are whole words."""
    return int(max(placement.sizes[Segment.LV2], budget.staging_end))  # not a number of numpy, as shapes may be


def job_windows(
    jobs: Sequence[JobObject], placement: TensorPlacement, budget: Lv2Budget, params: SocParams
) -> list[JobWindow]:
    """Return the windows of all jobs. In a placed model each engine has its own ring of windows, as any job may run
    beside any; otherwise each job has its window to itself if all fit, and windows lie wherever LV2 is free if not."""
    if budget.placed:
        return _in_rings(jobs, budget)
    if windows_of_their_own(jobs, budget):
        return _side_by_side(jobs, shared_bytes(placement, budget) + budget.windows * budget.engines)
    return _in_space(jobs, placement, budget, params)


def linked_cycles(
    jobs: Sequence[JobObject], placement: TensorPlacement, budget: Lv2Budget, params: SocParams
) -> float:  # fmt: skip
    """Return the cycles of one inference, which has ``jobs``, alone on the device, by their estimates."""
    found = job_windows(jobs, placement, budget, params)
    return scheduled_cycles(jobs, [one.after for one in found], budget.engines, params)


def windows_of_their_own(jobs: Sequence[JobObject], budget: Lv2Budget) -> bool:
    """Return whether there is room for the weights of all jobs beside each other, so that they are still in LV2 when
    the next inference begins."""
    ahead = any(job.ahead for job in jobs)
    room = budget.windows * budget.engines
    return not (budget.placed or ahead) and sum(len(job.window_data) for job in jobs) <= room


def _side_by_side(jobs: Sequence[JobObject], end: int) -> list[JobWindow]:
    """Return the window and ``window_after``, the first and a second time, of jobs that have their window to
    themselves. The largest ends at ``end``: most of those of the same model for another length are as large, and so lie
    where they do. What bodies load comes last."""
    order = sorted(range(len(jobs)), key=lambda i: (jobs[i].own_loads, -len(jobs[i].window_data), i))
    places, counts = dict[int, int](), dict[int, int]()
    for index in order:
        end -= len(jobs[index].window_data)
        places[index] = end
    for job in jobs:
        counts[job.engine] = counts.get(job.engine, 0) + 1
    return [JobWindow(places[index], 0, counts[job.engine]) for index, job in enumerate(jobs)]


def _in_rings(jobs: Sequence[JobObject], budget: Lv2Budget) -> list[JobWindow]:
    """Return the window and ``window_after``, the first and a second time, of jobs that any engine may run."""
    ring = WeightRing(budget.windows)
    claimed = [ring.claim(len(job.window_data)) for job in jobs]
    return [JobWindow(window, after, ring.again(number)) for number, (window, after) in enumerate(claimed)]


def _in_space(
    jobs: Sequence[JobObject], placement: TensorPlacement, budget: Lv2Budget, params: SocParams
) -> list[JobWindow]:
    """Likewise of jobs that know their engine, in the way in which the inference ends first."""
    held = [*_held(jobs, placement, budget)]

    def cycles(found: list[JobWindow]) -> float:
        return scheduled_cycles(jobs, [one.after for one in found], budget.engines, params)

    usual = _claimed(jobs, held, placement, budget, params, WAYS[0])
    assert usual is not None
    free = scheduled_cycles(jobs, [0] * len(jobs), budget.engines, params)
    best, least = usual, cycles(usual)
    if least > (1 + _LOST) * free:
        for way in WAYS[1:]:
            found = _claimed(jobs, held, placement, budget, params, way)
            if found and (takes := cycles(found)) < least:
                best, least = found, takes
    return best


def _claimed(
    jobs: Sequence[JobObject], held: Sequence[HeldBytes], placement: TensorPlacement, budget: Lv2Budget,
    params: SocParams, way: WindowWay,
) -> list[JobWindow] | None:  # fmt: skip
    """Return the windows in one way; None if a window finds no room. Engines claim in turns, so that none gets all
    places of a layer."""
    engines = [(job.engine, job.step) for job in jobs]
    space = WindowSpace(engines, held, shared_bytes(placement, budget), budget.windows, params.job_slots, way)
    turns: list[tuple[int, int, int, int]] = []  # layer, number of the job on its engine, engine, index
    counts = [0] * budget.engines
    for index, (engine, layer) in enumerate(engines):
        turns.append((layer, counts[engine], engine, index))
        counts[engine] += 1
    try:
        claimed = {index: space.claim(e, len(jobs[index].window_data)) for _, _, e, index in sorted(turns)}
    except NoRoom:
        return None
    numbers = {index: number for _, number, _, index in turns}
    return [JobWindow(*claimed[i], space.again(engine, numbers[i])) for i, (engine, _) in enumerate(engines)]


def _held(jobs: Sequence[JobObject], placement: TensorPlacement, budget: Lv2Budget) -> Iterator[HeldBytes]:
    """Yield what layers need of LV2 beside weight windows: buffers of tensors, and staging areas if something
    passes."""
    engines: dict[int, set[int]] = {}  # by layer: those that have jobs of it
    staged: set[tuple[int, int]] = set()  # layer and engine
    for job in jobs:
        engines.setdefault(job.step, set()).add(job.engine)
        if job.staged:
            staged.add((job.step, job.engine))
    worked = sorted(engines)
    for buffer in {id(buffer): buffer for buffer in placement.by_tensor.values()}.values():
        if buffer.segment == Segment.LV2 and buffer.size:
            before = bisect_right(worked, max(buffer.users))  # layers without jobs touch nothing
            if before:
                last, low = worked[before - 1], buffer.offset
                yield HeldBytes(low, low + buffer.size, min(buffer.users), last, engines[last])
    for layer, engine in sorted(staged):
        area = budget.staging(engine)
        yield HeldBytes(area.base, area.base + area.size, layer, layer, {engine})
