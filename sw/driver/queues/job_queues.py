"""Queues the jobs of one SoC, waits for them, and tells whoever has queued a job what became of it, or that it is
overdue.

The oldest job of each engine has a clock. A job that waits for an event is not late by itself: the engine on which the
event is to be signalled has a clock too, and whoever delays that is late. Only where no clock is left that could run
out, because jobs wait for each other or for what nobody signals, one of those that wait is to blame."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hw.contract.bus import Bus
from hw.contract.job import COMPLETION, JOB
from sw.driver.errors import DeviceFault, DeviceTimeout, DriverError
from sw.driver.limits import BEGINNING
from sw.driver.memory.allocator import Allocator
from sw.driver.queues.engine_queue import EngineQueue
from sw.driver.queues.interrupt_wait import HandledInterrupt, InterruptWait, never
from sw.driver.queues.job import DeviceJob, JobState, Party, fault_record
from sw.driver.queues.registers import RegisterAccess

_WORD = 1 << 32
Signals = tuple[int, int]  #: an event, and how many signals of it are missing


class OverdueJobs:
    """Watches the oldest jobs of ``engines``. Nothing is read from the device before a clock has run out."""

    def __init__(self, bus: Bus, regs: RegisterAccess, engines: Sequence[EngineQueue]) -> None:
        self._bus, self._regs, self._engines = bus, regs, engines
        self._came: dict[int, DeviceJob] = {}  #: by engine: the oldest job, if its events are known to have come

    def left(self) -> int | None:
        """Return the cycles until the next clock runs out, or None if there is none."""
        ends = [end for queue in self._engines if (end := _end(queue)) is not None]
        return max(0, min(ends) - self._bus.cycle) if ends else None

    def find(self) -> DeviceJob | None:
        """Return a job that is overdue, or None if there is none. Clocks of jobs that wait for others, or that have
        waited until now, begin again."""
        late = [q for q in self._engines if (end := _end(q)) is not None and end <= self._bus.cycle]
        if not late:
            return None
        waits = {queue.number: self._missing(queue) for queue in self._engines if queue.oldest}
        blocked = self._blocked(waits)
        for queue in late:
            job = _oldest(queue)
            if queue.number in blocked:
                return _oldest(self._engines[self._first_to_blame(blocked)])
            if not waits[queue.number] and (not job.waits or self._came.get(queue.number) is job):
                return job
            if not waits[queue.number]:
                self._came[queue.number] = job
            queue.restart_clock()
        return None

    def _missing(self, queue: EngineQueue) -> list[Signals]:
        """Return what the oldest job of an engine waits for."""
        left = [(event, (value - self._regs.read(f"EVENT[{event}]")) % _WORD) for event, value in _oldest(queue).waits]
        return [(event, count) for event, count in left if 0 < count < _WORD // 2]

    def _blocked(self, waits: Mapping[int, list[Signals]]) -> dict[int, list[Signals]]:
        """Return the engines that no other can set free, of those whose oldest jobs wait, by what they wait for."""
        blocked = {engine: missing for engine, missing in waits.items() if missing}
        while True:
            moving = [queue for queue in self._engines if queue.number not in blocked]
            freed = [
                engine
                for engine, missing in blocked.items()
                if all(sum(_signals(queue, event) for queue in moving) >= count for event, count in missing)
            ]
            if not freed:
                return blocked
            for engine in freed:
                del blocked[engine]

    def _first_to_blame(self, blocked: Mapping[int, list[Signals]]) -> int:
        """Return an engine whose job waits for signals that jobs queued before it do not give; there is one wherever
        nothing moves."""
        for engine, missing in blocked.items():
            job = _oldest(self._engines[engine])
            if any(sum(_signals(queue, event, job) for queue in self._engines) < count for event, count in missing):
                return engine
        return min(blocked)


def allowed(job: DeviceJob) -> int:
    """Return the cycles that a job may keep its engine from when it is the oldest and its events have come."""
    return BEGINNING + job.work.cycle_limit


def _oldest(queue: EngineQueue) -> DeviceJob:
    assert queue.oldest is not None
    return queue.oldest


def _end(queue: EngineQueue) -> int | None:
    """Return when the clock of an engine's oldest job runs out, or None without one, or if the job has no limit."""
    if queue.clock is None or not _oldest(queue).work.cycle_limit:
        return None
    return queue.clock + allowed(_oldest(queue))


def _signals(queue: EngineQueue, event: int, before: DeviceJob | None = None) -> int:
    """Return how many signals of ``event`` the unfinished jobs of an engine give, or those queued ``before`` a job."""
    jobs = [job for job in queue.unfinished if job.work.signal == event]
    return sum(before is None or (job.id - before.id) % _WORD > _WORD // 2 for job in jobs)


_RING_ALIGN = 256
_FAULT_MEMBERS = ("status", "unit", "job_id", "pc", "address")


class JobQueues:
    """Holds all engines' queues.

    ``log2``: log2 of the entries of each job and completion ring, which are allocated in ``dram``.
    """

    def __init__(self, bus: Bus, regs: RegisterAccess, dram: Allocator, log2: int) -> None:
        self.bus, self.params, self.regs = bus, bus.params, regs
        self.interrupts = InterruptWait(bus, regs)
        self.engines = [self._open(dram, number, log2) for number in range(self.params.engines)]
        self._overdue = OverdueJobs(bus, regs, self.engines)
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

    @property
    def jobs(self) -> list[DeviceJob]:
        """Return every job that is neither DONE nor LOST, engine by engine, oldest first on each."""
        return [job for queue in self.engines for job in queue.jobs]

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
        job = self._overdue.find()
        if job is not None:
            late = f"{job.party.describe(job)} keeps engine {job.engine} for more than {allowed(job)} cycles"
            raise self.late(job.engine, f"{late}:\n  {self._doing()}")

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
                begin = self.bus.cycle
                causes, retired = queue.take_interrupts()
                try:
                    self.take_completions(queue.number, retired, faulted=bool(causes["fault"]))
                finally:
                    named = tuple(name for name, found in causes.items() if found)
                    self.interrupts.handled.append(HandledInterrupt(queue.number, begin, self.bus.cycle, named))
                if causes["halted"]:
                    halted.append(queue.number)
        return halted

    def serve_halt(self, engine: int, retired: int) -> None:
        """Handle the interrupts of an engine that is known to have halted, and to have ``retired`` so many jobs
        before."""
        begin = self.bus.cycle
        self.engines[engine].clear_halt()
        try:
            self.take_completions(engine, retired)
        finally:
            self.interrupts.handled.append(HandledInterrupt(engine, begin, self.bus.cycle, ("halted",)))

    def take_completions(self, engine: int, count: int | None = None, *, faulted: bool = False) -> None:
        """Tell the parties of jobs on ``engine`` that have retired (``count``: how many, if that is known). Raise
        :class:`DeviceFault` if one has by a fault, or if ``faulted``."""
        queue, record = self.engines[engine], None
        for job, entry in queue.take_completions(count):
            if entry["status"]:
                record = fault_record(engine, **{name: entry[name] for name in _FAULT_MEMBERS})
            else:
                job.state = JobState.DONE
                job.party.ended(job, entry)
        if record is None and faulted:
            record = queue.fault()
        if record is not None:
            culprit = queue.culprit(record)
            if culprit is None:
                raise DeviceFault(record)
            raise culprit.party.fault_of(culprit, replace(record, job_id=culprit.id))

    def late(self, engine: int, message: str) -> DeviceTimeout:
        """Return the error for an engine whose oldest job takes too long."""
        oldest = self.engines[engine].oldest
        return DeviceTimeout(message) if oldest is None else oldest.party.overdue(oldest, message)

    def timed_out(self, limit: int) -> DeviceTimeout:
        """Return the error for "nothing happened within ``limit`` cycles", which says what every engine is doing."""
        return DeviceTimeout(f"no result within {limit} cycles; raise the limit or look at:\n  {self._doing()}")

    def _doing(self) -> str:
        return "\n  ".join(self._describe(queue) for queue in self.engines)

    def _describe(self, queue: EngineQueue) -> str:
        text, job_id = queue.describe(self.params.semaphores), queue.register("CURRENT_JOB")
        known = next((job for job in self.jobs if job.id == job_id), None)
        return text if known is None else f"{text}; {known.party.describe(known)}"

    # -- emptying --------------------------------------------------------------------------------------------
    def reset(self, engine: int) -> None:
        """Reset one engine: its jobs are lost, as their parties are told. Other engines run on."""
        lost: dict[int, tuple[Party, list[DeviceJob]]] = {}
        for job in self.engines[engine].reset():
            lost.setdefault(id(job.party), (job.party, []))[1].append(job)
        for party, jobs in lost.values():
            party.lost(engine, jobs)
