"""Taking a running task off its engines and continuing it later: the driver's side of **Cancellation points**.

Suspended tasks are records (:class:`~sw.driver.suspension.Suspension`) in host memory, so they nest to any depth. Bytes
leave the chip only when something is about to overwrite them, and the DRAM they go to is set aside before an engine is
paused.
"""

import contextlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hw.contract.image import CancelPoint
from hw.contract.isa import LV2_SEGMENTS
from sw.driver import reserve, suspension
from sw.driver.errors import DeviceFault, DeviceTimeout, DriverError, OutOfMemory
from sw.driver.footprint import LV2, choose_windows, engines_of, footprint
from sw.driver.halting import LIMIT, Halting
from sw.driver.loaded import LoadedModel
from sw.driver.ranges import Range
from sw.driver.staging import split
from sw.driver.supervisor import Operation, Supervisor
from sw.driver.suspension import HaltRecord, QueuedJob, Suspension
from sw.driver.transfers import COPY_ALIGN, TRANSFERRED, Transfers

if TYPE_CHECKING:
    from sw.driver.device import Device

Upcoming = Sequence[tuple[LoadedModel, int]]  #: jobs that will be queued later: model, index in its table


class Preemption:
    """Pause, dump, restore and resume on one device. ``suspensions``: suspended tasks, oldest first."""

    def __init__(self, device: "Device", supervisor: Supervisor) -> None:
        self._device = device
        self.supervisor = supervisor
        self.suspensions: list[Suspension] = []
        self.halting = Halting(device)
        self.transfers = Transfers(device, supervisor, self.suspensions)

    # -- pause -----------------------------------------------------------------------------------------------
    def pause(self, engines: Iterable[int], limit: int = LIMIT, *, verify: bool = False) -> dict[int, HaltRecord]:
        """Halt engines once no dump or restore is under way; see :meth:`Halting.pause`."""
        self.transfers.settle(limit)
        return self.halting.pause(engines, limit, verify=verify)

    # -- suspend ---------------------------------------------------------------------------------------------
    def suspend(
        self,
        engines: Iterable[int],
        incoming: LoadedModel | None = None,
        upcoming: Upcoming = (),
        limit: int = LIMIT,
        *,
        verify: bool = False,
    ) -> Suspension:
        """Pause ``engines`` and take everything queued there off them; the engines are empty afterwards.

        Nothing leaves the chip yet: :meth:`admit` does that for the model that comes in. ``incoming``: DRAM for the
        worst case of that is set aside first (:class:`OutOfMemory`, and nothing was paused). ``upcoming``: jobs of the
        suspended tasks that are not queued yet; what they find in LV2 is kept, too.
        """
        engines = tuple(sorted(engines))
        self._reserve(engines, incoming)
        self.transfers.settle(limit)
        sent = self._device.bus.cycle
        halts = self.halting.pause(engines, limit, verify=verify)
        suspended = self._take_off(engines, halts, upcoming)
        suspended.sent = sent
        self.suspensions.append(suspended)
        return suspended

    def _reserve(self, engines: tuple[int, ...], incoming: LoadedModel | None) -> None:
        """Raise :class:`OutOfMemory` unless DRAM could hold what ``incoming`` may displace."""
        if incoming is None:
            return
        models = {id(e.model): e.model for e in self._device.books.outstanding.values() if e.engine in engines}
        need = reserve.worst_case(self._device.params, list(models.values()), self.suspensions, incoming)
        if not need:
            return
        try:
            self._device.dram.free(self._device.dram.allocate(need, COPY_ALIGN, "the dump of a preempted task"))
        except OutOfMemory as error:
            raise OutOfMemory(f"{error}; nothing was paused") from None

    def _take_off(self, engines: tuple[int, ...], halts: dict[int, HaltRecord], upcoming: Upcoming) -> Suspension:
        queues: dict[int, list[QueuedJob]] = {}
        points = dict[int, CancelPoint]()
        lives, windows = list[suspension.Live](), dict[int, Range]()
        known = self._device.books.outstanding
        for e in engines:
            queue = queues[e] = []
            for place, members in self._device.engines[e].unfinished:
                entry = known[members["job_id"]]
                queue.append(QueuedJob.of(members["job_id"], entry.model, entry.job, members, place))
            point = _standing(halts[e], queue, known[queue[0].job_id].point) if queue else None
            if point is not None:
                points[e] = point
                lives.append((queue[0].model, e, point.live))
            waiting = queue[1:] if point is not None else queue
            windows |= suspension.prefetched(waiting, halts[e].loaded)
            lives += _first_lives([(job.model, job.job) for job in waiting], e)
        # What a queued job finds in LV2 includes what those behind it will.
        ahead = {(id(q.model), q.model.image.meta.jobs[q.job].engine) for queue in queues.values() for q in queue}
        later = [(m, job) for m, job in upcoming if (id(m), m.image.meta.jobs[job].engine) not in ahead]
        for e in sorted({model.image.meta.jobs[job].engine for model, job in later}):
            lives += _first_lives([(m, job) for m, job in later if m.image.meta.jobs[job].engine == e], e)
        pieces = split(suspension.dirty_pieces(lives))
        clean = suspension.clean_ranges(lives, pieces)
        for e in engines:
            if self._device.engines[e].outstanding:
                self._device.engines[e].empty()
            for job in queues[e]:
                self._device.books.withdraw(job.job_id)
        models = {id(model): model for model, _ in upcoming}
        models |= {id(job.model): job.model for queue in queues.values() for job in queue}
        return Suspension(engines, halts, queues, list(models.values()), points, pieces, clean, windows)

    def holds(self, model: LoadedModel) -> bool:
        """Whether ``model`` is suspended. A restore whose last completion nobody has taken yet is waited for."""
        if any(model in s.models for s in self.suspensions):
            self.transfers.settle()
        return any(model in s.models for s in self.suspensions)

    # -- making room -----------------------------------------------------------------------------------------
    def place(self, model: LoadedModel) -> None:
        """Choose LV2 windows for ``model`` where they displace least of the suspended tasks."""
        now = [model.segments[i] for i in LV2_SEGMENTS]
        if not model.movable or not any(length for _, length in now):
            return
        dirty = [r for s in self.suspensions for r in s.on_chip(LV2)]
        clean = [r for s in self.suspensions for r in s.kept_clean()]
        ahead = [w for s in self.suspensions for w in s.windows.values()]
        sizes, current = (now[0][1], now[1][1]), (now[0][0], now[1][0])
        params = self._device.params
        model.move_windows(
            *choose_windows(
                sizes, params.lv2_bytes, params.lv1_word, taken=self.transfers.running(), dirty=dirty, clean=clean,
                prefetched=ahead, current=current,
            )
        )  # fmt: skip

    def admit(self, model: LoadedModel, engines: Sequence[int] | None = None) -> Operation | None:
        """Place ``model`` and queue the dump of what it displaces; its jobs may be submitted at once, behind that.

        ``engines``: those it may run on, by default those it was compiled for.
        None if nothing had to be dumped. A failing dump raises ``SupervisorFault`` in whatever waits next.
        """
        if self.holds(model):
            raise DriverError(f"model {model.name!r} is suspended: resume it, or load it a second time")
        self.place(model)
        engines = engines_of(model.image) if engines is None else engines
        return self.transfers.make_room(footprint(self._device.params, model.windows(), engines), engines)

    # -- resume ----------------------------------------------------------------------------------------------
    def resume(self, suspended: Suspension) -> Operation | None:
        """Bring everything back and queue the task's jobs again, under their own ids; does not wait.

        Its engines must be idle. None if nothing had to be brought back.
        """
        if suspended not in self.suspensions:
            raise DriverError("this suspension has ended: it was resumed or abandoned")
        self.transfers.settle()
        engines = suspended.engines
        busy = [e for e in engines if self._device.engines[e].outstanding]
        if busy:
            raise DriverError(f"engines {busy} are in use: suspend what runs there before resuming this task")
        wanted = footprint(self._device.params, [w for m in suspended.models for w in m.windows()], engines)
        self.transfers.make_room(wanted, engines, keep=suspended)
        self.transfers.settle()
        operation = self.transfers.restore(suspended)
        # All stopped jobs first, so that the engines continue together while the host writes the others.
        for first in (True, False):
            for e in engines:
                self._requeue(suspended, e, first)
            if first:
                suspended.announced = self._device.bus.cycle
        if operation is None:
            self.transfers.discard(suspended)
        return operation

    def _requeue(self, suspended: Suspension, engine: int, first: bool) -> None:
        """Queue the first job of a task on ``engine`` again, or all that follow."""
        queue, jobs = self._device.engines[engine], suspended.descriptors(engine)
        point = suspended.points.get(engine) if first else None
        for job, members in jobs[:1] if first else jobs[1:]:
            queue.requeue(members | {"window_after": self._device.window_after(queue, job.model, job.job)})
            self._device.books.readmit(job, engine, point)
        queue.ring_doorbell()

    # -- failure and abandonment -----------------------------------------------------------------------------
    def recover(self) -> None:
        """After a ``SupervisorFault``: reset the engines that hold supervisor jobs. Every suspended task is as it was,
        but for copies that were completed; jobs queued behind the failed ones are lost, as after ``Device.abort``."""
        engines = sorted({job.engine for job in self.supervisor.jobs.values()})
        # What ends before the reset has to be on the books, and nothing may begin between the last look and the reset.
        with contextlib.suppress(DeviceTimeout):
            self.halting.rest(engines, TRANSFERRED)
        for e in engines:
            with contextlib.suppress(DeviceFault):  # the one that brought us here
                self._device.take_completions(self._device.engines[e])
        for e in engines:
            self._device.reset_engine(e)

    def abandon(self, suspended: Suspension) -> None:
        """Give a suspended task up: its jobs and its copies are gone; it can run again from the start."""
        self.transfers.settle()
        self.transfers.discard(suspended)
        for model in suspended.models:
            model.synchronise()


def _standing(halt: HaltRecord, queue: Sequence[QueuedJob], before: CancelPoint | None) -> CancelPoint | None:
    """The point behind which the oldest job continues; ``before``: the one it was resumed behind, if it has not begun
    since. None if it starts from its beginning."""
    return queue[0].model.image.meta.cancel_points[halt.point] if halt.in_job else before


def _first_lives(jobs: Iterable[tuple[LoadedModel, int]], engine: int) -> list[suspension.Live]:
    """Live ranges of the first job of each model: what lies in LV2 for it before its body starts."""
    first: dict[int, tuple[LoadedModel, int]] = {}
    for model, job in jobs:
        first.setdefault(id(model), (model, job))
    return [(model, engine, model.image.meta.jobs[job].live) for model, job in first.values()]
