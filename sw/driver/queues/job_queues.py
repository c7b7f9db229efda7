"""Pushes jobs to the queues of one SoC, and tells whoever pushed a job what became of it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from hw.contract.job import COMPLETION, JOB
from sim.bus import Bus
from sw.driver.errors import DeviceFault, DeviceTimeout, DriverError, FaultRecord
from sw.driver.memory.allocator import Allocator
from sw.driver.queues.engine_queue import EngineQueue, fault_record
from sw.driver.queues.interrupt_wait import HandledInterrupt, InterruptWait, never
from sw.driver.queues.overdue import OverdueJobs
from sw.driver.queues.registers import RegisterAccess

_RING_ALIGN = 256
_FAULT_MEMBERS = ("status", "unit", "job_id", "pc", "address")


class JobOwner(Protocol):
    """Whoever pushes a job registers itself as the job's owner, and is told once how the job ended."""

    def completed(self, engine: int, completion: dict[str, int]) -> None:
        """Hear that a job retired on ``engine``. ``completion`` is members of its ``hw.contract.job.COMPLETION``."""

    def fault_of(self, record: FaultRecord) -> DeviceFault:
        """Return the error to raise for a job that stopped its engine. The job is lost when the engine is reset."""
        ...

    def overdue(self, engine: int, job_id: int, message: str) -> DeviceTimeout:
        """Return the error to raise for a job that has kept ``engine`` longer than it may. It is lost when that is
        reset."""
        ...

    def lost(self, engine: int, job_ids: Sequence[int]) -> None:
        """Hear that ``engine`` was reset, and with it these jobs are gone, oldest first."""

    def describe(self, job_id: int) -> str:
        """Return what the job is, for messages."""
        ...


class JobQueues:
    """Holds all engines' queues, with the owner of every job that has not ended.

    ``log2``: log2 of the entries of each job and completion ring, which are allocated in ``dram``.
    """

    def __init__(self, bus: Bus, regs: RegisterAccess, dram: Allocator, log2: int) -> None:
        self.bus, self.params, self.regs = bus, bus.params, regs
        self.interrupts = InterruptWait(bus, regs)
        self.engines = [self._open(dram, number, log2) for number in range(self.params.engines)]
        self._overdue = OverdueJobs(bus, regs, self.engines)
        self._owners: dict[int, tuple[int, JobOwner]] = {}  #: engine and owner by job id, in the order of pushing
        self._next_id = 1

    def _open(self, dram: Allocator, number: int, log2: int) -> EngineQueue:
        ring = dram.allocate(JOB.size << log2, _RING_ALIGN, f"job ring of engine {number}")
        completions = dram.allocate(COMPLETION.size << log2, _RING_ALIGN, f"completions of engine {number}")
        return EngineQueue(self.bus, self.regs, number, ring=ring, completions=completions, log2=log2)

    # -- jobs ------------------------------------------------------------------------------------------------
    def new_id(self) -> int:
        """Return a job id that was not used lately; never 0."""
        job_id = self._next_id
        self._next_id = self._next_id % 0xFFFFFFFF + 1
        return job_id

    def push(self, engine: int, descriptor: dict[str, int], owner: JobOwner) -> None:
        """Write a job to the ring of ``engine``; raises :class:`DriverError` if that is full. This rings no
        doorbell."""
        self.engines[engine].push(**descriptor)
        self._owners[descriptor["job_id"]] = engine, owner

    def requeue(self, engine: int, descriptor: dict[str, int], owner: JobOwner, *, barrier: bool = False) -> None:
        """Push as :meth:`push` does, without a limit, as :meth:`EngineQueue.requeue` describes."""
        self.engines[engine].requeue(descriptor, barrier=barrier)
        self._owners[descriptor["job_id"]] = engine, owner

    def ring_doorbells(self) -> None:
        """Announce to every engine what was pushed since its last doorbell."""
        for queue in self.engines:
            queue.ring_doorbell()

    def idle(self) -> list[int]:
        """Return the engines without jobs."""
        return [queue.number for queue in self.engines if not queue.outstanding]

    # -- what happens ----------------------------------------------------------------------------------------
    def wait(self, done: Callable[[], bool], limit: int | None, look_after: int | None = None) -> None:
        """Serve interrupts until ``done``; raises :class:`DeviceTimeout` after ``limit`` cycles, if it has one, and as
        soon as a job is overdue. Raises as :meth:`poll`.

        ``look_after``: cycles without an interrupt after which it is looked whether one was lost.
        """
        deadline = None if limit is None else self.bus.cycle + limit
        while not done():
            left = [span for span in (self.patience(), look_after) if span is not None]
            if deadline is not None:
                left.append(deadline - self.bus.cycle)
            if not left:
                raise DriverError("nothing is queued that could end, so nothing is waited for")
            if (min(left) <= 0 or not self.poll(min(left))) and not self.look():
                self.refuse_overdue()
                if limit is not None and deadline is not None and self.bus.cycle >= deadline:
                    raise self.timed_out(limit)

    def patience(self) -> int | None:
        """Return the cycles until a job may be overdue, or None if none can be."""
        return self._overdue.left()

    def refuse_overdue(self) -> None:
        """Raise the :class:`DeviceTimeout` of a job that has kept its engine longer than it may, if there is one: of
        most jobs no interrupt tells that they have ended."""
        if self.patience() != 0 or self.look():
            return
        for queue in self.engines:
            if queue.oldest is not None:
                self.take_completions(queue.number)
        found = self._overdue.find()
        if found is not None:
            engine, job_id, limit = found
            late = f"{self._owners[job_id][1].describe(job_id)} keeps engine {engine} for more than {limit} cycles"
            raise self.late(engine, f"{late}:\n  {self._doing()}")

    def poll(self, limit: int, busy: Callable[[], bool] = never) -> bool:
        """Wait up to ``limit`` cycles for an interrupt and serve it; return False if none came, or if one did while the
        host is ``busy``, as :meth:`InterruptWait.wait` describes.

        Raises the :class:`DeviceFault` of an engine that stopped on a fault.
        """
        pending = self.interrupts.wait(limit, busy=busy)
        if pending is None:
            return False
        self.serve_interrupts(pending)
        return True

    def look(self) -> bool:
        """Serve interrupts that are pending although none came; return False if there are none. Raises as
        :meth:`poll`."""
        pending = self.regs.read("IRQ")
        self.serve_interrupts(pending)
        return bool(pending)

    def serve_interrupts(self, pending: int) -> list[int]:
        """Handle interrupts of the engines whose bit is set; return those that reported a halt. Raises as
        :meth:`poll`."""
        halted = []
        for queue in self.engines:
            if pending >> queue.number & 1:
                begin, causes = self.bus.cycle, queue.take_interrupts()
                try:
                    self.take_completions(queue.number, faulted=bool(causes["fault"]))
                finally:
                    named = tuple(name for name, found in causes.items() if found)
                    self.interrupts.handled.append(HandledInterrupt(queue.number, begin, self.bus.cycle, named))
                if causes["halted"]:
                    halted.append(queue.number)
        return halted

    def take_completions(self, engine: int, faulted: bool = False) -> None:
        """Tell owners of jobs on ``engine`` that have retired; raises :class:`DeviceFault` if one has by a fault, or if
        ``faulted``."""
        queue, record = self.engines[engine], None
        for entry in queue.take_completions():
            if entry["status"]:
                record = fault_record(engine, **{name: entry[name] for name in _FAULT_MEMBERS})
                continue
            _, owner = self._owners.pop(entry["job_id"], (engine, None))
            if owner is None:
                raise DriverError(
                    f"engine {engine}: completion of job id {entry['job_id']}, which is not outstanding; "
                    "reset the engine"
                )
            owner.completed(engine, entry)
        if record is None and faulted:
            record = self._blamed(queue.fault())
        if record is not None:
            known = self._owners.get(record.job_id)
            raise DeviceFault(record) if known is None else known[1].fault_of(record)

    def _blamed(self, record: FaultRecord) -> FaultRecord:
        """Return the fault of a job that has not ended. Where the engine could not read whose it is, its oldest job is
        blamed."""
        mine = [job_id for job_id, (engine, _) in self._owners.items() if engine == record.engine]
        return record if record.job_id in mine or not mine else replace(record, job_id=mine[0])

    def late(self, engine: int, message: str) -> DeviceTimeout:
        """Return the error for an engine whose oldest job takes too long."""
        oldest = self.engines[engine].oldest
        if oldest is None:
            return DeviceTimeout(message)
        return self._owners[oldest["job_id"]][1].overdue(engine, oldest["job_id"], message)

    def timed_out(self, limit: int) -> DeviceTimeout:
        """Return the error for "nothing happened within ``limit`` cycles", which says what every engine is doing."""
        return DeviceTimeout(f"no result within {limit} cycles; raise the limit or look at:\n  {self._doing()}")

    def _doing(self) -> str:
        return "\n  ".join(self._describe(queue) for queue in self.engines)

    def _describe(self, queue: EngineQueue) -> str:
        text, job_id = queue.describe(self.params.semaphores), queue.register("CURRENT_JOB")
        known = self._owners.get(job_id)
        return text if known is None else f"{text}; {known[1].describe(job_id)}"

    # -- emptying --------------------------------------------------------------------------------------------
    def reset(self, engine: int) -> None:
        """Reset one engine: its jobs are lost, as their owners are told. Other engines run on."""
        self.engines[engine].reset()
        lost: dict[int, tuple[JobOwner, list[int]]] = {}
        for job_id, owner in self._forget(engine).items():
            lost.setdefault(id(owner), (owner, []))[1].append(job_id)
        for owner, job_ids in lost.values():
            owner.lost(engine, job_ids)

    def empty(self, engine: int) -> None:
        """Take all jobs off an engine that has halted. Their owners are not told: the caller keeps the jobs."""
        if self.engines[engine].outstanding:
            self.engines[engine].empty()
        self._forget(engine)

    def _forget(self, engine: int) -> dict[int, JobOwner]:
        mine = {job_id: owner for job_id, (number, owner) in self._owners.items() if number == engine}
        for job_id in mine:
            del self._owners[job_id]
        return mine
