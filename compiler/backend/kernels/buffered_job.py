"""Jobs under construction whose buffers in LV1 and LV2 are handed out one behind the other."""

from compiler.backend.kernels.registry import KernelContext
from compiler.backend.memory.operand import TensorOperand
from compiler.backend.program.job import JobProgram
from compiler.backend.program.ring import Ring
from compiler.backend.program.semaphores import Sem
from compiler.backend.program.staging_ring import StagingRing
from compiler.ir import CompileError
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
