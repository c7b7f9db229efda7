"""Queues jobs of loaded models by index, and collects their results."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hw.contract.image import CancelPoint
from hw.contract.job import JobFlag
from sw.driver.errors import DeviceFault, DeviceTimeout, DriverError, FaultRecord
from sw.driver.memory.ranges import Range
from sw.driver.memory.resident_weights import ResidentWeights
from sw.driver.memory.weight_windows import distance
from sw.driver.models.job_table import JobResult, JobTable
from sw.driver.models.loaded_model import LoadedModel
from sw.driver.queues.engine_queue import EngineQueue
from sw.driver.queues.job_queues import JobQueues
from sw.driver.scrub import Scrubber

#: Register accesses until the first job of an inference is announced, at most: its doorbell, and reads of events.
SUBMIT_ACCESSES = 4
DESCRIPTOR_WAITS = 2  #: events that a job descriptor can wait for


class ModelJobs:
    """Holds the jobs of all models of one device: it pushes them to ``queues``, and owns them there."""

    def __init__(self, queues: JobQueues, scrubber: Scrubber) -> None:
        self._queues, self.scrubber = queues, scrubber
        self.table = JobTable()
        self.resident = ResidentWeights()

    def begin(self, model: LoadedModel, limit: int | None) -> None:
        """Start an inference as ``Device.begin`` does."""
        self._queues.wait(lambda: not self.table.conflicts(model), limit)
        self.enter(model)
        model.begin()

    def enter(self, model: LoadedModel, kept: Sequence[Range] = ()) -> None:
        """Prepare the part of LV2 that ``model`` is about to use. What another tenant left there is cleared, but for
        ``kept``, which is what a suspended task left; what is known to lie there is no longer, but for its own
        weights."""
        self.resident.overwritten(self.scrubber.foreign(model, kept))
        self.scrubber.clear_windows(model, kept)
        weights = dict(filter(None, map(model.kept_weights, range(len(model.image.meta.jobs)))))
        self.resident.enter(model.windows(), model.tenant, weights)

    def submit(
        self,
        model: LoadedModel,
        jobs: Sequence[int],
        *,
        limit: int | None,
        cycle_limit: int | None,
        engine: int | None,
    ) -> list[int]:
        """Queue jobs as ``Device.submit`` does."""
        numbers = {index: model.engine_of(index) if engine is None else engine for index in jobs}
        if model.placed:
            _check_engines(model, numbers.values())
        last = {numbers[index]: index for index in jobs}
        ids = []
        for index in jobs:
            number = numbers[index]
            _check_whole(model, index, number)
            queue = self._queues.engines[number]
            if not self._may_push(queue, model, index):
                if limit == 0:
                    break
                self._make_room(queue, model, index, limit)
            if self.scrubber.must_clear(number, model):
                self.scrubber.clear_engine(number, model)
            period = max(1, queue.capacity // 2)
            interrupt = index == last[number] or queue.pushed % period == period - 1
            job_id = self._queues.new_id()
            self.table.enter(job_id, model, index, number)
            most = model.cycle_limits[index] if cycle_limit is None else cycle_limit
            members = model.descriptor(index, job_id, number, interrupt=interrupt, cycle_limit=most)
            if model.placed:
                model.put(index, number, self._edge_waits(model, index, number), members)
            elif engine is not None:
                model.follow(members, engine)
            if self._resident(model, index):
                members["flags"] &= ~int(JobFlag.PROLOGUE)
            self._queues.push(number, members | {"window_after": self._window_after(queue, model, index)}, self)
            if queue.outstanding.bit_count() == 1 or queue.behind_barrier:
                # An idle engine starts at once, and its loader goes on with 2, 4, 8 jobs while others are written.
                queue.ring_doorbell()
            ids.append(job_id)
        self._queues.ring_doorbells()
        return ids

    def requeue(
        self, model: LoadedModel, job: int, engine: int, descriptor: dict[str, int], point: CancelPoint | None
    ) -> None:
        """Queue a job again that was taken off, under its own id. With a ``point`` it continues behind that, and finds
        the engine as it was."""
        queue = self._queues.engines[engine]
        if point is None and self.scrubber.must_clear(engine, model):
            self._queues.wait(lambda: queue.free > 1, None)
            self.scrubber.clear_engine(engine, model)
        members = descriptor | {"window_after": self._window_after(queue, model, job)}
        self._queues.requeue(engine, members, self)
        self.table.enter(descriptor["job_id"], model, job, engine, point)

    def collect(self, ids: Sequence[int], limit: int | None) -> list[JobResult]:
        """Return results as ``Device.collect`` does."""
        self._queues.wait(lambda: all(job_id in self.table.finished for job_id in ids), limit)
        return [self.table.finished.pop(job_id) for job_id in ids]

    def _resident(self, model: LoadedModel, job: int) -> bool:
        """Return whether the weights of ``job`` are in LV2."""
        kept = model.kept_weights(job)
        return kept is not None and self.resident.holds(kept[0], model.tenant, kept[1])

    def _window_after(self, queue: EngineQueue, model: LoadedModel, job: int) -> int:
        """Return the distance from the next place in ``queue`` to the job there that holds the weight window of
        ``job``."""
        holder = self.table.window_holder(model, job, queue.number)
        return 0 if holder is None else distance(queue.unfinished, queue.place, holder[0])

    def _may_push(self, queue: EngineQueue, model: LoadedModel, job: int) -> bool:
        """Return whether a job may be pushed: there is room, no job on another engine holds the window, as a prologue
        can only wait for its own ring, and a descriptor has a wait for each engine that is still at work for the
        job."""
        holder = self.table.window_holder(model, job, queue.number)
        needed = 1 + self.scrubber.must_clear(queue.number, model)
        if queue.free < needed or (holder is not None and holder[1].engine != queue.number):
            return False
        return not model.placed or len(self._edge_waits(model, job, queue.number)) <= DESCRIPTOR_WAITS

    def _edge_waits(self, model: LoadedModel, job: int, engine: int) -> list[tuple[int, int]]:
        """Return the events for which ``job`` of a placed model has to wait; what has ended is looked at where those
        are many."""
        waits = model.edge_waits(job, engine, lambda earlier: False)
        if len(waits) <= DESCRIPTOR_WAITS:
            return waits
        queued = self.table.queued(model)
        return model.edge_waits(job, engine, lambda earlier: earlier not in queued)

    def _make_room(self, queue: EngineQueue, model: LoadedModel, job: int, limit: int | None) -> None:
        self._queues.ring_doorbells()  # all of them: the full engine may wait for an event from another
        self._queues.wait(lambda: self._may_push(queue, model, job), limit)

    # -- as owner of the jobs (``JobOwner``) -----------------------------------------------------------------
    def completed(self, engine: int, completion: dict[str, int]) -> None:
        """Enter the result of a job, which can be collected now."""
        known = self.table.outstanding[completion["job_id"]]
        kept = known.model.kept_weights(known.job)
        if kept is not None and known.point is None:
            self.resident.put(kept[0], known.model.tenant, kept[1])
        self.table.finish(engine, completion)

    def fault_of(self, record: FaultRecord) -> DeviceFault:
        """Return the fault, which names job, layer and instruction."""
        known = self.table.outstanding[record.job_id]
        instruction = known.model.disassemble(record.pc)
        return DeviceFault(replace(record, job=known.model.describe_job(known.job), instruction=instruction))

    def overdue(self, engine: int, job_id: int, message: str) -> DeviceTimeout:
        """Return the error for an overdue job, which names the model."""
        return DeviceTimeout(message, self.table.outstanding[job_id].model)

    def lost(self, engine: int, job_ids: Sequence[int]) -> None:
        """Forget jobs that were lost. There will be no results, and what their prologues wrote is not known."""
        for model in {
            id(entry.model): entry.model for entry in map(self.table.outstanding.get, job_ids) if entry
        }.values():
            self.resident.overwritten(model.windows())
        self.table.remove(job_ids)

    def describe(self, job_id: int) -> str:
        """Return the job as text: index, model and layer."""
        known = self.table.outstanding[job_id]
        return known.model.describe_job(known.job)


def _check_engines(model: LoadedModel, engines: Iterable[int]) -> None:
    """Raise :class:`DriverError` for an engine on which a placed model cannot run."""
    for engine in engines:
        if engine not in model.engines:
            raise DriverError(
                f"model {model.name!r} runs on engines {list(model.engines)}, not on {engine}: assign others first"
            )


def _check_whole(model: LoadedModel, job: int, engine: int) -> None:
    """Raise :class:`DriverError` if ``job``, next on ``engine``, would tear the layer of a placed model."""
    if model.torn(job, engine):
        raise DriverError(
            f"{model.describe_job(job)} on engine {engine}: jobs of a layer follow each other on one engine, and "
            f"engine {model.engine_of(job)} has the first"
        )
