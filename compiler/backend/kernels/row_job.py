"""What the jobs of layers that work on rows of matrices share: constants in LV1, and buffers one behind the other."""

from collections.abc import Mapping

from compiler.backend.kernels.registry import KernelContext
from compiler.backend.memory.operand import TensorOperand
from compiler.backend.program.job import JobProgram
from compiler.backend.program.ring import Ring
from compiler.backend.program.semaphores import Sem
from compiler.backend.program.staging_ring import StagingRing
from compiler.backend.program.task import Task
from compiler.ir import CompileError
from hw.contract.isa import Op
from hw.contract.params import SocParams


def in_words(size: int, params: SocParams) -> int:
    """``size`` bytes in whole words of LV1, as bytes."""
    return -(-size // params.lv1_word) * params.lv1_word


class RowJob:
    """A job on ``engine``, under construction. ``constants``: what all its VEC instructions read, by name; it is in LV1
    from the start, at :attr:`at`. Buffers in LV1 and staging are handed out in turn."""

    def __init__(self, context: KernelContext, engine: int, constants: Mapping[str, bytes]) -> None:
        self.params, self._context = context.params, context
        self.job = JobProgram(context.params, context.number, engine, context.own_loads)
        self.staging = context.budget.staging(engine)
        self._next, self._stage_at = context.lv1.base, self.staging.base
        self.at: dict[str, int] = {}
        held = b""
        for name, data in constants.items():
            self.at[name] = self._next + len(held)
            held += data + bytes(-len(data) % context.params.lv1_word)
        if len(held) > context.budget.windows:
            raise CompileError(
                f"tables and parameters take {len(held)} bytes, a weight window {context.budget.windows}: choose a "
                "preset with a larger lv2_bytes"
            )
        self._ring = Ring(Sem.PARAMS_FULL, Sem.PARAMS_FREE, self.reserve(len(held)), len(held), 1)
        self._held = self._ring.fill("constants")
        self._ring.filled_by(self._held, self.job.load_window(self.job.keep(held), self._held.address, len(held)))

    def reserve(self, size: int) -> int:
        """The address of ``size`` bytes of LV1, in whole words."""
        at, self._next = self._next, self._next + in_words(size, self.params)
        area = self._context.lv1
        if self._next > area.base + area.size:
            raise CompileError(
                f"buffers need {self._next - area.base} bytes of LV1, {area.size} are there: choose a preset with a "
                "larger lv1_bytes"
            )
        return at

    def ring(self, full: Sem, free: Sem, size: int, slots: int = 2) -> Ring:
        """A ring of LV1 buffers of ``size`` bytes."""
        size = in_words(size, self.params)
        return Ring(full, free, self.reserve(size * slots), size, slots)

    def stage(self, operand: TensorOperand, size: int, full: Sem, free: Sem) -> StagingRing | None:
        """A stage for an operand in DRAM; None if it lies in LV2."""
        return None if operand.view.on_chip else StagingRing(full, free, *self._staged(size), 2)

    def spill(self, operand: TensorOperand, size: int) -> Ring | None:
        """A ring for results that live in DRAM; None if they live in LV2."""
        return None if operand.view.on_chip else Ring(Sem.SPILL_FULL, Sem.SPILL_FREE, *self._staged(size), 2)

    def _staged(self, size: int) -> tuple[int, int]:
        size = in_words(size, self.params)
        at, self._stage_at = self._stage_at, self._stage_at + 2 * size
        if self._stage_at > self.staging.base + self.staging.size:
            raise CompileError(
                f"staging needs {self._stage_at - self.staging.base} bytes of LV2, {self.staging.size} are set aside: "
                "choose a preset with a larger lv2_bytes"
            )
        return at, size

    def vec(self, block: str, fields: Mapping[str, int], after: Task | None = None) -> Task:
        """Emit a VEC with the parameter block of that name; ``after``: the one before, of which it reads the result."""
        task = self.job.emit(Op.VEC, {**fields, "p": self.at[block]})
        self._ring.read_by(self._held, task)
        if after is not None:
            after.signals.add(Sem.OWN_READY)
            task.waits.add(Sem.OWN_READY)
        return task

    def finished(self) -> JobProgram | None:
        """The job; None if it computes nothing."""
        return self.job if self._held.readers else None
