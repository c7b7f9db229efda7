"""Keeps one engine's queue for the driver: its jobs, job ring, completion ring, doorbell and interrupt."""

from collections import deque

from hw.contract.bus import Bus
from hw.contract.job import COMPLETION, JOB
from hw.contract.regs import EngineState, field_value
from sw.driver.errors import DriverError, FaultRecord
from sw.driver.queues.job import DeviceJob, JobState, checked, describe, fault_record
from sw.driver.queues.registers import RegisterAccess

RING_LOG2 = 6  #: log2 of the entries of a ring, unless told otherwise
#: Register accesses to serve one engine's interrupt: IRQ, IRQ_STATUS, STATUS, CPL_HEAD, and CPL_TAIL where the ring
#: holds many jobs.
SERVE_ACCESSES = 5
#: Register accesses to empty an engine that has halted, at most: reset, two looks at its end, enable.
EMPTY_ACCESSES = 4
_STATUS_COUNTS = 32  #: STATUS has counts of the ring modulo this
RESET_POLL_CYCLES = 200  #: between two looks at the end of a reset
_RESET_POLLS = 1000
_WINDOW_LIMIT = 1 << 16  #: ``window_after`` reaches no further


class EngineQueue:
    """Keeps rings of 2 ** ``log2`` entries at ``ring`` (jobs) and ``completions`` in DRAM, both multiples of 256, and
    the jobs of one engine: those in the ring are QUEUED, those that wait for room there are HELD.

    Indices are free-running counts as in ``hw.contract.job``; Python integers here, 32 bits in registers.
    """

    def __init__(self, bus: Bus, regs: RegisterAccess, number: int, *, ring: int, completions: int, log2: int) -> None:
        self.number = number
        self._bus, self._regs = bus, regs
        self._ring, self._completions, self._log2 = ring, completions, log2
        self.capacity = 1 << log2  #: jobs that the ring holds
        self._submitted = self._announced = self._retired = 0
        self._jobs: deque[DeviceJob] = deque()  #: without a completion yet, oldest first: QUEUED, then HELD
        self._failed: list[DeviceJob] = []  #: whose completion says that they failed
        self._barrier: int | None = None
        self._since, self._paused = bus.cycle, False
        self._program()

    @property
    def outstanding(self) -> int:
        """Return how many jobs are queued whose completion was not taken."""
        return len(self._jobs)

    @property
    def _queued(self) -> int:
        """Return how many jobs are in the ring."""
        return self._submitted - self._retired

    @property
    def free(self) -> int:
        """Return how many jobs can be pushed now."""
        in_ring = self._submitted - self._retired
        return self.capacity - in_ring if len(self._jobs) == in_ring else 0

    @property
    def unfinished(self) -> list[DeviceJob]:
        """Return every job whose completion was not taken, oldest first."""
        return list(self._jobs)

    @property
    def jobs(self) -> list[DeviceJob]:
        """Return every job that is neither DONE nor LOST, oldest first: the unfinished ones, behind those that have
        failed."""
        return [*self._failed, *self._jobs]

    @property
    def oldest(self) -> DeviceJob | None:
        """Return the oldest job whose completion was not taken."""
        return self._jobs[0] if self._jobs else None

    @property
    def clock(self) -> int | None:
        """Return the cycle since when the oldest job has been the oldest, as far as is known. It is None without a job,
        and while a pause lasts."""
        return None if self._paused or not self._jobs else self._since

    @property
    def age(self) -> int:
        """Return for how many cycles the oldest job has been the oldest, as far as is known."""
        return 0 if self.clock is None else self._bus.cycle - self.clock

    @property
    def behind_barrier(self) -> bool:
        """Return whether the latest job is the first behind a barrier."""
        return self._barrier is not None and self._barrier == self._submitted - 2 and len(self._jobs) == self._queued

    @property
    def pushed(self) -> int:
        """Return how many jobs were pushed since the rings were set up."""
        return self._submitted

    @property
    def place(self) -> int:
        """Return the ring index of the next job."""
        return self._retired + len(self._jobs)

    def not_loaded(self) -> list[DeviceJob]:
        """Return the jobs whose prologue has not run, oldest first: the loader is at the first of them."""
        loaded = self.register("RING_LOADED") if self._jobs else 0
        return [job for job in self._jobs if not job.has_loaded(loaded)]

    def register(self, name: str) -> int:
        """Read one of this engine's registers."""
        return self._regs.read(f"E{self.number}.{name}")

    def _write(self, name: str, value: int) -> None:
        self._regs.write(f"E{self.number}.{name}", value)

    def _forget(self) -> None:
        self._jobs.clear()
        self._failed.clear()
        self._barrier = None

    @property
    def memory(self) -> tuple[int, int]:
        """Return where in DRAM the job ring and the completion ring lie."""
        return self._ring, self._completions

    def _program(self) -> None:
        """Set the rings up from scratch and enable the engine."""
        self._forget()
        self._write("CONTROL", 0)
        self._write("RING_BASE", self._ring)
        self._write("RING_SIZE", self._log2)
        self._write("CPL_BASE", self._completions)
        self._write("CPL_SIZE", self._log2)
        # A reset engine counts from zero; reading it back keeps the driver right on any that does not.
        self._retired = self.register("RING_HEAD")
        self._submitted = self._announced = self._retired
        self._write("RING_TAIL", self._submitted & 0xFFFFFFFF)
        self._write("CPL_HEAD", self.register("CPL_TAIL"))
        self._write("IRQ_STATUS", field_value("IRQ_STATUS", completion=1, fault=1, halted=1))
        self._write("IRQ_ENABLE", field_value("IRQ_ENABLE", completion=1, fault=1, halted=1))
        self.go_on()

    def add(self, job: DeviceJob, *, window_after: int = 0, barrier: bool = False, hold: bool = False) -> None:
        """Write ``job`` to the ring; :meth:`ring_doorbell` announces it. Raise :class:`DriverError` if the ring is
        full, unless it may ``hold`` the job back until others have retired.

        ``window_after``: of the descriptor; ``barrier``: prologues of all later jobs wait until this one has retired.
        """
        free = self.free
        if not free and not hold:
            raise DriverError(f"engine {self.number}: the job ring is full ({self.capacity} entries)")
        job.place = self.place
        job.window_after = self._behind_barrier(job.place, window_after)
        if barrier:
            self._barrier = job.place
        job.state = JobState.HELD
        self._jobs.append(job)
        if free:
            self._post(job, fills=hold)

    def _behind_barrier(self, place: int, window_after: int) -> int:
        """Return ``window_after`` of a job at ``place``, so that its prologue does not start before the barrier has
        retired."""
        distance = 0 if self._barrier is None else place - self._barrier
        return distance if 0 < distance < _WINDOW_LIMIT and not 0 < window_after <= distance else window_after

    def _post(self, job: DeviceJob, *, fills: bool) -> None:
        """Write the descriptor of the first job that is HELD. The one that ``fills`` a ring behind which others may be
        held interrupts, so that whatever waits for room is noticed."""
        if not self._queued:
            self.restart_clock()
        if fills and self._queued + 1 >= self.capacity:
            job.interrupt = True
        slot = self._submitted % self.capacity
        self._bus.write_mem(self._ring + slot * JOB.size, describe(job).pack())
        job.state, job.posted = JobState.QUEUED, self._bus.cycle
        self._submitted += 1

    def _refill(self) -> None:
        while self._queued < min(self.capacity, len(self._jobs)):
            self._post(self._jobs[self._queued], fills=True)
        self.ring_doorbell()

    def ring_doorbell(self) -> None:
        """Announce what was pushed since the last doorbell, if anything."""
        if self._announced != self._submitted:
            self._write("RING_TAIL", self._submitted & 0xFFFFFFFF)
            self._announced = self._submitted

    def take_interrupts(self) -> tuple[dict[str, int], int]:
        """Clear pending interrupts, and then look at the engine, so that nothing is missed that happens meanwhile.
        Return what there is by name (``completion``, ``fault``, ``halted``), and how many jobs have retired."""
        self._write("IRQ_STATUS", field_value("IRQ_STATUS", completion=1, fault=1, halted=1))
        status = self.status()
        _, retired = self.counts(status)
        causes = {
            "completion": int(retired > 0),
            "fault": int(status["state"] == EngineState.FAULT),
            "halted": int(status["state"] == EngineState.HALTED),
        }
        return causes, retired

    def clear_halt(self) -> None:
        """Clear the interrupts of an engine that has halted, without a look at which are pending."""
        self._write("IRQ_STATUS", field_value("IRQ_STATUS", completion=1, halted=1))

    def take_completions(self, count: int | None = None) -> list[tuple[DeviceJob, dict[str, int]]]:
        """Return the jobs whose completions were written since the last call, oldest first, with these, and give their
        slots back. Those that have failed stay in :attr:`jobs` until the engine is reset. ``count``: how many there
        are, if that is known."""
        if count is None:
            count = (self.register("CPL_TAIL") - self._retired) & 0xFFFFFFFF
        if count > self._queued:
            raise DriverError(
                f"engine {self.number}: {count} completions for {self.outstanding} outstanding jobs; reset the engine"
            )
        entries = []
        for _ in range(count):
            slot = self._retired % self.capacity
            at = self._completions + slot * COMPLETION.size
            job = self._jobs.popleft()
            entry = checked(COMPLETION.unpack(self._bus.read_mem(at, COMPLETION.size)), job, at)
            entries.append((job, entry))
            self._retired += 1
            if entry["status"]:
                self._failed.append(job)
        if count:
            self._since = self._oldest_since(entries[-1][1])
            self._write("CPL_HEAD", self._retired & 0xFFFFFFFF)
            self._refill()
        return entries

    def _oldest_since(self, before: dict[str, int]) -> int:
        """Return since when the oldest job is that, by the completion of the one ``before`` it, which may be taken long
        after it was written: since the end of that one, if the job was in the ring and no clock has begun again
        since."""
        now = self._bus.cycle
        if before["status"] or not self._queued:
            return now
        return min(now, max(self._since, before["end"], self._jobs[0].posted))

    def restart_clock(self) -> None:
        """Start the clock of the oldest job from now on."""
        self._since = self._bus.cycle

    def culprit(self, record: FaultRecord) -> DeviceJob | None:
        """Return the job of a fault: the one that ``record`` names or, where the engine could not read whose it is, the
        oldest; None without any."""
        jobs = self.jobs
        return next((job for job in jobs if job.id == record.job_id), jobs[0] if jobs else None)

    def fault(self) -> FaultRecord:
        """Return the FAULT registers."""
        fields = self._regs.read_fields(f"E{self.number}.FAULT_CODE")
        job_id, pc, address = (self.register(f"FAULT_{name}") for name in ("JOB", "PC", "ADDR"))
        code, unit = fields["code"], fields["unit"]
        return fault_record(self.number, status=code, unit=unit, job_id=job_id, pc=pc, address=address)

    def pause(self) -> None:
        """Ask the engine to halt at the next cancellation point or before the next body."""
        self._paused = True
        self._write("CONTROL", field_value("CONTROL", enable=1, pause=1))

    def go_on(self) -> None:
        """Withdraw a pause; a halted engine continues."""
        self._paused = False
        self.restart_clock()
        self._write("CONTROL", field_value("CONTROL", enable=1))

    def state(self) -> EngineState:
        """Return STATUS.state."""
        return EngineState(self.status()["state"])

    def status(self) -> dict[str, int]:
        """Return the fields of STATUS."""
        return self._regs.read_fields(f"E{self.number}.STATUS")

    def counts(self, status: dict[str, int]) -> tuple[int, int]:
        """Return how many jobs were loaded, and how many of those in the ring have retired, by its ``status``."""
        if self._queued >= _STATUS_COUNTS:
            loaded, retired = self.register("RING_LOADED"), self.register("CPL_TAIL")
            return loaded, (retired - self._retired) & 0xFFFFFFFF
        retired = (status["retired"] - self._retired) % _STATUS_COUNTS
        return self._retired + retired + (status["loaded"] - status["retired"]) % _STATUS_COUNTS, retired

    def reset(self) -> list[DeviceJob]:
        """Stop and clear this engine alone, and set its rings up again; return its jobs, which are LOST."""
        self._stop()
        jobs = self.jobs
        self._program()
        for job in jobs:
            job.state = JobState.LOST
        return jobs

    def take_off(self) -> list[DeviceJob]:
        """Take all jobs off a halted engine and return them, OFF. It keeps its ring registers, so two writes do."""
        jobs = self.jobs
        if self._jobs:
            self._stop()
            self._forget()
            self._submitted = self._announced = self._retired = 0
            self.go_on()
        self._failed.clear()
        for job in jobs:
            job.state = JobState.OFF
        return jobs

    def _stop(self) -> None:
        self._write("CONTROL", field_value("CONTROL", reset=1))
        for _ in range(_RESET_POLLS):
            state = self.state()
            if state == EngineState.DISABLED:
                return
            if state == EngineState.HUNG:
                break
            self._bus.advance(RESET_POLL_CYCLES)
        raise DriverError(
            f"engine {self.number} did not come out of reset: a memory transaction has not ended; open the device again"
        )

    def describe(self, semaphores: int) -> str:
        """Return what the engine is doing, for a time-out: state, current job, PC and semaphores that are not zero."""
        state = self.state()
        counts = [(i, self.register(f"SEM[{i}]")) for i in range(semaphores)]
        held = ", ".join(f"{i}:{count}" for i, count in counts if count) or "all zero"
        return (
            f"engine {self.number}: {state.name}, job id {self.register('CURRENT_JOB')}, "
            f"PC {self.register('CURRENT_PC')}, {self.outstanding} jobs outstanding, semaphores {held}"
        )
