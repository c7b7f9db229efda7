"""Cancellation points of a model's jobs: where they stand, what is live there, and what brings it again."""

from collections.abc import Iterable
from math import ceil

import numpy as np

from compiler.backend.memory.tensor_placement import TensorPlacement
from compiler.backend.preempt.extents import Extent
from compiler.backend.preempt.lv2_contents import LayerLv2
from compiler.backend.preempt.points import CancelCut, PointLimits, Timeline, choose
from compiler.backend.preempt.ring_contents import JobRings, RingContents, copies
from compiler.backend.program.job import JobProgram
from compiler.backend.program.schedule import TaskSchedule
from compiler.backend.program.task import Task
from compiler.ir import CompileError
from hw.contract.image import CancelPoint, LiveRange
from hw.contract.isa import Insn, Op
from hw.contract.params import SocParams
from hw.contract.spaces import Space

_MOST = 1 << 16  #: numbers of points in a CANCEL instruction


class JobBody:
    """The program of a job: its tasks with CANCEL instructions between them, and the table of these.

    Make one for every job of a layer (with the same ``memory``) before any of them is placed.
    """

    def __init__(
        self,
        job: JobProgram,
        schedule: TaskSchedule,
        memory: LayerLv2,
        number: int,
        params: SocParams,
        wanted: PointLimits | None,
    ) -> None:
        """``number``: of the job in its layer; ``wanted``: None for a job without points."""
        self._tasks, self._memory, self._number = schedule.tasks, memory, number
        self._held: list[tuple[CancelCut, RingContents]] = []
        # A short job needs none: the hardware halts before the next.
        if wanted and schedule.cycles > wanted.spacing:
            self._held = _placed(JobRings(job, schedule.tasks, params), schedule, params, wanted)

    @property
    def starting(self) -> list[LiveRange]:
        """Live ranges of LV2 before the job starts."""
        return self._memory.before(self._number)

    def code(self, first: int) -> list[Insn]:
        """The program; ``first``: number of its first point in the image. Call once the job is placed."""
        if first + len(self._held) > _MOST:
            raise CompileError(f"the model has more than {_MOST} cancellation points: choose a longer cancel_interval")
        program, done = list[Insn](), 0
        for number, (point, _) in enumerate(self._held, first):
            program += [task.insn() for task in self._tasks[done : point.cut]]
            program.append(Insn(Op.CANCEL, {"point": number} if number else {}))
            done = point.cut
        return program + [task.insn() for task in self._tasks[done:]]

    def points(self, first: int, job: int, body_pc: int) -> list[CancelPoint]:
        """The table; ``job``: number of the job in the image, ``body_pc``: where :meth:`code` went."""
        pcs = self._pcs(body_pc)
        table = []
        for ahead, (point, held) in enumerate(self._held):
            live = _ranges(held) + self._memory.at(self._number, point.cut, held.reload)
            table.append(
                CancelPoint(
                    point=first + ahead,
                    job=job,
                    pc=body_pc + point.cut + ahead,
                    estimated_interval=point.interval,
                    live=live,
                    reload=[pcs[task] for task in held.reload],
                    semaphores=self._semaphores(point.cut),
                )
            )
        return table

    def _pcs(self, body_pc: int) -> dict[Task, int]:
        cuts = {point.cut for point, _ in self._held}
        pcs, pc = {}, body_pc
        for number, task in enumerate(self._tasks):
            pc += number in cuts
            pcs[task] = pc
            pc += 1
        return pcs

    def _semaphores(self, cut: int) -> list[tuple[int, int]]:
        counts: dict[int, int] = {}
        for task in self._tasks[:cut]:
            for sem in task.signals:
                counts[sem] = counts.get(sem, 0) + 1
            for sem in task.waits:
                counts[sem] = counts.get(sem, 0) - 1
        return sorted((int(sem), count) for sem, count in counts.items() if count)


def _placed(
    buffers: JobRings, schedule: TaskSchedule, params: SocParams, wanted: PointLimits
) -> list[tuple[CancelCut, RingContents]]:
    """Points of a job, chosen anew without those positions at which what is held could not be brought back."""
    timeline, dirty, spills = Timeline(schedule, params), buffers.dirty_bytes(), buffers.spills_held()
    barred = np.zeros(len(dirty), np.bool_)
    while True:
        points = choose(timeline, schedule.tasks, dirty, spills, wanted, barred, ceil(params.dram_bytes_per_cycle))
        held = [(point, buffers.at(point.cut)) for point in points]
        fresh = [point.cut for point, state in held if state is None and not barred[point.cut]]
        if not fresh:
            return [(point, state) for point, state in held if state is not None]
        barred[fresh] = True


def bodies(
    homes: TensorPlacement,
    layer: int,
    jobs: list[tuple[JobProgram, TaskSchedule]],
    params: SocParams,
    engines: int,
    wanted: PointLimits | None,
) -> list[JobBody]:
    """The programs of a layer's jobs, which must not be placed yet."""
    memory = LayerLv2(homes, layer, [(job, schedule.tasks) for job, schedule in jobs], params, engines)
    return [JobBody(job, schedule, memory, i, params, wanted) for i, (job, schedule) in enumerate(jobs)]


def _ranges(held: RingContents) -> list[LiveRange]:
    """Live ranges of a ring's buffers."""
    ranges = [_range(extent, True) for extent in _joined(held.dirty)]
    ranges += [_range(extent, False) for extent in _joined(held.clean)]
    return ranges + [copy for load in held.staged for copy in copies(load)]


def _range(extent: Extent, dirty: bool) -> LiveRange:
    assert extent.space != Space.DRAM
    return LiveRange(extent.space, extent.segment, extent.low, extent.high - extent.low, dirty)


def _joined(extents: Iterable[Extent]) -> list[Extent]:
    """The same bytes in extents that neither meet nor touch, in order of memory and address."""
    result: list[Extent] = []
    for extent in sorted(extents, key=lambda e: (e.space, e.segment, e.low)):
        last = result[-1] if result else None
        if last and (last.space, last.segment) == (extent.space, extent.segment) and extent.low <= last.high:
            result[-1] = last.joined(extent)
        else:
            result.append(extent)
    return result
