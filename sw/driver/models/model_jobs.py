"""Queues jobs of loaded models by index, and collects their results."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from operator import attrgetter

from sw.driver.errors import DeviceFault, DeviceTimeout, DriverError, FaultRecord
from sw.driver.memory.allocator import WindowPool
from sw.driver.memory.ranges import Range
from sw.driver.models.loaded_model import LoadedModel
from sw.driver.queues.engine_queue import EngineQueue
from sw.driver.queues.job import DeviceJob, JobResult, JobState
from sw.driver.queues.job_queues import JobQueues
from sw.driver.scrub import Scrubber

#: Register accesses until the first job of an inference is announced, at most: its doorbell, and reads of events.
SUBMIT_ACCESSES = 4
DESCRIPTOR_WAITS = 2  #: events that a job descriptor can wait for


class ModelJobs:
    """Queues the jobs of all models of one device, as their party."""

    def __init__(self, queues: JobQueues, scrubber: Scrubber, lv2: WindowPool) -> None:
        self._queues, self.scrubber, self.lv2 = queues, scrubber, lv2
        self._begun: list[LoadedModel] = []  #: in flight when one of them began last

    # -- what is outstanding ---------------------------------------------------------------------------------
    @property
    def outstanding(self) -> list[DeviceJob]:
        """Return the jobs of models in the queues, oldest first."""
        found = [job for queue in self._queues.engines for job in queue.jobs if job.party is self]
        return sorted(found, key=attrgetter("id"))

    def models(self, engines: Container[int] | None = None) -> list[LoadedModel]:
        """Return the models with outstanding jobs, on ``engines`` or on any."""
        found = [job.model for job in self.outstanding if engines is None or job.engine in engines]
        return list({id(model): model for model in found}.values())

    def engines_of(self, model: LoadedModel) -> list[int]:
        """Return the engines with outstanding jobs of ``model``."""
        return sorted({job.engine for job in self.outstanding if job.model is model})

    # -- queueing --------------------------------------------------------------------------------------------

    def wait_for_windows(self, model: LoadedModel, limit: int | None) -> None:
        """Wait until no job is queued that is of ``model`` or uses the same bytes of LV2."""
        self._queues.wait(lambda: not any(m is model or m.overlaps(model) for m in self.models()), limit)

    def begin(self, model: LoadedModel, parameters: tuple[int, ...]) -> None:
        """Start an inference of ``model``, whose LV2 bytes nobody uses and whose jobs have these ``parameters``."""
        self.enter(model)
        model.begin(parameters)
        self._begun = [*self.in_flight(), model]

    def in_flight(self) -> list[LoadedModel]:
        """Return the models with an inference that has begun and not ended, suspended ones included."""
        return [model for model in self._begun if model.in_flight]

    def enter(self, model: LoadedModel, kept: Sequence[Range] = ()) -> None:
        """Prepare the part of LV2 that ``model`` is about to use. What another tenant left there is cleared, but for
        ``kept``, which is what a suspended task left; what is known to lie there is no longer, but for its own
        weights."""
        self.lv2.overwritten(self.scrubber.foreign(model, kept))
        self.scrubber.clear_windows(model, kept)
        weights = dict(filter(None, map(model.kept_weights, range(len(model.image.meta.jobs)))))
        self.lv2.use(model.windows(), model.tenant, weights)

    def submit(
        self,
        model: LoadedModel,
        jobs: Sequence[int],
        *,
        limit: int | None,
        cycle_limit: int | None,
        engine: int | None,
    ) -> list[DeviceJob]:
        """Queue jobs as ``Device.submit`` does."""
        numbers = {index: model.engine_of(index) if engine is None else engine for index in jobs}
        if model.placed:
            _check_engines(model, numbers.values())
        last = {numbers[index]: index for index in jobs}
        queued = []
        for index in jobs:
            number = numbers[index]
            _check_whole(model, index, number)
            queue = self._queues.engines[number]
            if not self._may_push(queue, model, index):
                if limit == 0:
                    break
                self._make_room(queue, model, index, limit)
            cleared = self.scrubber.must_clear(number, model)
            if cleared:
                self.scrubber.clear_engine(number, model)
            period = max(1, queue.capacity // 2)
            if model.placed:
                events = model.put(index, number, self._edge_waits(model, index, number))
            else:
                events = model.image_events(index) if engine is None else model.follow(number)
            most = model.cycle_limits[index] if cycle_limit is None else cycle_limit
            job = DeviceJob(
                self._queues.new_id(), number, model.work(index, number, events, most), self, (model,), index,
                interrupt=index == last[number] or queue.pushed % period == period - 1,
                prologue=not self._resident(model, index),
            )  # fmt: skip
            queue.add(job, window_after=self._window_after(queue, model, index), hold=cleared and not queue.free)
            if queue.outstanding.bit_count() == 1 or queue.behind_barrier:
                # An idle engine starts at once, and its loader goes on with 2, 4, 8 jobs while others are written.
                queue.ring_doorbell()
            queued.append(job)
        self._queues.ring_doorbells()
        return queued

    def requeue(self, job: DeviceJob, *, prologue: bool) -> None:
        """Queue a job again that is OFF. Its ``prologue`` runs unless it goes on behind a point, where it finds the
        engine as it was."""
        queue, model = self._queues.engines[job.engine], job.model
        if job.point is None and self.scrubber.must_clear(job.engine, model):
            self._queues.wait(lambda: self._has_room(queue, model), None)
            self.scrubber.clear_engine(job.engine, model)
        job.prologue = prologue
        queue.add(job, window_after=self._window_after(queue, model, job.index), hold=True)

    def collect(self, jobs: Sequence[DeviceJob], limit: int | None) -> list[JobResult]:
        """Return the results of submitted jobs, waiting up to ``limit`` cycles for the last of them, or (None) as long
        as jobs may take.

        Raises :class:`DeviceFault` as soon as any engine stops on a fault, :class:`DeviceTimeout` at the limit, and for
        a job that keeps its engine longer than it may.
        """
        self._queues.wait(lambda: all(job.state is JobState.DONE for job in jobs), limit)
        return [job.result for job in jobs if job.result is not None]

    def _resident(self, model: LoadedModel, job: int) -> bool:
        """Return whether the weights of ``job`` are in LV2."""
        kept = model.kept_weights(job)
        return kept is not None and self.lv2.has_weights(kept[0], model.tenant, kept[1])

    def _window_holder(self, model: LoadedModel, index: int, engine: int) -> DeviceJob | None:
        """Return the latest outstanding job that uses the weight window of job ``index``, which comes to ``engine``, or
        None. Engines of a placed model have windows of their own."""
        mine = [job for job in self.outstanding if job.model is model]
        if model.placed:
            beside = [job for job in reversed(mine) if job.engine == engine and job.index != index]
            return next((job for job in beside if _share_window(model, job.index, index)), None)
        before = model.predecessors[index]
        return None if before is None else next((job for job in mine if job.index == before), None)

    def _window_after(self, queue: EngineQueue, model: LoadedModel, index: int) -> int:
        """Return the distance from the next place in ``queue`` to the job there that holds the weight window of job
        ``index``."""
        holder = self._window_holder(model, index, queue.number)
        return queue.place - holder.place if holder in queue.unfinished else 0

    def _may_push(self, queue: EngineQueue, model: LoadedModel, index: int) -> bool:
        """Return whether a job may be pushed: there is room, no job on another engine holds the window, as a prologue
        can only wait for its own ring, and a descriptor has a wait for each engine that is still at work for the
        job."""
        holder = self._window_holder(model, index, queue.number)
        if not self._has_room(queue, model) or (holder is not None and holder.engine != queue.number):
            return False
        return not model.placed or len(self._edge_waits(model, index, queue.number)) <= DESCRIPTOR_WAITS

    def _has_room(self, queue: EngineQueue, model: LoadedModel) -> bool:
        """Return whether a job has room, and one that clears the engine ahead of it, behind which a ring of one place
        holds the job back."""
        return queue.free >= min(1 + self.scrubber.must_clear(queue.number, model), queue.capacity)

    def _edge_waits(self, model: LoadedModel, index: int, engine: int) -> list[tuple[int, int]]:
        """Return the events for which job ``index`` of a placed model has to wait; what has ended is looked at where
        those are many."""
        waits = model.edge_waits(index, engine, lambda earlier: False)
        if len(waits) <= DESCRIPTOR_WAITS:
            return waits
        queued = {job.index for job in self.outstanding if job.model is model}
        return model.edge_waits(index, engine, lambda earlier: earlier not in queued)

    def _make_room(self, queue: EngineQueue, model: LoadedModel, job: int, limit: int | None) -> None:
        self._queues.ring_doorbells()  # all of them: the full engine may wait for an event from another
        self._queues.wait(lambda: self._may_push(queue, model, job), limit)

    # -- as party of the jobs (``Party``) --------------------------------------------------------------------
    def ended(self, job: DeviceJob, completion: dict[str, int]) -> None:
        """Keep the job's result, which can be collected from now on."""
        kept = job.model.kept_weights(job.index)
        if kept is not None and job.point is None:
            self.lv2.put(kept[0], job.model.tenant, kept[1])
        job.retire(completion)
        job.model.job_ended()

    def fault_of(self, job: DeviceJob, record: FaultRecord) -> DeviceFault:
        """Return the fault, which names job, layer and instruction."""
        return DeviceFault(
            replace(record, job=str(job), instruction=job.model.disassemble(job.index, record.pc, job.work.parameters))
        )

    def overdue(self, job: DeviceJob, message: str) -> DeviceTimeout:
        """Return the error for an overdue job, which names the model."""
        return DeviceTimeout(message, job.model)

    def lost(self, engine: int, jobs: Sequence[DeviceJob]) -> None:
        """Forget jobs that were lost. There will be no results, and what their prologues wrote is not known."""
        for model in {id(job.model): job.model for job in jobs}.values():
            self.lv2.overwritten(model.windows())

    def describe(self, job: DeviceJob) -> str:
        """Return the job as text: index, model and layer."""
        return str(job)


def _share_window(model: LoadedModel, a: int, b: int) -> bool:
    """Return whether two jobs use common bytes of their engine's ring of weight windows."""
    (first, size), (second, length) = (model.image.meta.jobs[job].window for job in (a, b))
    return first < second + length and second < first + size


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
