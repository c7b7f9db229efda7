"""Takes a running task off its engines and continues it later: the driver's side of **Cancellation points**.

Suspended tasks are records in host memory (:class:`~sw.driver.preempt.suspension.Suspension`), so they nest to any
depth. Bytes leave the chip only when something is about to overwrite them, and the DRAM they go to is set aside before
an engine is paused.
"""

import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence

from hw.image import CancelPoint
from sw.driver.errors import DeviceFault, DeviceTimeout, DriverError, OutOfMemory
from sw.driver.memory.allocator import Allocator
from sw.driver.memory.placement import choose_windows, fits
from sw.driver.memory.ranges import LV2, Range, footprint, normalise
from sw.driver.models.loaded_model import LoadedModel
from sw.driver.models.model_jobs import ModelJobs
from sw.driver.preempt.halting import Halting, HaltRecord
from sw.driver.preempt.staging import split
from sw.driver.preempt.state_transfer import StateTransfer
from sw.driver.preempt.supervisor import Supervisor
from sw.driver.preempt.suspended_tasks import SuspendedTasks, dump_reserve
from sw.driver.preempt.suspension import Live, Suspension, clean_ranges, dirty_ranges, first_live, prefetched_windows
from sw.driver.preempt.transfers import Transfers
from sw.driver.queues.events import EventPool
from sw.driver.queues.job import DeviceJob
from sw.driver.queues.job_queues import JobQueues

UpcomingJobs = Sequence[tuple[LoadedModel, int]]  #: jobs that will be queued later: model, index in its table


class Preemption:
    """Does pause, dump, restore and resume on one device. ``tasks`` are those that are suspended."""

    def __init__(self, queues: JobQueues, jobs: ModelJobs, dram: Allocator, events: EventPool) -> None:
        self._queues, self._jobs, self._params = queues, jobs, queues.params
        self.supervisor = Supervisor(queues, dram, events)
        self.tasks = SuspendedTasks(dram, queues.bus)
        self.halting = Halting(queues)
        self.transfers = Transfers(queues, jobs, self.supervisor, self.tasks)

    # -- pause -----------------------------------------------------------------------------------------------
    def pause(self, engines: Iterable[int], limit: int | None = None, *, verify: bool = False) -> dict[int, HaltRecord]:
        """Halt engines once no dump or restore is under way, as :meth:`Halting.pause` does."""
        self.transfers.settle()
        return self.halting.pause(engines, limit, verify=verify)

    # -- suspend ---------------------------------------------------------------------------------------------
    def suspend(
        self,
        engines: Iterable[int],
        incoming: LoadedModel | None = None,
        upcoming: UpcomingJobs = (),
        limit: int | None = None,
        *,
        verify: bool = False,
    ) -> Suspension:
        """Pause ``engines`` and take everything queued there off them; the engines are empty afterwards.

        Nothing leaves the chip yet: :meth:`admit` does that for the model that comes in. ``incoming``: DRAM for the
        worst case of that is set aside first (:class:`OutOfMemory`, and nothing was paused). ``upcoming``: jobs of the
        suspended tasks that are not queued yet; what they find in LV2 is kept, too. Other engines run on; a model with
        jobs on both sides is refused with :class:`DriverError`, as half of it could not be dumped. A task that stands
        where its image makes no sense is :class:`NotSuspendable`; it goes on.
        """
        engines = tuple(sorted(engines))
        self._refuse_halves(engines)
        self._reserve(engines, incoming)
        self.transfers.settle()
        sent = self._queues.bus.cycle
        halts = self.halting.pause(engines, limit, verify=verify)
        try:
            suspended = self._take_off(engines, halts, upcoming, sent)
        except Exception:  # whatever an image makes go wrong, the engines must not stay halted
            self.halting.go_on(engines)
            raise
        self.tasks.add(suspended)
        return suspended

    def _refuse_halves(self, engines: tuple[int, ...]) -> None:
        for model in self._jobs.models(engines):
            outside = [e for e in self._jobs.engines_of(model) if e not in engines]
            if outside:
                raise DriverError(
                    f"model {model.name!r} also has jobs on engines {outside}: suspend all of its engines together"
                )

    def _reserve(self, engines: tuple[int, ...], incoming: LoadedModel | None) -> None:
        """Raise :class:`OutOfMemory` unless DRAM could hold what ``incoming`` may displace."""
        if incoming is None:
            return
        need = dump_reserve(self._params, self._jobs.models(engines), self.tasks, incoming)
        if not need:
            return
        try:
            self.tasks.check_room(need)
        except OutOfMemory as error:
            raise OutOfMemory(f"{error}; nothing was paused") from None

    def _take_off(
        self, engines: tuple[int, ...], halts: dict[int, HaltRecord], upcoming: UpcomingJobs, sent: int
    ) -> Suspension:
        """Empty engines that have halted, and return the record of what was on them."""
        jobs = {e: [job for job in self._queues.engines[e].unfinished if job.of_image] for e in engines}
        points = {e: point for e in engines if jobs[e] and (point := _standing(halts[e], jobs[e][0])) is not None}
        lives, windows = list[Live](), dict[DeviceJob, Range]()
        for e, queue in jobs.items():
            if e in points:
                lives.append((queue[0].model, e, points[e].live))
            waiting = queue[1:] if e in points else queue
            windows |= prefetched_windows(waiting, halts[e].loaded)
            lives += first_live([(job.model, job.index) for job in waiting], e)
        # What a queued job finds in LV2 includes what those behind it will.
        ahead = {(id(job.model), job.model.engine_of(job.index)) for queue in jobs.values() for job in queue}
        later = [(m, job) for m, job in upcoming if (id(m), m.engine_of(job)) not in ahead]
        for e in sorted({model.engine_of(job) for model, job in later}):
            lives += first_live([(m, job) for m, job in later if m.engine_of(job) == e], e)
        dirty = split(dirty_ranges(lives))
        clean = clean_ranges(lives, dirty)
        for e in engines:
            there = jobs[e][0].model if e in points else None
            self._jobs.scrubber.taken_off(e, self._queues.engines[e].take_off(), there)
        for e, point in points.items():
            jobs[e][0].point = point
        models = {id(model): model for model, _ in upcoming}
        models |= {id(job.model): job.model for queue in jobs.values() for job in queue}
        return Suspension(engines, halts, jobs, list(models.values()), dirty, clean, windows, sent)

    def divide(self, suspended: Suspension, models: Collection[LoadedModel]) -> Suspension:
        """Make ``models`` a suspended task of their own, out of one of which nothing has left the chip yet. One that
        has nothing left then ends."""
        part = suspended.divide(models)
        self.tasks.add(part)
        if not suspended.models:
            self.tasks.discard(suspended)
        return part

    def holds(self, model: LoadedModel) -> bool:
        """Return whether ``model`` is suspended. A restore whose last completion nobody has taken yet is waited for."""
        if self.tasks.hold(model):
            self.transfers.settle()
        return self.tasks.hold(model)

    # -- making room -----------------------------------------------------------------------------------------
    def has_place(self, model: LoadedModel, beside: Collection[LoadedModel]) -> bool:
        """Return whether LV2 has a place for ``model`` where it takes no byte of those ``beside`` it."""
        if not any(model.overlaps(other) for other in beside):
            return True
        (_, first), (_, second) = model.lv2_parts()
        taken = tuple(normalise(window for other in beside for window in other.windows()))
        return model.movable and fits((first, second), self._params.lv2_bytes, self._params.lv1_word, taken)

    def place(self, model: LoadedModel, beside: Iterable[LoadedModel] = ()) -> None:
        """Choose LV2 windows for ``model`` where they displace least of the suspended tasks, and nothing of those
        ``beside`` which it is to stay."""
        now = model.lv2_parts()
        if not model.movable or not any(length for _, length in now):
            return
        sizes, current = (now[0][1], now[1][1]), (now[0][0], now[1][0])
        params = self._params
        model.move_windows(
            *choose_windows(
                sizes, params.lv2_bytes, params.lv1_word,
                taken=[*self.transfers.running(), *(window for other in beside for window in other.windows())],
                dirty=self.tasks.dirty(LV2), clean=self.tasks.clean(), prefetched=self.tasks.prefetched(),
                current=current,
            )
        )  # fmt: skip

    def admit(
        self, model: LoadedModel, engines: Sequence[int] | None = None, beside: Iterable[LoadedModel] = ()
    ) -> StateTransfer | None:
        """Place ``model`` and queue the dump of what it displaces; its jobs may be submitted at once, behind that.

        ``engines``: those it may run on, by default those that stand for the image's. ``beside``: suspended models of
        which it is to displace nothing in LV2.
        None if nothing had to be dumped. A failing dump raises ``SupervisorFault`` in whatever waits next, which may be
        this, where its programs do not fit at once.
        """
        if self.holds(model):
            raise DriverError(f"model {model.name!r} is suspended: resume it, or load it a second time")
        self.place(model, beside)
        engines = model.engines if engines is None else engines
        with self._whole():
            return self.transfers.make_room(footprint(self._params, model.windows(), engines), engines)

    @contextlib.contextmanager
    def _whole(self) -> Iterator[None]:
        """Let what queues a dump or restore do so whole, or leave nothing of it queued. What an error of the device
        interrupts is an exception: it was announced, and ends, or is dropped when the caller recovers."""
        try:
            yield
        except (DeviceFault, DeviceTimeout):  # of the device: the caller recovers
            raise
        except Exception:
            if self.supervisor.jobs:
                self.recover()
            raise

    # -- resume ----------------------------------------------------------------------------------------------
    def resume(self, suspended: Suspension) -> StateTransfer | None:
        """Bring everything back and queue the task's jobs again, under their own ids. This waits for no more than a
        dump ahead of that, and for room where the programs do not fit at once.

        Its engines must be idle. None if nothing had to be brought back.
        """
        if suspended not in self.tasks:
            raise DriverError("this suspension has ended: it was resumed or abandoned")
        self.transfers.settle()
        engines = suspended.engines
        busy = [e for e in engines if self._queues.engines[e].outstanding]
        if busy:
            raise DriverError(f"engines {busy} are in use: suspend what runs there before resuming this task")
        wanted = footprint(self._params, [w for m in suspended.models for w in m.windows()], engines)
        with self._whole():
            self.transfers.make_room(wanted, engines, keep=suspended)
            self.transfers.settle()
            self._clear_for(suspended)
            operation = self.transfers.restore(suspended)
        # All stopped jobs first, so that the engines continue together while the host writes the others.
        for first in (True, False):
            for e in engines:
                self._requeue(suspended, e, first)
            if first:
                suspended.announced = self._queues.bus.cycle
        if operation is None:
            self.tasks.discard(suspended)
        return operation

    def _clear_for(self, suspended: Suspension) -> None:
        """Clear engines on which another tenant ran meanwhile, and what others left in the task's LV2 windows, before
        what it had there comes back."""
        kept = [*self.tasks.dirty(LV2), *self.tasks.clean(), *self.tasks.prefetched()]
        for model in suspended.models:
            self._jobs.enter(model, kept)
        for e in suspended.points:
            model = suspended.queues[e][0].model
            if e in suspended.stale and self._jobs.scrubber.must_clear(e, model):
                self._jobs.scrubber.clear_idle(e, model)

    def _requeue(self, suspended: Suspension, engine: int, first: bool) -> None:
        """Queue the first job of a task on ``engine`` again, or all that follow. Jobs that clear memories are queued
        where they are needed."""
        jobs = suspended.queues.get(engine, [])
        for job in jobs[:1] if first else jobs[1:]:
            self._jobs.requeue(job, prologue=job not in suspended.windows)
        self._queues.engines[engine].ring_doorbell()

    # -- failure and abandonment -----------------------------------------------------------------------------
    def recover(self) -> list[int]:
        """Reset, after a ``SupervisorFault``, the engines that hold supervisor jobs, and those that a job that clears
        memories has stopped; return them. Every suspended task is as it was, but for copies that were completed; jobs
        queued behind the failed ones are lost, as after ``Device.abort``."""
        engines = sorted({*self.supervisor.engines(), *self._jobs.scrubber.faulted})
        # What ends before the reset has to be accounted for, and nothing may begin between the last look and the reset.
        self.halting.rest(engines)
        for e in engines:
            with contextlib.suppress(DeviceFault):  # the one that brought us here
                self._queues.take_completions(e)
        for e in engines:
            self._queues.reset(e)
        for suspended in self.tasks:
            suspended.jobs_again()
        return engines

    def settle_or_recover(self) -> None:
        """Let a dump or restore that is under way end, or recover from its failure."""
        try:
            self.transfers.settle()
        except (DeviceFault, DeviceTimeout):  # of jobs that are about to be dropped
            self.recover()

    def abandon(self, suspended: Suspension) -> None:
        """Give a suspended task up: its jobs and its copies are gone; it can run again from the start."""
        for model in list(suspended.models):
            self.drop(suspended, model)
        self.tasks.discard(suspended)

    def drop(self, suspended: Suspension, model: LoadedModel) -> None:
        """Give one model of a suspended task up; the others stay suspended. It can run again from the start."""
        self.settle_or_recover()
        suspended.drop(model)
        model.synchronise()


def _standing(halt: HaltRecord, oldest: DeviceJob) -> CancelPoint | None:
    """Return the point behind which the oldest job continues: where it halted, or where it was resumed if it has not
    begun since. It is None if the job starts from its beginning."""
    return oldest.model.image.meta.cancel_points[halt.point] if halt.in_job else oldest.point
