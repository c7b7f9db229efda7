"""What the jobs of layers of the vector unit share: parameters in LV1, and buffers handed out one behind the other."""

from collections.abc import Mapping

import numpy as np

from compiler.backend.kernels.registry import KernelContext
from compiler.backend.layers.vec_params import sum_params_bytes, vec_params
from compiler.backend.memory.operand import Lv1Area, TensorOperand
from compiler.backend.program.job import JobProgram
from compiler.backend.program.ring import Ring, StagingRing
from compiler.backend.program.semaphores import Sem
from compiler.backend.program.task import Task
from compiler.ir import CompileError, Requantisation
from hw.contract.isa import TABLE_BYTES, Op
from hw.contract.params import SocParams


def in_words(size: int, params: SocParams) -> int:
    """``size`` bytes in whole words of LV1, as bytes."""
    return -(-size // params.lv1_word) * params.lv1_word


class BufferedJob:
    """A job on ``engine``. Raises :class:`CompileError` where LV1 or the staging area is too small."""

    def __init__(self, context: KernelContext, engine: int) -> None:
        self.params, self.staging = context.params, context.budget.staging(engine)
        self.job = JobProgram(context.params, context.number, engine, context.own_loads)
        self._lv1 = context.lv1
        self._at, self._stage_at = context.lv1.base, self.staging.base

    def reserve(self, size: int) -> int:
        """Return the address of ``size`` bytes of LV1, in whole words."""
        at, self._at = self._at, self._at + in_words(size, self.params)
        if self._at > self._lv1.base + self._lv1.size:
            raise CompileError(
                f"buffers need {self._at - self._lv1.base} bytes of LV1, {self._lv1.size} are there: choose a preset "
                "with a larger lv1_bytes"
            )
        return at

    def ring(self, full: Sem, free: Sem, size: int, slots: int = 2) -> Ring:
        """Return a ring of LV1 buffers of ``size`` bytes."""
        size = in_words(size, self.params)
        return Ring(full, free, self.reserve(size * slots), size, slots)

    def stage_ring(self, size: int) -> tuple[int, int]:
        """(base, size of one) of two LV2 staging buffers."""
        size = in_words(size, self.params)
        base, self._stage_at = self._stage_at, self._stage_at + 2 * size
        if self._stage_at > self.staging.base + self.staging.size:
            raise CompileError(
                f"staging needs {self._stage_at - self.staging.base} bytes of LV2, {self.staging.size} are set aside: "
                "choose a preset with a larger lv2_bytes"
            )
        return base, size

    def stage(self, operand: TensorOperand, size: int, full: Sem, free: Sem) -> StagingRing | None:
        """Return a stage for an operand in DRAM; None if it lies in LV2."""
        return None if operand.view.on_chip else StagingRing(full, free, *self.stage_ring(size), 2)

    def spill(self, operand: TensorOperand, size: int) -> Ring | None:
        """Return a ring for results that live in DRAM; None if they live in LV2."""
        return None if operand.view.on_chip else Ring(Sem.SPILL_FULL, Sem.SPILL_FREE, *self.stage_ring(size), 2)


def free_lv1(params: SocParams, lv1: Lv1Area, q: Requantisation) -> int:
    """Return the bytes of ``lv1`` that the parameters of a vector layer leave for its tiles."""
    table = -(-TABLE_BYTES // params.lv1_word) * params.lv1_word if q.table is not None else 0
    return lv1.size - table - sum_params_bytes(params)


class VectorJob(BufferedJob):
    """A job of the vector unit alone on ``engine``, under construction. Its parameters (``q`` and the
    fields of ``header``) are in LV1 from the start; buffers in LV1 and staging are handed out in turn."""

    def __init__(self, context: KernelContext, engine: int, q: Requantisation, **header: int) -> None:
        super().__init__(context, engine)
        params = self.params
        self._table = q.table
        lanes, bias = params.vec_lanes, header.pop("bias", 0)
        scale = np.full(lanes, np.asarray(q.scale, np.float32).reshape(-1)[0], np.float32)
        block = vec_params(params, np.full(lanes, bias, np.int32), scale, zp_y=q.zero_point, lo=q.lo, hi=q.hi, **header)
        self.table_at = self.reserve(TABLE_BYTES) if q.table is not None else 0
        self._block = Ring(Sem.PARAMS_FULL, Sem.PARAMS_FREE, self.reserve(len(block)), len(block), 1)
        self.block = self._block.fill("params")
        loads: list[Task] = []
        if q.table is not None:
            loads += self.job.load_constant(q.table.tobytes(), self.table_at)
        loads += self.job.load_window(self.job.keep(block), self.block.address, len(block))
        self._block.filled_by(self.block, loads)

    def finished(self) -> JobProgram | None:
        """Return the job; None if it computes nothing."""
        return self.job if self.block.readers else None

    def vec(self, fields: dict[str, int]) -> Task:
        """Emit a VEC that uses the parameter block."""
        fields = fields | {"p": self.block.address}
        if self._table is not None:
            fields |= {"table": 1, "t": self.table_at}
        task = self.job.emit(Op.VEC, fields)
        self._block.read_by(self.block, task)
        return task


class RowJob(BufferedJob):
    """A job on ``engine``, under construction. ``constants``: what all its VEC instructions read, by name; it is in LV1
    from the start, at :attr:`at`. Buffers in LV1 and staging are handed out in turn."""

    def __init__(self, context: KernelContext, engine: int, constants: Mapping[str, bytes]) -> None:
        super().__init__(context, engine)
        self.at: dict[str, int] = {}
        held = b""
        for name, data in constants.items():
            self.at[name] = self._at + len(held)
            held += data + bytes(-len(data) % context.params.lv1_word)
        if len(held) > context.budget.windows:
            raise CompileError(
                f"tables and parameters take {len(held)} bytes, a weight window {context.budget.windows}: choose a "
                "preset with a larger lv2_bytes"
            )
        self._ring = Ring(Sem.PARAMS_FULL, Sem.PARAMS_FREE, self.reserve(len(held)), len(held), 1)
        self._held = self._ring.fill("constants")
        self._ring.filled_by(self._held, self.job.load_window(self.job.keep(held), self._held.address, len(held)))

    def vec(self, block: str, fields: Mapping[str, int], after: Task | None = None) -> Task:
        """Emit a VEC with the parameter block of that name; ``after``: the one before, of which it reads the result."""
        task = self.job.emit(Op.VEC, {**fields, "p": self.at[block]})
        self._ring.read_by(self._held, task)
        if after is not None:
            after.signals.add(Sem.OWN_READY)
            task.waits.add(Sem.OWN_READY)
        return task

    def finished(self) -> JobProgram | None:
        """Return the job; None if it computes nothing."""
        return self.job if self._held.readers else None
