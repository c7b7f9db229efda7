"""The cancellation points in the bodies of jobs: where they stand, what is live there, and what brings it back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt

from compiler.emission.preempt.live_bytes import LiveBytes
from compiler.emission.preempt.lv2_contents import LayerLv2
from compiler.emission.preempt.points import CancelCut, PointLimits, Timeline, choose
from compiler.emission.preempt.ring_contents import JobRings, RingContents, StagedRanges
from compiler.emission.program import JobProgram
from compiler.emission.program.extents import Extent, Extents
from compiler.emission.program.schedule import TaskSchedule
from compiler.plan.memory.tensor_placement import TensorPlacement
from compiler.plan.plan import JobPlan
from compiler.plan.plan_error import PlanError
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from sim.cost import Counts


@dataclass(frozen=True)
class BodyPoint:
    """A cancellation point ahead of task number ``cut``: what is live there, the numbers of the tasks that run again on
    resumption, and the semaphores that are not zero. ``interval``: see :class:`CancelCut`."""

    cut: int
    interval: int
    live: list[LiveBytes]
    reload: list[int]
    semaphores: list[tuple[int, int]]


def job_points(
    placement: TensorPlacement, layer: int, jobs: list[tuple[JobProgram, TaskSchedule]], params: SocParams,
    engines: int, limits: PointLimits | None, plans: Sequence[JobPlan] | None = None,
) -> list[tuple[list[BodyPoint], list[LiveBytes]]]:  # fmt: skip
    """Return for each job of layer number ``layer`` its cancellation points, none without ``limits``, and what is live
    in LV2 before it starts, its weight window left out. ``plans`` says where the points are, if that is given; raises
    :class:`PlanError` where what is held could not be brought back."""
    extents = Extents(params)
    memory = LayerLv2(placement, layer, [(job, order.tasks) for job, order in jobs], extents, engines)
    found = []
    for number, (job, order) in enumerate(jobs):
        held: list[tuple[CancelCut, RingContents]] = []
        if plans is not None:
            held = _given(JobRings(job, order.tasks, extents), order, plans[number].cuts, params)
        elif limits and order.cycles > limits.spacing:  # a shorter job needs none: the hardware halts before the next
            cuts = range(len(order.tasks) + 1)
            tensors = np.array([memory.tensor_bytes(number, cut) if limits.max_live else 0 for cut in cuts])
            held = _cuts(JobRings(job, order.tasks, extents), order, tensors, params, limits)
        position = {task: at for at, task in enumerate(order.tasks)}
        points, counts, staged = [], Counts(order.tasks), StagedRanges()
        for point, contents in held:
            live = _ranges(contents, staged) + memory.at(number, point.cut, contents.reload)
            reload = [position[task] for task in contents.reload]
            semaphores = sorted((int(sem), count) for sem, count in counts.at(point.cut).items() if count)
            points.append(BodyPoint(point.cut, point.interval, live, reload, semaphores))
        found.append((points, memory.before(number)))
    return found


def _cuts(
    rings: JobRings, order: TaskSchedule, tensors: npt.NDArray[np.int64], params: SocParams, limits: PointLimits
) -> list[tuple[CancelCut, RingContents]]:
    """Return the points of a job, chosen anew without those positions at which what is held could not be brought
    back."""
    timeline, dirty, spills = Timeline(order, params), rings.dirty_bytes(), rings.spills_held()
    dram_bytes = ceil(params.dram_bytes_per_cycle)
    barred = np.zeros(len(dirty), np.bool_)
    while True:
        points = choose(timeline, order.tasks, dirty, tensors, spills, limits, barred, dram_bytes)
        held = [(point, rings.at(point.cut)) for point in points]
        impossible = [point.cut for point, contents in held if contents is None and not barred[point.cut]]
        if not impossible:
            return [(point, contents) for point, contents in held if contents is not None]
        barred[impossible] = True


def _given(
    rings: JobRings, order: TaskSchedule, cuts: Sequence[int], params: SocParams
) -> list[tuple[CancelCut, RingContents]]:
    """Return the points at ``cuts``."""
    timeline, held, last = Timeline(order, params), list[tuple[CancelCut, RingContents]](), 0
    for cut in cuts:
        contents = rings.at(cut)
        if contents is None:
            raise PlanError("what is held at a cancellation point could not be brought back")
        held.append((CancelCut(cut, int(timeline.halted[cut] - timeline.passed[last])), contents))
        last = cut
    return held


def _ranges(contents: RingContents, staged: StagedRanges) -> list[LiveBytes]:
    """Return the live ranges of the buffers of rings."""
    ranges = [_range(extent, True) for extent in _joined(contents.dirty)]
    ranges += [_range(extent, False) for extent in _joined(contents.clean)]
    for loads in contents.staged:
        ranges += staged.of(loads)
    return ranges


def _range(extent: Extent, dirty: bool) -> LiveBytes:
    assert extent.space != Space.DRAM
    return LiveBytes(extent.space, extent.segment, extent.low, extent.high - extent.low, dirty)


def _joined(extents: Iterable[Extent]) -> list[Extent]:
    """Return the same bytes in extents that neither meet nor touch, in order of memory and address."""
    result: list[Extent] = []
    for extent in sorted(extents):
        last = result[-1] if result else None
        if last and (last.space, last.segment) == (extent.space, extent.segment) and extent.low <= last.high:
            result[-1] = last.joined(extent)
        else:
            result.append(extent)
    return result
