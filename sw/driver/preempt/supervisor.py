"""Queues supervisor jobs: programs the driver writes itself, queued like any other job."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hw.contract.isa import INSN_BYTES, LV2_SEGMENTS, SEGMENTS
from sw.driver.errors import FaultRecord, SupervisorFault, SupervisorTimeout
from sw.driver.memory.allocator import Allocator
from sw.driver.memory.ranges import Range, overlap
from sw.driver.models.loaded_model import LoadedModel
from sw.driver.preempt.copies import DRAM_SEGMENT, LV2_SEGMENT, MAX_INSTRUCTIONS
from sw.driver.preempt.state_transfer import CopyResult, Effects, StateTransfer
from sw.driver.queues.descriptor import Descriptor
from sw.driver.queues.events import EventPool
from sw.driver.queues.job import DeviceJob, DramTraffic
from sw.driver.queues.job_queues import JobQueues

CODE_BYTES = 32 * 1024  #: DRAM for programs of each engine, several of which fit
_ALIGN = 256
_POLL = 200
_TAG = 0xFFFF << 16  #: model number of supervisor jobs in completions


@dataclass(frozen=True)
class _Purpose:
    """Says what a job of ``operation`` is for. ``own``: its models' state is moved by loads of their own image.
    ``bytes``: to or from DRAM; None for a job that only waits."""

    operation: StateTransfer
    own: bool
    bytes: int | None
    effects: Effects


class Supervisor:
    """Writes programs to DRAM, queues them, and keeps operations in order across engines with one hardware event."""

    def __init__(self, queues: JobQueues, dram: Allocator, events: EventPool) -> None:
        self._queues, self._params = queues, queues.params
        engines = range(self._params.engines)
        self._code = [dram.allocate(CODE_BYTES, _ALIGN, f"supervisor code of engine {e}") for e in engines]
        self._next = [0] * self._params.engines
        self._written: list[dict[bytes, int]] = [{} for _ in engines]  #: programs in DRAM, and where, by engine
        self._event = events.lease(1, "driver")
        self.signals = 0  #: given by all jobs queued so far
        self._event.begin()

    @property
    def jobs(self) -> list[DeviceJob]:
        """Return the jobs that are outstanding."""
        return [job for job in self._queues.jobs if job.party is self]

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
        code = (self._write(engine, program), len(program))
        work = Descriptor(
            segments=(code, *(segments or self.segments())[1:]),
            cycle_limit=cycle_limit,
            tag=_TAG,
            waits=() if after is None else (self._event.wait(0, after),),
            signal=self._event.signalled(0) if signal else None,
        )
        self.signals += signal
        purpose = _Purpose(operation, segments is not None, moved, effects or Effects())
        job = DeviceJob(job_id, engine, work, self, tuple(models), purpose=purpose)
        operation.jobs.append(job)
        self._queues.engines[engine].add(job, barrier=True, hold=True)

    def _write(self, engine: int, program: bytes) -> int:
        """Return where ``program`` lies. Switches are alike: one that is there from before is not written again."""
        written = self._written[engine]
        if program in written:
            return written[program]
        start = self._next[engine] if self._next[engine] + len(program) <= CODE_BYTES else 0
        address = self._code[engine] + start
        where = (address, address + len(program))
        if self._holds_code(where):
            self.announce()
            self.wait(lambda: not self._holds_code(where))
        self._next[engine] = start + len(program)
        for old in [old for old, at in written.items() if overlap([(at, at + len(old))], [where])]:
            del written[old]
        self._queues.bus.write_mem(address, program)
        written[program] = address
        return address

    def _holds_code(self, where: Range) -> bool:
        code = [(start, start + size) for start, size in (job.work.segments[0] for job in self.jobs)]
        return overlap(code, [where])

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
        return sorted({job.engine for job in self.jobs})

    # -- as party of the jobs (``Party``) --------------------------------------------------------------------
    def ended(self, job: DeviceJob, completion: dict[str, int]) -> None:
        """Note that the job has done what it was to do; if it was the last of its operation, that has ended."""
        purpose: _Purpose = job.purpose
        if purpose.bytes is not None:
            traffic = DramTraffic.of(completion)
            start, end = completion["start"], completion["end"]
            moved = CopyResult(job.engine, start, end, purpose.bytes, traffic, job.models)
            purpose.operation.results.append(moved)
        purpose.effects.on_start()
        purpose.effects.on_end()
        purpose.operation.settle()

    def fault_of(self, job: DeviceJob, record: FaultRecord) -> SupervisorFault:
        """Return a ``SupervisorFault``: no suspended task has lost anything by it."""
        return SupervisorFault(replace(record, job=self.describe(job)), job.models, own=job.purpose.own)

    def overdue(self, job: DeviceJob, message: str) -> SupervisorTimeout:
        """Return a ``SupervisorTimeout``: no suspended task has lost anything by it."""
        return SupervisorTimeout(message, job.models, own=job.purpose.own)

    def lost(self, engine: int, jobs: Sequence[DeviceJob]) -> None:
        """Forget jobs that were lost. The oldest may have begun, the others have not."""
        jobs[0].purpose.effects.on_start()
        if not self.jobs:
            self._event.synchronise()
            self._event.begin()
            self.signals = 0

    def describe(self, job: DeviceJob) -> str:
        """Return the job as text: ``a dump job of the driver, for 'digits'``."""
        names = ", ".join(repr(model.name) for model in job.models)
        return f"a {job.purpose.operation.name} job of the driver, for {names}"


assert LV2_SEGMENT in LV2_SEGMENTS
assert (MAX_INSTRUCTIONS + 1) * INSN_BYTES <= CODE_BYTES
