"""Supervisor jobs: programs the driver writes itself, queued like any other job."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hw.contract.isa import INSN_BYTES, LV2_SEGMENTS, SEGMENTS
from hw.contract.job import JOB_MAGIC, JobFlag
from sw.driver.dump import DRAM_SEGMENT, LV2_SEGMENT
from sw.driver.errors import DriverError
from sw.driver.ranges import Range, overlap

if TYPE_CHECKING:
    from sw.driver.device import Device

CODE_BYTES = 32 * 1024  #: DRAM for programs of each engine
_ALIGN = 256
_TAG = 0xFFFF << 16  #: model number of supervisor jobs in completions


@dataclass(frozen=True)
class SupervisorResult:
    """One supervisor job that ran. ``purpose``: ``dump`` or ``restore``; times as in ``JobResult``."""

    engine: int
    purpose: str
    start: int
    end: int
    bytes: int


@dataclass(eq=False)
class Operation:
    """Supervisor jobs that belong together. ``on_done`` is called once, when the last of them has completed."""

    purpose: str
    on_done: Callable[[], None]
    jobs: dict[int, "SupervisorJob"] = field(default_factory=dict)  #: not completed, by job id
    results: list[SupervisorResult] = field(default_factory=list)
    closed: bool = False  #: all jobs were pushed


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Effects:
    """What a job changes. ``on_start``: to be assumed once it may have begun; ``on_end``: once it has completed."""

    on_start: Callable[[], None] = _nothing
    on_end: Callable[[], None] = _nothing


@dataclass(frozen=True)
class SupervisorJob:
    """A job of an operation. ``bytes``: to or from DRAM; None for one that only waits."""

    operation: Operation
    engine: int
    bytes: int | None
    code: Range
    effects: Effects


class Supervisor:
    """Writes programs to DRAM, queues them, and keeps operations in order across engines with one hardware event."""

    def __init__(self, device: "Device") -> None:
        self._device = device
        self._code = [
            device.dram.allocate(CODE_BYTES, _ALIGN, f"supervisor code of engine {e}")
            for e in range(device.params.engines)
        ]
        self._next = [0] * device.params.engines
        self._event = device.events.lease(1, "driver")
        self._signals = 0
        self.jobs: dict[int, SupervisorJob] = {}  #: outstanding, by job id
        self._event.begin()

    def segments(self) -> list[Range]:
        """(first byte, size) of the segments of programs that move data: all of DRAM, all of LV2."""
        result = [(0, 0)] * SEGMENTS
        result[DRAM_SEGMENT] = (0, self._device.params.dram_bytes)
        result[LV2_SEGMENT] = (0, self._device.params.lv2_bytes)
        return result

    def push(
        self,
        operation: Operation,
        engine: int,
        program: bytes,
        *,
        segments: Sequence[Range] | None = None,
        after: int | None = None,
        signal: bool = False,
        moved: int | None = None,
        effects: Effects | None = None,
    ) -> None:
        """Queue ``program``. ``after``: number of signals (as :meth:`signals` counts) to wait for; ``signal``: the job
        gives one when it retires. Prologues of later jobs of the engine wait for it."""
        job_id = self._device.books.new_id()
        members = self._descriptor(engine, program, segments or self.segments(), job_id)
        if after is not None:
            members["wait0_id"], members["wait0_value"] = self._event.wait(0, after)
            members["flags"] |= JobFlag.WAIT0
        if signal:
            members["signal_id"] = self._event.signalled(0)
            members["flags"] |= JobFlag.SIGNAL
            self._signals += 1
        code = (members["base0"], members["base0"] + members["limit0"])
        job = SupervisorJob(operation, engine, moved, code, effects or Effects())
        self.jobs[job_id] = operation.jobs[job_id] = job
        self._device.engines[engine].requeue(members, barrier=True)

    @property
    def signals(self) -> int:
        """Signals given by all jobs queued so far."""
        return self._signals

    def _descriptor(self, engine: int, program: bytes, segments: Sequence[Range], job_id: int) -> dict[str, int]:
        members = {"magic": JOB_MAGIC, "flags": 0, "job_id": job_id, "tag": _TAG, "body_pc": 0}
        table = [(self._write(engine, program), len(program)), *segments[1:]]
        for i, (base, limit) in enumerate(table):
            members[f"base{i}"], members[f"limit{i}"] = base, limit
        return members

    def _write(self, engine: int, program: bytes) -> int:
        if len(program) > CODE_BYTES // 2:
            raise DriverError(
                f"a supervisor program of {len(program) // INSN_BYTES} instructions exceeds "
                f"{CODE_BYTES // 2 // INSN_BYTES}: compile with smaller tiles, so that points have fewer reloads"
            )
        if self._next[engine] + len(program) > CODE_BYTES:
            self._next[engine] = 0
        address = self._code[engine] + self._next[engine]
        if any(overlap([job.code], [(address, address + len(program))]) for job in self.jobs.values()):
            raise DriverError(
                f"engine {engine}: more than {CODE_BYTES} bytes of supervisor programs at once; suspend less"
            )
        self._next[engine] += len(program)
        self._device.bus.write_mem(address, program)
        return address

    def finish(self, job_id: int, start: int, end: int) -> bool:
        """Account for a completion; False if the job is not the supervisor's."""
        job = self.jobs.pop(job_id, None)
        if job is None:
            return False
        operation = job.operation
        operation.jobs.pop(job_id)
        if job.bytes is not None:
            operation.results.append(SupervisorResult(job.engine, operation.purpose, start, end, job.bytes))
        job.effects.on_start()
        job.effects.on_end()
        self.settle(operation)
        return True

    @staticmethod
    def settle(operation: Operation) -> None:
        """Call ``on_done`` if everything has completed."""
        if operation.closed and not operation.jobs:
            operation.closed = False
            operation.on_done()

    def drop(self, engine: int) -> None:
        """The engine was reset: its supervisor jobs are gone. The oldest may have begun."""
        mine = [job_id for job_id, job in self.jobs.items() if job.engine == engine]
        for i, job_id in enumerate(mine):
            job = self.jobs.pop(job_id)
            job.operation.jobs.pop(job_id)
            job.operation.closed = False
            if i == 0:
                job.effects.on_start()
        if mine and not self.jobs:
            self._event.synchronise()
            self._event.begin()
            self._signals = 0


def private_segments(segments: Sequence[Range]) -> list[Range]:
    """Segments of a model for its reload instructions: all of its own but the code."""
    return [(0, 0), *segments[1:]]


assert LV2_SEGMENT in LV2_SEGMENTS
