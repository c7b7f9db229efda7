"""Defines the device driver: everything a host does with one SoC, above ``hw.contract.bus.Bus`` alone."""

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Literal

from hw.contract.bus import Bus
from hw.contract.isa import Segment
from hw.contract.job import COUNTERS
from hw.image import Image
from sw.driver.errors import DriverError
from sw.driver.limits import BODY
from sw.driver.memory.allocator import Allocator, WindowPool
from sw.driver.memory.placement import place, relocate
from sw.driver.models.engine_choice import check_engines, choose_engines, engines_needed
from sw.driver.models.kept_states import end_state, new_state
from sw.driver.models.linked_model import LinkedModel, link
from sw.driver.models.loaded_model import LoadedModel, weights_of_like
from sw.driver.models.lv2_use import Lv2Use, lv2_use
from sw.driver.models.model_jobs import ModelJobs
from sw.driver.models.program_plan import ProgramPlan
from sw.driver.ownership import Ownership
from sw.driver.preempt.preemption import Preemption
from sw.driver.preempt.state_transfer import StateTransfer
from sw.driver.preempt.suspension import Suspension
from sw.driver.queues.engine_queue import RING_LOG2, EngineQueue
from sw.driver.queues.events import EventPool
from sw.driver.queues.interrupt_wait import HandledInterrupt
from sw.driver.queues.job import DeviceJob
from sw.driver.queues.job_queues import JobQueues
from sw.driver.queues.registers import RegisterAccess, identify
from sw.driver.scrub import Scrubber


class Device:
    """A device is one SoC behind a bus. It identifies the hardware, sets all queues up, and owns DRAM, LV2 and events.

    ``ring_log2``: log2 of the entries of each job and completion ring. Raises :class:`DeviceMismatch` if the hardware
    is not the one ``bus.params`` describes, :class:`DriverError` if another driver
    has loaded models there. One that has not cannot load any from now on.
    """

    def __init__(self, bus: Bus, *, ring_log2: int = RING_LOG2) -> None:
        self.ownership = Ownership(bus)
        self.bus = bus
        self.params = bus.params
        self.regs = RegisterAccess(bus)
        identify(self.regs, self.params)
        self.dram = Allocator("DRAM", 0, self.params.dram_bytes)
        self.lv2 = WindowPool(self.params.lv2_bytes, several=self.ownership.inherited)
        self.events = EventPool(self.regs, self.params.events)
        self.queues = JobQueues(bus, self.regs, self.dram, ring_log2)
        self.scrubber = Scrubber(self.queues, self.dram, self.lv2, inherited=self.ownership.inherited)
        self.jobs = ModelJobs(self.queues, self.scrubber, self.lv2)
        self.preemption = Preemption(self.queues, self.jobs, self.dram, self.events)
        self._models: list[LoadedModel] = []
        self._loads = 0
        # What these parts do, they do for whoever has the device.
        queues, preemption = self.queues, self.preemption
        self.collect, self.poll, self.look = self.jobs.collect, queues.poll, queues.look
        self.patience, self.refuse_overdue = queues.patience, queues.refuse_overdue
        self.pause, self.go_on, self.suspend = preemption.pause, preemption.halting.go_on, preemption.suspend
        self.admit, self.resume, self.drop = preemption.admit, preemption.resume, preemption.drop
        self.divide, self.has_place, self.place = preemption.divide, preemption.has_place, preemption.place
        self.abandon, self.recover, self.settle = preemption.abandon, preemption.recover, preemption.transfers.settle

    def close(self) -> None:
        """Close the bus. Whatever uses the device from then on gets a :class:`DriverError`, and so does a call that
        closes it while another call uses it. To close it again does nothing."""
        self.ownership.close()
        self.bus.close()

    def claim(self, owner: object, name: str) -> None:
        """Let ``owner``, called ``name`` in messages, queue jobs until it releases :attr:`ownership`. What an owner
        that is gone has left is dropped first. Raises :class:`DriverError` while another uses the device."""
        self._drop_abandoned(owner)
        self.ownership.claim(owner, name)

    def drop_all(self) -> None:
        """Take all jobs and all suspended tasks off the device, whoever had them. Models stay loaded."""
        self.preemption.settle_or_recover()
        for suspension in self.suspensions:
            self.abandon(suspension)
        for model in self.jobs.models():
            self.abort(model)

    def _drop_abandoned(self, claimant: object = None) -> None:
        if self.ownership.abandoned(claimant):
            self.drop_all()
            for model in self._models:
                model.users.clear()
            self.ownership.cleared()

    @property
    def engines(self) -> list[EngineQueue]:
        """Return the queue of each engine."""
        return self.queues.engines

    # -- models ----------------------------------------------------------------------------------------------
    def load(
        self,
        image: Image,
        engines: Sequence[int] | Literal["least_used"] | None = None,
        *,
        like: Sequence[LoadedModel] = (),
        tenant: str | None = None,
        keep_weights: bool = False,
        body_cycles: int | Sequence[int] = BODY,
    ) -> LoadedModel:
        """Validate ``image``, give it memory, LV2 windows and events, and write code and weights.

        ``engines``: the engines that run it, one for each it was compiled for, in the order of the image's numbers;
        ``least_used``: those that the fewest loaded models use; by default the first. :meth:`assign` changes them.
        ``like``: loaded models; if one has the same weights, they are shared, as nothing may store to them.
        ``tenant``: whose it is. On-chip memories are cleared where they pass from one tenant to another; models without
        one are all of the same. ``keep_weights``: weights that an inference finds in LV2, as an earlier one of a model
        with the same weights at the same place has left them, are not loaded again; it then takes fewer cycles
        than the first one did. Small models have all their weights there: ``ImageMeta.weights_only``.
        ``body_cycles``: the most cycles one body may take, whatever its image says; raise it for very long layers.
        Numbers, one for each job, are the limits themselves, such as the bounds of a certificate.

        Raises ``hw.image.image.ImageError`` for an image that is damaged or built for other parameters,
        :class:`OutOfMemory` or :class:`DriverError` when something does not fit, ``ValueError`` for other than one
        limit for each job. The device stays as it was then.
        """
        with self.ownership.one_thread(), ExitStack() as undo:
            self.ownership.refuse_superseded()
            image.validate(f"image {image.meta.model!r}")
            image.check_params(self.params)
            used = [model.engines for model in self._models]
            chosen = choose_engines(image, engines, used, self.params.engines)
            placement = place(
                image, self.dram, self.lv2, weights_of_like(image, [each for each in like if each in self._models])
            )
            undo.callback(placement.release, self.dram, self.lv2)
            self.scrubber.clear_dram(placement.dram_blocks, tenant)
            code = relocate(image, placement.segments)
            events = self.events.lease(image.meta.parts or image.meta.events, image.meta.model)
            undo.callback(self.events.release, events)
            model = LoadedModel(
                self.bus, image, placement, events, self._loads, chosen, tenant,
                keep_weights=keep_weights, body_cycles=body_cycles,
            )  # fmt: skip
            for (base, _), data in zip(model.segments, (code, image.weights), strict=False):
                if data:
                    self.bus.write_mem(base, data, charge=False)
            undo.pop_all()
            self._enter(model)
            return model

    def link(self, kernels: Sequence[LoadedModel], plan: ProgramPlan) -> LinkedModel:
        """Return a program of loaded models, which run one behind the other as one model, where ``plan`` has each find
        what those before it wrote. Nothing is copied, and they may run alone as well. Raises :class:`DriverError` for
        one that cannot be linked, and as :meth:`load` where something does not fit."""
        with self.ownership.one_thread():
            self.ownership.refuse_superseded()
            for kernel in kernels:
                self.refuse_unloaded(kernel)
            model = link(kernels, plan, self.bus, self.dram, self.scrubber.clear_dram, self.events.lease, self._loads)
            self._enter(model)
            return model

    def _enter(self, model: LoadedModel) -> None:
        self._loads += 1
        self._models.append(model)
        self.ownership.models += 1
        if model.tenant is not None:
            self.ownership.has_tenants()

    def assign(self, model: LoadedModel, engines: Sequence[int]) -> None:
        """Run ``model`` on other engines from its next inference on: one for each it was compiled for, in the order of
        the image's numbers. Raises :class:`DriverError` while its jobs are outstanding or suspended."""
        self._refuse_outstanding(model)
        model.engines = check_engines(model.image, engines, self.params.engines)

    @property
    def models(self) -> tuple[LoadedModel, ...]:
        """Return the models that are loaded, in the order in which they were."""
        return tuple(self._models)

    def unload(self, model: LoadedModel) -> None:
        """Give back all that ``model`` uses, its DRAM cleared; raises :class:`DriverError` while its jobs are
        outstanding, or requests for it have not ended."""
        with self.ownership.one_thread():
            if model.users:
                self._drop_abandoned()
            self._refuse_outstanding(model)
            if model.users:
                raise DriverError(
                    f"model {model.name!r} cannot be unloaded under {', '.join(model.users)}: wait until they have "
                    "ended, or cancel them"
                )
            if programs := [other.name for other in self._models if model in other.kernels]:
                raise DriverError(f"model {model.name!r} is part of program {programs[0]!r}: unload that first")
            self._models.remove(model)
            self.ownership.models -= 1
            model.loaded = False
            self.events.release(model.events)
            if model.chain is not None:
                self.events.release(model.chain)
            self.scrubber.forget(model)
            model.placement.release(self.dram, self.lv2)

    def new_state(self, model: LoadedModel) -> int:
        """Return the first byte of memory for a state of ``model``, which holds zeros and is given back with the model
        at the latest; see :meth:`LoadedModel.use_state`. Raises :class:`OutOfMemory`."""
        with self.ownership.one_thread():
            self.refuse_unloaded(model)
            return new_state(model, self.dram, self.bus)

    def end_state(self, model: LoadedModel, base: int) -> None:
        """Clear the state at ``base`` and give its memory back. Raises :class:`DriverError` while an inference uses
        it."""
        with self.ownership.one_thread():
            if base not in model.placement.dram_blocks or not model.loaded:
                return
            if model.segments[Segment.SCRATCH][0] == base:
                self._refuse_outstanding(model)
                model.use_state()
            end_state(model, base, self.dram, self.bus)

    def refuse_unloaded(self, model: LoadedModel) -> None:
        """Raise :class:`DriverError` unless ``model`` is loaded on this device."""
        if model not in self._models:
            raise DriverError(f"model {model.name!r} is not loaded on this device")

    def _refuse_outstanding(self, model: LoadedModel) -> None:
        self.refuse_unloaded(model)
        if self.preemption.holds(model) or self.jobs.engines_of(model):
            raise DriverError(f"model {model.name!r} has jobs outstanding: wait for them or abort them first")

    # -- jobs ------------------------------------------------------------------------------------------------
    def begin(self, model: LoadedModel, limit: int | None, numbers: Mapping[str, int] | None = None) -> None:
        """Start an inference of ``model``. Jobs that use the same LV2 bytes finish first, within ``limit`` cycles, or
        (None) within those that they may take. ``numbers``: those that its image asks for, by name, from which the
        parameters of its jobs follow."""
        self.refuse_unloaded(model)
        parameters = model.parameters_of(numbers or {})
        if self.preemption.holds(model):
            raise DriverError(f"model {model.name!r} is suspended: resume it, or load it a second time")
        self.jobs.wait_for_windows(model, limit)
        if self.scrubber.foreign(model):  # a dump may be taking it to DRAM
            self.preemption.transfers.settle()
        self.jobs.begin(model, parameters)

    def end(self, model: LoadedModel) -> None:
        """End the inference of ``model``, of which no job is outstanding and none will be queued."""
        model.end()

    def submit(
        self,
        model: LoadedModel,
        jobs: Sequence[int],
        *,
        limit: int | None,
        cycle_limit: int | None = None,
        engine: int | None = None,
    ) -> list[DeviceJob]:
        """Queue jobs of ``model`` by index, in ring order; return a record of each.

        Waits up to ``limit`` cycles for room where a ring is full, or (None) as long as jobs may take; with 0, returns
        those that fitted. ``cycle_limit``: the most one body may take, 0 for no limit, for programs that are
        trusted; by default what follows from the image's bounds, but no more than ``body_cycles`` of :meth:`load`. The
        last job on each engine interrupts, and so does every half ring, to keep the ring filled.

        ``engine``: where to run jobs of a placed model, which wait for the jobs that they read and no others; or of one
        compiled for one engine: these stay in order with the model's jobs on other engines, and :meth:`chain` has to be
        called first.
        """
        self.refuse_unloaded(model)
        return self.jobs.submit(model, jobs, limit=limit, cycle_limit=cycle_limit, engine=engine)

    @property
    def outstanding(self) -> list[DeviceJob]:
        """Return the jobs of models that are queued and have not finished, oldest first."""
        return self.jobs.outstanding

    @property
    def handled_interrupts(self) -> list[HandledInterrupt]:
        """Return the newest interrupts, oldest first, and what they cost the host."""
        return list(self.queues.interrupts.handled)

    def chain(self, model: LoadedModel) -> None:
        """Let jobs of ``model`` run on any engine, in order; those of a placed model can anyway. :class:`DriverError`
        refuses a model whose layers are shared by several engines, or without a free hardware event."""
        if model.placed:
            return
        if model.image.meta.events or engines_needed(model.image) != 1:
            raise DriverError(f"model {model.name!r} was compiled for several engines: compile it with engines=1")
        if model.chain is None:
            model.chain = self.events.lease(1, model.name)

    def abort(self, model: LoadedModel) -> None:
        """Drop all jobs of ``model`` by resetting the engines that hold any; the device is usable afterwards.

        Jobs of other models in the same queues are lost too. A dump ahead of the jobs ends first: they may have begun
        to overwrite what it has saved, and a reset would lose the news that it was.
        """
        self.preemption.settle_or_recover()
        for number in sorted({*self.jobs.engines_of(model), *self.scrubber.faulted}):
            self.queues.reset(number)
        model.synchronise()

    # -- preemption ------------------------------------------------------------------------------------------
    @property
    def suspensions(self) -> list[Suspension]:
        """Return the suspended tasks, oldest first."""
        return list(self.preemption.tasks)

    @property
    def operations(self) -> list[StateTransfer]:
        """Return dumps and restores so far, as far as they are remembered, oldest first."""
        return list(self.preemption.transfers.operations)

    def remember(self, operations: int | None) -> None:
        """Keep the newest so many of :attr:`operations` and :attr:`handled_interrupts`, or all if that is None."""
        transfers, interrupts = self.preemption.transfers, self.queues.interrupts
        transfers.operations = deque(transfers.operations, operations)
        interrupts.handled = deque(interrupts.handled, operations)

    @property
    def transferring(self) -> bool:
        """Return whether jobs of a dump or restore are queued whose completions have not been taken."""
        return bool(self.preemption.supervisor.jobs)

    # -- observation -----------------------------------------------------------------------------------------
    def counters(self, engine: int) -> dict[str, int]:
        """Return the counters of the job that runs on ``engine`` now, by name."""
        return {name: self.regs.read(f"E{engine}.COUNTER[{i}]") for i, (name, _) in enumerate(COUNTERS)}

    def lv2_use(self) -> Lv2Use:
        """Return how full LV2 is now, and with data of which models."""
        waiting = {job for queue in self.engines for job in queue.not_loaded()}
        return lv2_use(self.params.lv2_bytes, self._models, self.outstanding, waiting)

    def cycle_count(self) -> int:
        """Return the global cycle counter of the SoC."""
        low = self.regs.read("CYCLE_LO")
        return self.regs.read("CYCLE_HI") << 32 | low
