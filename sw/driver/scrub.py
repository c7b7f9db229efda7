"""Clears memories when they change hands, so that nothing of one tenant is left for another.

LV1, LV0 and accumulators are cleared by a job in the ring, between the last job of one tenant and the first of another;
bytes of LV2 windows by a job before an inference, or before a suspended task comes back, where another tenant used them
last. Copies that read nothing write their fill, so that neither needs zeros from anywhere. Models without a tenant are
the host's own, all of one tenant, and pay nothing as long as there are no others.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from hw.contract.isa import INSN_BYTES, SEGMENTS, Insn, Lv0Space, Lv0View, Op, Segment
from hw.contract.params import SocParams
from sw.driver.errors import FaultRecord, SupervisorFault, SupervisorTimeout
from sw.driver.limits import copy_limit
from sw.driver.memory.allocator import Allocator, WindowPool
from sw.driver.memory.ranges import Range, accumulator_bytes
from sw.driver.models.loaded_model import LoadedModel
from sw.driver.queues.descriptor import Descriptor
from sw.driver.queues.job import DeviceJob, JobState
from sw.driver.queues.job_queues import JobQueues

_RUN = 4096  #: bytes of one run
_ALIGN = 256
_PIECES = 32  #: pieces of LV2 that one job clears
_TAG = 0xFFFE << 16  #: model number of these jobs in completions
_LOOK_AFTER = 50_000  #: cycles without an interrupt after which it is looked whether one was lost
_UNKNOWN = object()  #: an engine was reset: whose data it holds is not known


def fill(op: Op, size: int, fields: dict[str, int]) -> list[Insn]:
    """Return copies that write ``size`` zeros from offset 0 on and read nothing."""
    runs, rest = divmod(size, _RUN)
    parts = []
    if runs:
        parts.append(Insn(op, {"len": _RUN, "n0": runs, "dst_s0": _RUN if runs > 1 else 0, **fields}))
    if rest:
        parts.append(Insn(op, {"dst": runs * _RUN, "len": rest, **fields}))
    return parts


def _window(low: int, high: int) -> list[Insn]:
    """Return copies that clear bytes ``low`` to ``high`` of LV2."""
    parts = fill(Op.ST1, high - low, {"dst_seg": int(Segment.LV2)})
    return [Insn(insn.op, insn.fields | {"dst": insn["dst"] + low}) for insn in parts]


def engine_program(params: SocParams) -> bytes:
    """Return a program that clears LV1, LV0 and accumulators of an engine. Its units work side by side."""
    program = fill(Op.LD1, params.lv1_bytes, {"src_seg": int(Segment.LV2)})
    for space, size in ((Lv0Space.ACT, params.lv0_act_bytes), (Lv0Space.WGT, params.lv0_wgt_bytes)):
        fields = {"space": int(space), "view": int(Lv0View.INTERLEAVED)}
        program += fill(Op.LD0, params.pes * size, fields)
    program += fill(Op.LD0, 4 * params.out_channels * params.lv0_acc_rows, {"space": int(Lv0Space.ACC)})
    return b"".join(insn.encode() for insn in [*program, Insn(Op.END)])


class Scrubber:
    """Knows who used what last, and queues the jobs that clear it. Takes DRAM for its programs once it needs them.

    ``inherited``: earlier drivers of this bus had tenants; what they left is foreign to everybody. Otherwise what is
    there at the start is taken for the host's own.
    """

    def __init__(self, queues: JobQueues, dram: Allocator, lv2: WindowPool, *, inherited: bool = False) -> None:
        self._queues, self._dram, self._lv2 = queues, dram, lv2
        self._inherited = inherited
        first = _UNKNOWN if inherited else None
        self._engines: list[object] = [first] * queues.params.engines  #: tenant of the newest job of each
        self._program: int | None = None
        self.cleared = 0  #: jobs queued so far
        self.faulted: set[int] = set()  #: engines that such a job has stopped by a fault, and that were not reset since

    # -- engines ---------------------------------------------------------------------------------------------
    def must_clear(self, engine: int, model: LoadedModel) -> bool:
        """Return whether the next job on ``engine``, of ``model``, is of another tenant than the one before. What a
        suspended task had there was dumped when ``model`` was admitted: private memories are admitted whole."""
        return self._engines[engine] != model.tenant

    def clear_engine(self, engine: int, model: LoadedModel) -> None:
        """Queue the job that clears ``engine`` for ``model``; there must be room in its ring."""
        params = self._queues.params
        lv0 = params.pes * (params.lv0_act_bytes + params.lv0_wgt_bytes) + accumulator_bytes(params)
        cleared = params.lv1_bytes + lv0
        self._push(engine, model, (self._code(), len(engine_program(params))), cleared)
        self._engines[engine] = model.tenant

    def clear_idle(self, engine: int, model: LoadedModel) -> None:
        """Clear ``engine``, which is idle, for ``model``, and wait until it is."""
        self.clear_engine(engine, model)
        self._ended(lambda: not self._queues.engines[engine].outstanding)

    def _ended(self, done: Callable[[], bool]) -> None:
        """Wait until ``done``. These jobs are short, so an interrupt that is late may be lost."""
        self._queues.wait(done, None, _LOOK_AFTER)

    def taken_off(self, engine: int, jobs: Sequence[DeviceJob], there: LoadedModel | None) -> None:
        """Note that these jobs were taken off an engine; those that clear something are queued anew where they are
        needed. ``there`` is the model that has data in its memories, None if none of the jobs had begun."""
        for job in (job for job in jobs if job.party is self):
            job.state = JobState.LOST
            self._engines[engine] = _UNKNOWN if there is None else there.tenant

    # -- LV2 -------------------------------------------------------------------------------------------------
    def clear_windows(self, model: LoadedModel, kept: Sequence[Range] = ()) -> None:
        """Clear the bytes of LV2 that ``model`` is about to use and another tenant used last, and wait until they are
        clear; no dump takes any of them to DRAM now. ``kept``: bytes that are what a suspended task left."""
        self._ended(self._clear)  # those that somebody gave up waiting for
        foreign = self.foreign(model, kept)
        if foreign:
            self._clear_lv2(model, foreign)

    def foreign(self, model: LoadedModel, kept: Sequence[Range] = ()) -> list[Range]:
        """Return the bytes of LV2 that :meth:`clear_windows` clears."""
        return self._lv2.foreign(model.windows(), model.tenant, kept)

    def _clear_lv2(self, model: LoadedModel, pieces: Sequence[Range]) -> None:
        idle = self._queues.idle()
        engine = min(model.engines, key=lambda e: e not in idle)
        queue = self._queues.engines[engine]
        for i in range(0, len(pieces), _PIECES):
            program = [part for low, high in pieces[i : i + _PIECES] for part in _window(low, high)]
            raw = b"".join(insn.encode() for insn in [*program, Insn(Op.END)])
            at = self._code() + self._room() - _LV2_PROGRAM
            self._queues.bus.write_mem(at, raw)
            self._queues.wait(lambda: bool(queue.free), None)
            cleared = sum(high - low for low, high in pieces[i : i + _PIECES])
            self._push(engine, model, (at, len(raw)), cleared, self._queues.params.lv2_bytes)
            self._ended(self._clear)

    def _clear(self) -> bool:
        """Return whether no job that clears windows is queued."""
        return not any(job.party is self and job.work.segments[Segment.LV2][1] for job in self._queues.jobs)

    # -- DRAM ------------------------------------------------------------------------------------------------
    def clear_dram(self, blocks: Sequence[int], tenant: str | None) -> None:
        """Clear ``blocks``, which are given to a model of ``tenant``, before they are written: an earlier driver, which
        nobody closed, may have left something there. What :meth:`forget` has cleared is cleared again."""
        if self._inherited or tenant is not None:
            self._clear_blocks(blocks)

    def forget(self, model: LoadedModel) -> None:
        """Clear the DRAM of ``model``, which is unloaded."""
        self._clear_blocks(model.placement.dram_blocks)

    def _clear_blocks(self, blocks: Sequence[int]) -> None:
        """Clear DRAM behind the back of simulated time, as models are written, but not what another model shares."""
        for address in blocks:
            self._queues.bus.write_mem(address, bytes(self._dram.of_one_user(address)), charge=False)

    # -- as party of the jobs (``Party``) --------------------------------------------------------------------
    def ended(self, job: DeviceJob, completion: dict[str, int]) -> None:
        """Note that the memory is clear."""

    def fault_of(self, job: DeviceJob, record: FaultRecord) -> SupervisorFault:
        """Return the error, which says for whom memory was to be cleared; a later job will clear it."""
        self.faulted.add(job.engine)
        return SupervisorFault(replace(record, job=f"a job that {self.describe(job)}"), job.models)

    def overdue(self, job: DeviceJob, message: str) -> SupervisorTimeout:
        """Return the error, which says for whom memory was to be cleared; a later job will clear it."""
        self.faulted.add(job.engine)
        return SupervisorTimeout(f"a job that {message}", job.models)

    def lost(self, engine: int, jobs: Sequence[DeviceJob]) -> None:
        """Note that the engine was reset before a job had cleared it: the next job clears it again."""
        self._engines[engine] = _UNKNOWN
        self.faulted.discard(engine)

    def describe(self, job: DeviceJob) -> str:
        """Return the job as text."""
        return "clears memories for another tenant"

    # -- shared ----------------------------------------------------------------------------------------------
    def _room(self) -> int:
        return len(engine_program(self._queues.params)) + _LV2_PROGRAM

    def _code(self) -> int:
        if self._program is None:
            self._program = self._dram.allocate(self._room(), _ALIGN, "programs that clear memories")
            self._queues.bus.write_mem(self._program, engine_program(self._queues.params), charge=False)
        return self._program

    def _push(self, engine: int, model: LoadedModel, code: Range, cleared: int, lv2: int = 0) -> None:
        """Queue the program in ``code`` (first byte and size), which clears so many bytes for ``model``, among them
        some of the first ``lv2`` of LV2."""
        segments = (code, *[(0, 0)] * (SEGMENTS - 1))
        segments = (*segments[: Segment.LV2], (0, lv2), *segments[Segment.LV2 + 1 :])
        work = Descriptor(segments, copy_limit(cleared), _TAG)
        self.cleared += 1
        self._queues.engines[engine].add(DeviceJob(self._queues.new_id(), engine, work, self, (model,), interrupt=True))
        self._queues.ring_doorbells()


_LV2_PROGRAM = (2 * _PIECES + 1) * INSN_BYTES  #: bytes of a program that clears windows, at most
