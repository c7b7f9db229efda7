"""The device driver: everything a host does with one SoC, above ``sim.bus.Bus`` alone."""

from collections.abc import Callable, Iterable, Sequence

from hw.contract.image import Image
from hw.contract.job import COMPLETION, COUNTERS, JOB
from sim.bus import Bus
from sw.driver import report
from sw.driver.allocator import Allocator
from sw.driver.books import Books, JobResult
from sw.driver.engine import EngineQueue, fault_record
from sw.driver.errors import DeviceFault, DeviceTimeout, DriverError, FaultRecord, SupervisorFault
from sw.driver.events import EventPool
from sw.driver.footprint import engines_of
from sw.driver.halting import LIMIT
from sw.driver.loaded import LoadedModel
from sw.driver.placement import place, relocate
from sw.driver.preemption import Preemption, Upcoming
from sw.driver.registers import RegisterFile, identify
from sw.driver.supervisor import Operation, Supervisor
from sw.driver.suspension import HaltRecord, Suspension
from sw.driver.transfers import TRANSFERRED
from sw.driver.watch import Watch
from sw.driver.windows import distance

_RING_ALIGN = 256


class Device:
    """One SoC behind a bus. Identifies the hardware, sets all queues up, and owns DRAM, LV2 and events.

    ``ring_log2``: log2 of the entries of each job and completion ring. Raises :class:`DeviceMismatch` if the hardware
    is not the one ``bus.params`` describes.
    """

    def __init__(self, bus: Bus, *, ring_log2: int = 6) -> None:
        self.bus = bus
        self.params = bus.params
        self.regs = RegisterFile(bus)
        identify(self.regs, self.params)
        self.watch = Watch(bus, self.regs)
        self.dram = Allocator("DRAM", 0, self.params.dram_bytes)
        self.lv2 = Allocator("LV2", 0, self.params.lv2_bytes)
        self.events = EventPool(self.regs, self.params.events)
        self.engines = [self._open_engine(e, ring_log2) for e in range(self.params.engines)]
        self._models: list[LoadedModel] = []
        self._loads = 0
        self.books = Books()
        self.preemption = Preemption(self, Supervisor(self))

    def close(self) -> None:
        """Close the bus."""
        self.bus.close()

    # -- set-up ----------------------------------------------------------------------------------------------
    def _open_engine(self, number: int, log2: int) -> EngineQueue:
        ring = self.dram.allocate(JOB.size << log2, _RING_ALIGN, f"job ring of engine {number}")
        completions = self.dram.allocate(COMPLETION.size << log2, _RING_ALIGN, f"completions of engine {number}")
        return EngineQueue(self.bus, self.regs, number, ring=ring, completions=completions, log2=log2)

    # -- models ----------------------------------------------------------------------------------------------
    def load(self, image: Image) -> LoadedModel:
        """Validate ``image``, give it memory, LV2 windows and events, and write code and weights.

        Raises ``hw.contract.image.ImageError`` for an image that is damaged or built for other parameters,
        :class:`OutOfMemory` or :class:`DriverError` when something does not fit. The device stays as it was then.
        """
        image.validate(f"image {image.meta.model!r}")
        image.check_params(self.params)
        placement = place(image, self.dram, self.lv2)
        try:
            code = relocate(image, placement.segments)
            events = self.events.lease(image.meta.events, image.meta.model)
        except (DriverError, ValueError):
            placement.release(self.dram, self.lv2)
            raise
        model = LoadedModel(self.bus, image, placement, events, self._loads)
        self._loads += 1
        for (base, _), data in zip(model.segments, (code, image.weights), strict=False):
            if data:
                self.bus.write_mem(base, data, charge=False)
        self._models.append(model)
        return model

    def unload(self, model: LoadedModel) -> None:
        """Give back all that ``model`` uses; :class:`DriverError` while its jobs are outstanding."""
        if model not in self._models:
            raise DriverError(f"model {model.name!r} is not loaded on this device")
        if self.preemption.holds(model) or self.books.engines_of(model):
            raise DriverError(f"model {model.name!r} has jobs outstanding: wait for them or abort them first")
        self._models.remove(model)
        self.events.release(model.events)
        if model.chain is not None:
            self.events.release(model.chain)
        model.placement.release(self.dram, self.lv2)

    # -- jobs ------------------------------------------------------------------------------------------------
    def begin(self, model: LoadedModel, limit: int) -> None:
        """Start an inference of ``model``: jobs that use the same LV2 bytes finish first, within ``limit`` cycles."""
        if model not in self._models:
            raise DriverError(f"model {model.name!r} is not loaded on this device")
        if self.preemption.holds(model):
            raise DriverError(f"model {model.name!r} is suspended: resume it, or load it a second time")
        self._wait(lambda: not self.books.conflicts(model), limit)
        model.begin()

    def submit(
        self,
        model: LoadedModel,
        jobs: Sequence[int],
        *,
        limit: int,
        cycle_limit: int = 0,
        engine: int | None = None,
    ) -> list[int]:
        """Queue jobs of ``model`` by index, in ring order; returns a job id for each.

        Waits up to ``limit`` cycles for room where a ring is full; with 0, returns the ids of those that fitted.
        ``cycle_limit``: the most one body may take, 0 for no limit. The last job on each engine interrupts, and so does
        every half ring, to keep the ring filled.

        ``engine``: where to run jobs of a model compiled for one engine. They stay in order with the model's jobs on
        other engines; :meth:`chain` has to be called first.
        """
        table = model.image.meta.jobs
        numbers = {index: table[index].engine if engine is None else engine for index in jobs}
        last = {numbers[index]: index for index in jobs}
        ids = []
        for index in jobs:
            number = numbers[index]
            queue = self.engines[number]
            if not self._may_push(queue, model, index):
                if not limit:
                    break
                self._make_room(queue, model, index, limit)
            period = max(1, queue.capacity // 2)
            interrupt = index == last[number] or queue.pushed % period == period - 1
            job_id = self.books.enter(model, index, number)
            members = model.descriptor(index, job_id, interrupt=interrupt, cycle_limit=cycle_limit)
            if engine is not None:
                model.follow(members, engine)
            queue.push(**members | {"window_after": self.window_after(queue, model, index)})
            if queue.outstanding == 1 or queue.behind_barrier:
                queue.ring_doorbell()  # an idle engine starts at once, not when the last descriptor is written
            ids.append(job_id)
        self._ring_doorbells()
        return ids

    def collect(self, ids: Sequence[int], limit: int) -> list[JobResult]:
        """Results of submitted jobs, waiting up to ``limit`` cycles for the last of them.

        Raises :class:`DeviceFault` as soon as any engine stops on a fault, :class:`DeviceTimeout` at the limit.
        """
        self._wait(lambda: all(job_id in self.books.finished for job_id in ids), limit)
        return [self.books.finished.pop(job_id) for job_id in ids]

    def finished(self, job_id: int) -> bool:
        """Whether the result of a submitted job is there to be collected."""
        return job_id in self.books.finished

    def poll(self, limit: int) -> bool:
        """Wait up to ``limit`` cycles for an interrupt and serve it; False if none came. Raises as :meth:`collect`."""
        pending = self.watch.wait(limit)
        if pending is None:
            return False
        self.serve_interrupts(pending)
        return True

    def chain(self, model: LoadedModel) -> None:
        """Let jobs of ``model`` run on any engine, in order. :class:`DriverError` for a model compiled for several, or
        without a free hardware event."""
        if model.image.meta.events or engines_of(model.image) != [0]:
            raise DriverError(f"model {model.name!r} was compiled for several engines: compile it with engines=1")
        if model.chain is None:
            model.chain = self.events.lease(1, model.name)

    def window_after(self, queue: EngineQueue, model: LoadedModel, job: int) -> int:
        """The distance from the next place in ``queue`` to the job there that holds the weight window of ``job``."""
        holder = self.books.holder(model, job)
        return 0 if holder is None else distance(queue.unfinished, queue.place, holder[0])

    def _may_push(self, queue: EngineQueue, model: LoadedModel, job: int) -> bool:
        """Whether there is room, and no job on another engine holds the window: a prologue can only wait for its own
        ring."""
        holder = self.books.holder(model, job)
        return queue.free > 0 and (holder is None or holder[1].engine == queue.number)

    def _make_room(self, queue: EngineQueue, model: LoadedModel, job: int, limit: int) -> None:
        self._ring_doorbells()  # all of them: the full engine may wait for an event from another
        self._wait(lambda: self._may_push(queue, model, job), limit)

    def _ring_doorbells(self) -> None:
        for queue in self.engines:
            queue.ring_doorbell()

    # -- interrupts ------------------------------------------------------------------------------------------
    def _wait(self, done: Callable[[], bool], limit: int) -> None:
        deadline = self.bus.cycle + limit
        while not done():
            left = deadline - self.bus.cycle
            if left <= 0 or not self.poll(left):
                raise self.timed_out(limit)

    def serve_interrupts(self, pending: int) -> list[int]:
        """Handle interrupts of the engines whose bit is set; returns those that halted. :class:`DeviceFault` if one
        faulted."""
        halted = []
        for queue in self.engines:
            if pending >> queue.number & 1:
                causes = queue.take_interrupts()
                self.take_completions(queue, faulted=bool(causes["fault"]))
                if causes["halted"]:
                    halted.append(queue.number)
        return halted

    def take_completions(self, queue: EngineQueue, faulted: bool = False) -> None:
        """Account for jobs of an engine that retired. :class:`DeviceFault` if one did by a fault, or ``faulted``."""
        record = self._take_completions(queue)
        if record is None and faulted:
            record = queue.fault()
        if record is not None:
            kind = SupervisorFault if record.job_id in self.preemption.supervisor.jobs else DeviceFault
            raise kind(report.explain(self, record))

    def _take_completions(self, queue: EngineQueue) -> FaultRecord | None:
        fault = None
        for entry in queue.take_completions():
            if entry["status"]:
                fault = fault_record(queue.number, **{k: entry[k] for k in _FAULT_MEMBERS})
            elif not self.preemption.supervisor.finish(entry["job_id"], entry["start"], entry["end"]):
                self.books.finish(queue.number, entry)
        return fault

    def timed_out(self, limit: int) -> DeviceTimeout:
        """The error for "nothing happened within ``limit`` cycles", which says what every engine is doing."""
        return report.timed_out(self, limit)

    # -- recovery and observation ----------------------------------------------------------------------------
    def reset_engine(self, number: int) -> None:
        """Reset one engine; its outstanding jobs are lost, other engines run on."""
        self.engines[number].reset()
        self.preemption.supervisor.drop(number)
        self.books.drop(lambda entry: entry.engine == number)

    def abort(self, model: LoadedModel) -> None:
        """Drop all jobs of ``model`` by resetting the engines that hold any; the device is usable afterwards.

        Jobs of other models in the same queues are lost too. A dump ahead of the jobs ends first: they may have begun
        to overwrite what it has saved, and a reset would lose the news that it was.
        """
        try:
            self.preemption.transfers.settle(TRANSFERRED)
        except (DeviceFault, DeviceTimeout):  # of jobs that are about to be dropped
            self.recover()
        for number in self.books.engines_of(model):
            self.reset_engine(number)
        self.books.forget_results(model)
        model.synchronise()

    # -- preemption ------------------------------------------------------------------------------------------
    def pause(self, engines: Iterable[int], limit: int = LIMIT, *, verify: bool = False) -> dict[int, HaltRecord]:
        """Halt engines; see :meth:`Preemption.pause`."""
        return self.preemption.pause(engines, limit, verify=verify)

    def go_on(self, engines: Iterable[int]) -> None:
        """Let paused engines continue."""
        self.preemption.halting.go_on(engines)

    def suspend(
        self,
        engines: Iterable[int],
        incoming: LoadedModel | None = None,
        upcoming: Upcoming = (),
        limit: int = LIMIT,
        *,
        verify: bool = False,
    ) -> Suspension:
        """Take what runs on ``engines`` off them; see :meth:`Preemption.suspend`."""
        return self.preemption.suspend(engines, incoming, upcoming, limit, verify=verify)

    def admit(self, model: LoadedModel, engines: Sequence[int] | None = None) -> Operation | None:
        """Place ``model`` and queue the dump of what it displaces; see :meth:`Preemption.admit`."""
        return self.preemption.admit(model, engines)

    def resume(self, suspension: Suspension) -> Operation | None:
        """Continue a suspended task; see :meth:`Preemption.resume`."""
        return self.preemption.resume(suspension)

    def abandon(self, suspension: Suspension) -> None:
        """Give a suspended task up."""
        self.preemption.abandon(suspension)

    def recover(self) -> None:
        """Make the device usable after a ``SupervisorFault``; see :meth:`Preemption.recover`."""
        self.preemption.recover()

    def counters(self, engine: int) -> dict[str, int]:
        """Counters of the job that runs on ``engine`` now, by name."""
        return {name: self.regs.read(f"E{engine}.COUNTER[{i}]") for i, (name, _) in enumerate(COUNTERS)}

    def cycle_count(self) -> int:
        """The SoC's global cycle counter."""
        low = self.regs.read("CYCLE_LO")
        return self.regs.read("CYCLE_HI") << 32 | low


_FAULT_MEMBERS = ("status", "unit", "job_id", "pc", "address")
