"""What the jobs of all layers of the vector unit share: parameters in LV1, rings, staging."""

import numpy as np

from compiler.backend.kernels.buffered_job import BufferedJob
from compiler.backend.kernels.registry import KernelContext
from compiler.backend.layers.vec_params import sum_params_bytes, vec_params
from compiler.backend.memory.operand import Lv1Area
from compiler.backend.program.job import JobProgram
from compiler.backend.program.ring import Ring
from compiler.backend.program.semaphores import Sem
from compiler.backend.program.task import Task
from compiler.ir import Requantisation
from hw.contract.isa import TABLE_BYTES, Op
from hw.contract.params import SocParams


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
