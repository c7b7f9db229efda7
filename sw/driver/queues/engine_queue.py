"""Keeps one engine's queue for the driver: job ring, completion ring, doorbell and interrupt."""

from collections import deque

from hw.contract.job import COMPLETION, JOB, Fault, FaultUnit, JobFlag
from hw.contract.regs import EngineState
from sim.bus import Bus
from sw.driver.errors import DriverError, FaultRecord
from sw.driver.queues.registers import RegisterAccess, field_value

RING_LOG2 = 6  #: log2 of the entries of a ring, unless told otherwise
#: Register accesses to serve one engine's interrupt: IRQ, IRQ_STATUS twice, CPL_TAIL, CPL_HEAD.
SERVE_ACCESSES = 5
#: Register accesses to empty an engine that has halted, at most: reset, two looks at its end, enable.
EMPTY_ACCESSES = 4
RESET_POLL_CYCLES = 200  #: between two looks at the end of a reset
_RESET_POLLS = 1000
_WORD = 1 << 32
_WINDOW_LIMIT = 1 << 16  #: ``window_after`` reaches no further


class EngineQueue:
    """Keeps rings of 2 ** ``log2`` entries at ``ring`` (jobs) and ``completions`` in DRAM, both multiples of 256.

    Indices are free-running counts as in ``hw.contract.job``; Python integers here, 32 bits in registers.
    """

    def __init__(self, bus: Bus, regs: RegisterAccess, number: int, *, ring: int, completions: int, log2: int) -> None:
        self.number = number
        self._bus, self._regs = bus, regs
        self._ring, self._completions, self._log2 = ring, completions, log2
        self._submitted = self._announced = self._retired = 0
        self._unfinished: deque[tuple[int, dict[str, int]]] = deque()  # (index, descriptor), oldest first
        self._backlog: deque[tuple[int, dict[str, int]]] = deque()
        self._barrier: int | None = None
        self._since, self._paused = bus.cycle, False
        self._program()

    @property
    def capacity(self) -> int:
        """Return how many jobs the ring holds."""
        return 1 << self._log2

    @property
    def outstanding(self) -> int:
        """Return how many jobs are queued whose completion was not taken."""
        return len(self._unfinished) + len(self._backlog)

    @property
    def free(self) -> int:
        """Return how many jobs can be pushed now."""
        return 0 if self._backlog else self.capacity - len(self._unfinished)

    @property
    def unfinished(self) -> list[tuple[int, dict[str, int]]]:
        """Return ring index and descriptor of every job queued whose completion was not taken, oldest first."""
        return [*self._unfinished, *self._backlog]

    @property
    def oldest(self) -> dict[str, int] | None:
        """Return the descriptor of the oldest job whose completion was not taken."""
        return self._unfinished[0][1] if self._unfinished else None

    @property
    def clock(self) -> int | None:
        """Return the cycle since when the oldest job has been the oldest, as far as is known. It is None without a job,
        and while a pause lasts."""
        return None if self._paused or not self._unfinished else self._since

    @property
    def behind_barrier(self) -> bool:
        """Return whether the latest job is the first behind a barrier."""
        return not self._backlog and self._barrier is not None and self._barrier == self._submitted - 2

    @property
    def pushed(self) -> int:
        """Return how many jobs were pushed since the rings were set up."""
        return self._submitted

    @property
    def place(self) -> int:
        """Return the ring index of the next job."""
        return self._submitted + len(self._backlog)

    def not_loaded(self) -> list[int]:
        """Return the ids of queued jobs whose prologue has not run, oldest first: the loader is at the first of
        them."""
        loaded = self.register("RING_LOADED") if self.outstanding else 0
        return [members["job_id"] for i, members in self.unfinished if not 0 < (loaded - i) % _WORD <= _WORD // 2]

    def register(self, name: str) -> int:
        """Read one of this engine's registers."""
        return self._regs.read(f"E{self.number}.{name}")

    def _write(self, name: str, value: int) -> None:
        self._regs.write(f"E{self.number}.{name}", value)

    def _forget(self) -> None:
        self._unfinished.clear()
        self._backlog.clear()
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

    def push(self, **descriptor: int) -> None:
        """Write one job descriptor (members of ``job.JOB``) to the ring; :meth:`ring_doorbell` announces it."""
        if not self.free:
            raise DriverError(f"engine {self.number}: the job ring is full ({self.capacity} entries)")
        self._store(self._guard(self._submitted, descriptor))

    def requeue(self, descriptor: dict[str, int], *, barrier: bool = False) -> None:
        """Push as :meth:`push` does, but what a full ring does not hold follows as jobs retire.

        ``barrier``: prologues of all later jobs wait until this one has retired.
        """
        index = self.place
        descriptor = self._guard(index, descriptor)
        if barrier:
            self._barrier = index
        if self.free:
            self._store(self._announcing(descriptor))
        else:
            self._backlog.append((index, descriptor))

    def _announcing(self, descriptor: dict[str, int]) -> dict[str, int]:
        """Return the descriptor; the one that fills the ring interrupts, so that whatever waits for room is noticed."""
        if len(self._unfinished) + 1 < self.capacity:
            return descriptor
        return {**descriptor, "flags": descriptor["flags"] | int(JobFlag.INTERRUPT)}

    def _guard(self, index: int, descriptor: dict[str, int]) -> dict[str, int]:
        """Return the descriptor with its prologue held back until the barrier has retired."""
        distance = 0 if self._barrier is None else index - self._barrier
        after = descriptor.get("window_after", 0)
        if 0 < distance < _WINDOW_LIMIT and not 0 < after <= distance:
            return {**descriptor, "window_after": distance}
        return descriptor

    def _store(self, descriptor: dict[str, int]) -> None:
        if not self._unfinished:
            self.restart_clock()
        slot = self._submitted % self.capacity
        self._bus.write_mem(self._ring + slot * JOB.size, JOB.pack(**descriptor))
        self._unfinished.append((self._submitted, descriptor))
        self._submitted += 1

    def _refill(self) -> None:
        while self._backlog and len(self._unfinished) < self.capacity:
            self._store(self._announcing(self._backlog.popleft()[1]))
        self.ring_doorbell()

    def ring_doorbell(self) -> None:
        """Announce what was pushed since the last doorbell, if anything."""
        if self._announced != self._submitted:
            self._write("RING_TAIL", self._submitted & 0xFFFFFFFF)
            self._announced = self._submitted

    def take_interrupts(self) -> dict[str, int]:
        """Return pending interrupts by name (``completion``, ``fault``, ``halted``), and clear them."""
        pending = self._regs.read_fields(f"E{self.number}.IRQ_STATUS")
        self._write("IRQ_STATUS", field_value("IRQ_STATUS", **pending))
        return pending

    def take_completions(self) -> list[dict[str, int]]:
        """Return the completions written since the last call, oldest first, and give their ring slots back."""
        count = (self.register("CPL_TAIL") - self._retired) & 0xFFFFFFFF
        if count > len(self._unfinished):
            raise DriverError(
                f"engine {self.number}: {count} completions for {self.outstanding} outstanding jobs; reset the engine"
            )
        entries = []
        for _ in range(count):
            slot = self._retired % self.capacity
            at = self._completions + slot * COMPLETION.size
            index, descriptor = self._unfinished.popleft()
            entries.append(_checked(COMPLETION.unpack(self._bus.read_mem(at, COMPLETION.size)), index, descriptor, at))
            self._retired += 1
        if count:
            self.restart_clock()
            self._write("CPL_HEAD", self._retired & 0xFFFFFFFF)
            self._refill()
        return entries

    def restart_clock(self) -> None:
        """Start the clock of the oldest job from now on."""
        self._since = self._bus.cycle

    def fault(self) -> FaultRecord:
        """Return the FAULT registers."""
        fields = self._regs.read_fields(f"E{self.number}.FAULT_CODE")
        return fault_record(
            self.number,
            status=fields["code"],
            unit=fields["unit"],
            job_id=self.register("FAULT_JOB"),
            pc=self.register("FAULT_PC"),
            address=self.register("FAULT_ADDR"),
        )

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
        return EngineState(self._regs.read_fields(f"E{self.number}.STATUS")["state"])

    def reset(self) -> None:
        """Stop and clear this engine alone; jobs in its ring are lost, rings are set up again."""
        self._stop()
        self._program()

    def empty(self) -> None:
        """Clear the queue as :meth:`reset` does, for an engine that halted: it keeps its ring registers, so two writes
        do."""
        self._stop()
        self._forget()
        self._submitted = self._announced = self._retired = 0
        self.go_on()

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


def _checked(entry: dict[str, int], index: int, descriptor: dict[str, int], address: int) -> dict[str, int]:
    """Return a completion. If it is not that of the job that must have retired, or says what none can, return a BUS
    fault of that job."""
    expected = descriptor["job_id"], index & 0xFFFFFFFF
    if (entry["job_id"], entry["index"]) == expected and entry["status"] in Fault.__members__.values():
        return entry
    damaged = {"status": int(Fault.BUS), "unit": int(FaultUnit.RING), "pc": 0, "address": address & 0xFFFFFFFF}
    return {**entry, **damaged, "job_id": expected[0], "index": expected[1]}


def fault_record(engine: int, *, status: int, unit: int, job_id: int, pc: int, address: int) -> FaultRecord:
    """Return a :class:`FaultRecord` from raw numbers; numbers without a name stay readable."""
    code = Fault(status) if status in Fault.__members__.values() else Fault.NONE
    name = FaultUnit(unit).name if unit in FaultUnit.__members__.values() else f"unit {unit}"
    return FaultRecord(engine, code, name, job_id, pc, address)
