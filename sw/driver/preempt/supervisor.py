"""Queues supervisor jobs: programs the driver writes itself, queued like any other job."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hw.contract.isa import INSN_BYTES, LV2_SEGMENTS, SEGMENTS
from hw.contract.job import JOB_MAGIC, JobFlag
from sw.driver.errors import FaultRecord, SupervisorFault, SupervisorTimeout
from sw.driver.memory.allocator import Allocator
from sw.driver.memory.ranges import Range, overlap
from sw.driver.models.loaded_model import LoadedModel
from sw.driver.models.traffic import DramTraffic
from sw.driver.preempt.copies import DRAM_SEGMENT, LV2_SEGMENT
from sw.driver.preempt.operation import CopyResult, Effects, StateTransfer
from sw.driver.preempt.program import MAX_INSTRUCTIONS
from sw.driver.queues.events import EventPool
from sw.driver.queues.job_queues import JobQueues

CODE_BYTES = 32 * 1024  #: DRAM for programs of each engine, several of which fit
_ALIGN = 256
_POLL = 200
_TAG = 0xFFFF << 16  #: model number of supervisor jobs in completions


@dataclass(frozen=True)
class SupervisorJob:
    """Describes a job of an operation. ``models``: whose state it moves, or waits for; ``own``: by loads of their own
    image. ``bytes``: to or from DRAM; None for one that only waits."""

    operation: StateTransfer
    models: Sequence[LoadedModel]
    own: bool
    engine: int
    bytes: int | None
    code: Range
    effects: Effects


class Supervisor:
    """Writes programs to DRAM, queues them, and keeps operations in order across engines with one hardware event."""

    def __init__(self, queues: JobQueues, dram: Allocator, events: EventPool) -> None:
        self._queues, self._params = queues, queues.params
        engines = range(self._params.engines)
        self._code = [dram.allocate(CODE_BYTES, _ALIGN, f"supervisor code of engine {e}") for e in engines]
        self._next = [0] * self._params.engines
        self._event = events.lease(1, "driver")
        self._signals = 0
        self.jobs: dict[int, SupervisorJob] = {}  #: outstanding, by job id
        self._event.begin()

    def segments(self) -> list[Range]:
        """Return (first byte, size) of the segments of programs that move data: all of DRAM, all of LV2."""
        result = [(0, 0)] * SEGMENTS
        result[DRAM_SEGMENT] = (0, self._params.dram_bytes)
        result[LV2_SEGMENT] = (0, self._params.lv2_bytes)
        return result

    def push(
        self,
        operation: StateTransfer,
        engine: int,
        program: bytes,
        models: Sequence[LoadedModel],
        *,
        cycle_limit: int,
        segments: Sequence[Range] | None = None,
        after: int | None = None,
        signal: bool = False,
        moved: int | None = None,
        effects: Effects | None = None,
    ) -> None:
        """Queue ``program``, which moves state of ``models``. ``segments``: those of a model whose own loads it runs.
        ``after``: number of signals (as :meth:`signals` counts) to wait for; ``signal``: the job gives one when it
        retires. Prologues of later jobs of the engine wait for it.

        Where the engine's programs leave no room, those queued so far begin, and it is waited until there is; raises as
        :meth:`wait`."""
        job_id = self._queues.new_id()
        members = self._descriptor(engine, program, segments or self.segments(), job_id)
        members["cycle_limit"] = cycle_limit
        if after is not None:
            members["wait0_id"], members["wait0_value"] = self._event.wait(0, after)
            members["flags"] |= JobFlag.WAIT0
        if signal:
            members["signal_id"] = self._event.signalled(0)
            members["flags"] |= JobFlag.SIGNAL
            self._signals += 1
        code = (members["base0"], members["base0"] + members["limit0"])
        job = SupervisorJob(operation, models, segments is not None, engine, moved, code, effects or Effects())
        self.jobs[job_id] = job
        operation.jobs.add(job_id)
        self._queues.requeue(engine, members, self, barrier=True)

    @property
    def signals(self) -> int:
        """Return how many signals all jobs queued so far give."""
        return self._signals

    def _descriptor(self, engine: int, program: bytes, segments: Sequence[Range], job_id: int) -> dict[str, int]:
        members = {"magic": JOB_MAGIC, "flags": 0, "job_id": job_id, "tag": _TAG, "body_pc": 0}
        table = [(self._write(engine, program), len(program)), *segments[1:]]
        for i, (base, limit) in enumerate(table):
            members[f"base{i}"], members[f"limit{i}"] = base, limit
        return members

    def _write(self, engine: int, program: bytes) -> int:
        start = self._next[engine] if self._next[engine] + len(program) <= CODE_BYTES else 0
        address = self._code[engine] + start
        where = (address, address + len(program))
        if self._holds_code(where):
            self.announce()
            self.wait(lambda: not self._holds_code(where))
        self._next[engine] = start + len(program)
        self._queues.bus.write_mem(address, program)
        return address

    def _holds_code(self, where: Range) -> bool:
        return any(overlap([job.code], [where]) for job in self.jobs.values())

    def announce(self) -> None:
        """Let the jobs queued so far begin."""
        for e in self.engines():
            self._queues.engines[e].ring_doorbell()

    def wait(self, done: Callable[[], bool]) -> None:
        """Take completions of the jobs until ``done``; raises ``SupervisorFault`` if one fails, ``DeviceTimeout`` for a
        job that is overdue."""
        while not done():
            for e in self.engines():
                self._queues.take_completions(e)
            if not done() and not self._queues.poll(_POLL):
                self._queues.refuse_overdue()

    def engines(self) -> list[int]:
        """Return the engines with supervisor jobs."""
        return sorted({job.engine for job in self.jobs.values()})

    # -- as owner of the jobs (``JobOwner``) -----------------------------------------------------------------
    def completed(self, engine: int, completion: dict[str, int]) -> None:
        """Let the effects of a job happen; if it was the last of its operation, end that."""
        job_id = completion["job_id"]
        job = self.jobs.pop(job_id)
        moved = None
        if job.bytes is not None:
            traffic = DramTraffic.of(completion)
            moved = CopyResult(engine, completion["start"], completion["end"], job.bytes, traffic)
        job.operation.job_ended(job_id, moved)
        job.effects.on_start()
        job.effects.on_end()
        job.operation.settle()

    def fault_of(self, record: FaultRecord) -> SupervisorFault:
        """Return a ``SupervisorFault``: no suspended task has lost anything by it."""
        job = self.jobs[record.job_id]
        return SupervisorFault(replace(record, job=self.describe(record.job_id)), job.models, own=job.own)

    def overdue(self, engine: int, job_id: int, message: str) -> SupervisorTimeout:
        """Return a ``SupervisorTimeout``: no suspended task has lost anything by it."""
        return SupervisorTimeout(message, self.jobs[job_id].models, own=self.jobs[job_id].own)

    def lost(self, engine: int, job_ids: Sequence[int]) -> None:
        """Forget jobs that were lost. The oldest may have begun, the others have not."""
        for i, job_id in enumerate(job_ids):
            job = self.jobs.pop(job_id)
            job.operation.job_lost(job_id)
            if i == 0:
                job.effects.on_start()
        if not self.jobs:
            self._event.synchronise()
            self._event.begin()
            self._signals = 0

    def describe(self, job_id: int) -> str:
        """Return the job as text: ``a dump job of the driver, for 'digits'``."""
        job = self.jobs[job_id]
        return f"a {job.operation.name} job of the driver, for {', '.join(repr(model.name) for model in job.models)}"


def private_segments(segments: Sequence[Range]) -> list[Range]:
    """Return the segments of a model for its reload instructions: all of its own but the code."""
    return [(0, 0), *segments[1:]]


assert LV2_SEGMENT in LV2_SEGMENTS
assert (MAX_INSTRUCTIONS + 1) * INSN_BYTES <= CODE_BYTES
