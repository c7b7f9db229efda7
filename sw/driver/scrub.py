"""Nothing of one tenant is left for another: clearing memories when they change hands.

LV1, LV0 and accumulators are cleared by a job in the ring, between the last job of one tenant and the first of another;
LV2 windows by a job before an inference, where another tenant used these bytes last. Copies that read nothing write
their fill, so that neither needs zeros from anywhere. Models without a tenant are the host's own, all of one tenant,
and pay nothing as long as there are no others.
"""

from collections.abc import Callable, Sequence

from hw.contract.isa import INSN_BYTES, LV2_SEGMENTS, Insn, Lv0Space, Lv0View, Op, Segment
from hw.contract.job import JOB_MAGIC, JobFlag
from hw.contract.params import SocParams
from sw.driver.errors import DeviceFault, FaultRecord
from sw.driver.memory.allocator import Allocator
from sw.driver.memory.ranges import Range, normalise, overlap, subtract
from sw.driver.models.loaded_model import LoadedModel
from sw.driver.queues.job_queues import JobQueues

_RUN = 4096  #: bytes of one run
_ALIGN = 256
_TAG = 0xFFFE << 16  #: model number of these jobs in completions
_LIMIT = 10_000_000  #: cycles
_UNKNOWN = object()  #: an engine was reset: whose data it holds is not known


def fill(op: Op, size: int, fields: dict[str, int]) -> list[Insn]:
    """Copies that write ``size`` zeros from offset 0 on and read nothing."""
    runs, rest = divmod(size, _RUN)
    parts = []
    if runs:
        parts.append(Insn(op, {"len": _RUN, "n0": runs, "dst_s0": _RUN if runs > 1 else 0, **fields}))
    if rest:
        parts.append(Insn(op, {"dst": runs * _RUN, "len": rest, **fields}))
    return parts


def engine_program(params: SocParams) -> bytes:
    """Clears LV1, LV0 and accumulators of an engine. Its units work side by side."""
    program = fill(Op.LD1, params.lv1_bytes, {"src_seg": int(Segment.LV2)})
    for space, size in ((Lv0Space.ACT, params.lv0_act_bytes), (Lv0Space.WGT, params.lv0_wgt_bytes)):
        fields = {"space": int(space), "view": int(Lv0View.INTERLEAVED)}
        program += fill(Op.LD0, params.pes * size, fields)
    program += fill(Op.LD0, 4 * params.out_channels * params.lv0_acc_rows, {"space": int(Lv0Space.ACC)})
    return b"".join(insn.encode() for insn in [*program, Insn(Op.END)])


class Scrubber:
    """Knows who used what last, and queues the jobs that clear it. Takes DRAM for its programs once it needs them."""

    def __init__(self, queues: JobQueues, dram: Allocator, suspended: Callable[[], bool]) -> None:
        self._queues, self._dram, self._suspended = queues, dram, suspended
        self._engines: list[object] = [None] * queues.params.engines  #: tenant of the newest job of each
        self._lv2: list[tuple[Range, str | None]] = []  #: bytes of LV2 and who used them, the latest last
        self._program: int | None = None
        self._waiting: set[int] = set()
        self.cleared = 0  #: jobs queued so far

    # -- engines ---------------------------------------------------------------------------------------------
    def must_clear(self, engine: int, model: LoadedModel) -> bool:
        """Whether the next job on ``engine``, of ``model``, is of another tenant than the one before. What a
        suspended task had there was dumped when ``model`` was admitted: private memories are admitted whole."""
        return self._engines[engine] != model.tenant

    def clear_engine(self, engine: int, model: LoadedModel) -> None:
        """Queue the job that clears ``engine`` for ``model``; there must be room in its ring."""
        size = len(engine_program(self._queues.params))
        self._push(engine, self._code(), {"limit0": size})
        self._engines[engine] = model.tenant

    def clear_idle(self, engine: int, model: LoadedModel) -> None:
        """Clear ``engine``, which is idle, for ``model``, and wait until it is."""
        self.clear_engine(engine, model)
        queue = self._queues.engines[engine]
        self._queues.wait(lambda: not queue.outstanding, _LIMIT)

    def owns(self, job_id: int) -> bool:
        """Whether a job that has not ended is one of these."""
        return job_id in self._waiting

    def taken_off(self, engine: int, job_ids: Sequence[int], there: LoadedModel | None) -> None:
        """These jobs, some of which are of models, will not run: the engine was emptied. ``there``: the model that has
        data in its memories; None if none of the jobs had begun."""
        if mine := self._waiting.intersection(job_ids):
            self._waiting -= mine
            self._engines[engine] = _UNKNOWN if there is None else there.tenant

    # -- LV2 -------------------------------------------------------------------------------------------------
    def clear_windows(self, model: LoadedModel) -> None:
        """Clear the bytes of LV2 that ``model`` is about to use if another tenant used some of them last."""
        windows = [(base, base + size) for base, size in (model.segments[i] for i in LV2_SEGMENTS) if size]
        foreign = any(tenant != model.tenant and overlap([where], windows) for where, tenant in self._lv2)
        if foreign and self._suspended():  # they may have data there; it stays foreign
            return
        kept = [(piece, tenant) for where, tenant in self._lv2 for piece in subtract([where], windows)]
        self._lv2 = kept + [(window, model.tenant) for window in windows]
        if not foreign:
            return
        for low, high in normalise(windows):  # what lies between them is not its own
            self._clear_lv2(model, low, high)

    def _clear_lv2(self, model: LoadedModel, low: int, high: int) -> None:
        program = fill(Op.ST1, high - low, {"dst_seg": int(Segment.LV2)})
        raw = b"".join(insn.encode() for insn in [*program, Insn(Op.END)])
        at = self._code() + self._room() - _LV2_PROGRAM
        self._queues.bus.write_mem(at, raw)
        members = {"limit0": len(raw), f"base{Segment.LV2}": low, f"limit{Segment.LV2}": high - low}
        engine = model.engines[0]
        queue = self._queues.engines[engine]
        self._queues.wait(lambda: bool(queue.free), _LIMIT)
        job_id = self._push(engine, at, members)
        self._queues.wait(lambda: job_id not in self._waiting, _LIMIT)

    def forget(self, model: LoadedModel) -> None:
        """``model`` is unloaded: its DRAM is cleared, behind the back of simulated time as it was written."""
        for address in model.placement.dram_blocks:
            self._queues.bus.write_mem(address, bytes(self._dram.of_one_user(address)), charge=False)

    # -- as owner of the jobs (``JobOwner``) -----------------------------------------------------------------
    def completed(self, engine: int, completion: dict[str, int]) -> None:
        """The memory is clear."""
        self._waiting.discard(completion["job_id"])

    def fault_of(self, record: FaultRecord) -> DeviceFault:
        """Names no model: it is nobody's."""
        return DeviceFault(record)

    def lost(self, engine: int, job_ids: Sequence[int]) -> None:
        """The engine was reset before: the next job clears it again."""
        self._waiting.difference_update(job_ids)
        self._engines[engine] = _UNKNOWN

    def describe(self, job_id: int) -> str:
        """What it is."""
        return "clears memories for another tenant"

    # -- shared ----------------------------------------------------------------------------------------------
    def _room(self) -> int:
        return len(engine_program(self._queues.params)) + _LV2_PROGRAM

    def _code(self) -> int:
        if self._program is None:
            self._program = self._dram.allocate(self._room(), _ALIGN, "programs that clear memories")
            self._queues.bus.write_mem(self._program, engine_program(self._queues.params), charge=False)
        return self._program

    def _push(self, engine: int, code: int, members: dict[str, int]) -> int:
        job_id = self._queues.new_id()
        self._waiting.add(job_id)
        self.cleared += 1
        flags = {"flags": int(JobFlag.INTERRUPT), "magic": JOB_MAGIC, "job_id": job_id, "tag": _TAG, "base0": code}
        self._queues.push(engine, flags | members, self)
        self._queues.ring_doorbells()
        return job_id


_LV2_PROGRAM = 3 * INSN_BYTES  #: bytes of a program that clears windows
