"""What the jobs of layers that work on rows of matrices share: constants in LV1, and buffers one behind the other."""

from collections.abc import Mapping

from compiler.backend.kernels.buffered_job import BufferedJob
from compiler.backend.kernels.registry import KernelContext
from compiler.backend.program.job import JobProgram
from compiler.backend.program.ring import Ring
from compiler.backend.program.semaphores import Sem
from compiler.backend.program.task import Task
from compiler.ir import CompileError
from hw.contract.isa import Op


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
