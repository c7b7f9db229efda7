"""What the jobs of layers of the vector unit share: parameters in LV1, and buffers handed out one behind the other."""

from collections.abc import Mapping, Sequence

from compiler.emission.kernels.registry import KernelContext
from compiler.emission.program import JobProgram, ParameterUse, Ring, Sem, StagingRing, Task
from compiler.ir import CompileError, Requantisation
from compiler.plan.layers import sum_params_bytes, uniform_params
from compiler.plan.memory.operand import Lv1Area, TensorOperand
from hw.contract.isa import TABLE_BYTES, Op
from hw.contract.params import SocParams


def in_words(size: int, params: SocParams) -> int:
    """``size`` bytes in whole words of LV1, as bytes."""
    return -(-size // params.lv1_word) * params.lv1_word


class BufferedJob:
    """A job on ``engine``, under construction. Raises :class:`CompileError` where LV1 or the staging area is too
    small."""

    def __init__(self, context: KernelContext, engine: int) -> None:
        self.params, self.staging = context.params, context.budget.staging(engine)
        self.job = JobProgram(context.params, context.number, engine, context.own_loads)
        self.more = context.more
        self._lv1 = context.lv1
        self._at, self._stage_at = context.lv1.base, self.staging.base
        self.at: dict[str, int] = {}  #: by name the LV1 addresses of what VEC instructions read from the start

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

    def hold(self, data: bytes, ahead: Sequence[Task] = ()) -> None:
        """Have ``data`` in LV1, next in turn, for all VEC instructions; ``ahead``: loads of what else they all read."""
        self._ring = Ring(Sem.PARAMS_FULL, Sem.PARAMS_FREE, self.reserve(len(data)), len(data), 1)
        self._held = self._ring.fill("constants")
        loads = self.job.load_window(self.job.keep(data), self._held.address, len(data))
        self._ring.filled_by(self._held, [*ahead, *loads])

    def vec(
        self, block: str, fields: Mapping[str, int], after: Task | None = None, more: tuple[ParameterUse, ...] = ()
    ) -> Task:
        """Emit a VEC with the parameter block of that name; ``after``: the one before, of which it reads the result;
        ``more``: see :meth:`JobProgram.emit`."""
        task = self.job.emit(Op.VEC, {**fields, "p": self.at[block]}, more)
        self._ring.read_by(self._held, task)
        if after is not None:
            after.signals.add(Sem.OWN_READY)
            task.waits.add(Sem.OWN_READY)
        return task

    def finished(self) -> JobProgram | None:
        """Return the job; None if it computes nothing."""
        return self.job if self._held.readers else None


class VectorJob(BufferedJob):
    """A job whose VEC instructions requantise alike: by ``q`` and the fields of ``header``, which are the block
    "result". Those with the block "between" requantise as that says, without bias."""

    def __init__(
        self, context: KernelContext, engine: int, q: Requantisation, header: Mapping[str, int],
        between: Requantisation | None = None,
    ) -> None:  # fmt: skip
        super().__init__(context, engine)
        lanes = self.params.vec_lanes
        block = uniform_params(self.params, lanes, q, **header)
        loads: list[Task] = []
        self._table: dict[str, int] = {}
        if q.table is not None:
            self._table = {"table": 1, "t": self.reserve(TABLE_BYTES)}
            loads = self.job.load_constant(q.table.tobytes(), self._table["t"])
        self.at["result"] = self._at
        if between is not None:
            self.at["between"] = self._at + len(block)
            block += uniform_params(self.params, lanes, between, **{**header, "bias": 0})
        self.hold(block, loads)

    def vec(
        self, block: str, fields: Mapping[str, int], after: Task | None = None, more: tuple[ParameterUse, ...] = ()
    ) -> Task:
        """Emit a VEC whose results, unless they are between others, pass through the table, if there is one."""
        return super().vec(block, fields if block == "between" else {**fields, **self._table}, after, more)


class RowJob(BufferedJob):
    """A job with ``constants``, by name: blocks of parameters and tables."""

    def __init__(self, context: KernelContext, engine: int, constants: Mapping[str, bytes]) -> None:
        super().__init__(context, engine)
        held = b""
        for name, data in constants.items():
            self.at[name] = self._at + len(held)
            held += data + bytes(-len(data) % context.params.lv1_word)
        if len(held) > context.budget.windows:
            raise CompileError(
                f"tables and parameters take {len(held)} bytes, a weight window {context.budget.windows}: choose a "
                "preset with a larger lv2_bytes"
            )
        self.hold(held)


def free_lv1(params: SocParams, lv1: Lv1Area, q: Requantisation) -> int:
    """Return the bytes of ``lv1`` that the parameters of a vector layer leave for its tiles."""
    table = in_words(TABLE_BYTES, params) if q.table is not None else 0
    return lv1.size - table - sum_params_bytes(params)
