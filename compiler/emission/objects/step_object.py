"""A step compiled alone: the bodies of its jobs as code that can be moved, without weights.

Addresses of weights, and numbers of cancellation points, count from 0; :class:`JobObject` lists the instructions that
have to be changed when the linker knows better. Weights are described by pieces, so that steps of one shape share an
object.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from compiler.emission.kernels.conv_data import ConvData, conv_data
from compiler.emission.kernels.move import export_job
from compiler.emission.kernels.region import region_jobs
from compiler.emission.kernels.registry import KernelContext, emitted
from compiler.emission.objects.question import Question
from compiler.emission.preempt.job_points import BodyPoint, job_points
from compiler.emission.preempt.live_bytes import LiveBytes
from compiler.emission.program.address import Anchor, JobAddresses
from compiler.emission.program.extents import read_box
from compiler.emission.program.job import JobProgram, Piece
from compiler.emission.program.job_order import check_jobs, order_of, scheduled_in
from compiler.emission.program.schedule import TaskSchedule, schedule
from compiler.emission.program.task import Task, release
from compiler.emission.program.verify import verify_jobs
from compiler.ir import CompileError
from compiler.plan.layers.step import ModelStep
from compiler.plan.plan import JobPlan
from compiler.plan.plan_error import PlanError
from compiler.plan.tiles import AnyTiles
from hw.contract.isa import Insn, Op, Segment, Unit
from hw.contract.params import SocParams
from sim.cost import essence_of, essential

_AT_ZERO = JobAddresses()
_MOST_CODES = 1 << 15  #: instructions whose codes are kept
ScheduledJob = tuple[JobProgram, TaskSchedule]  #: a job and its program order


@dataclass(frozen=True)
class PartPieces:
    """What the weights of one layer of a job are made of: see :class:`JobProgram`."""

    window: tuple[tuple[Piece, int], ...]
    stream: tuple[Piece, ...]


@dataclass(frozen=True)
class Fixup:
    """Instruction number ``at`` of a body whose ``field`` counts from ``anchor``."""

    at: int
    field: str
    anchor: Anchor


@dataclass(frozen=True)
class JobObject:
    """A job. ``code``: encoded instructions of its body with CANCEL, without END; ``program``: the same as far as times
    depend on it, equal ones being one object; ``points``: with ``cut`` and ``reload`` as numbers of tasks, which leave
    CANCEL out. ``loads``: whether it loads to LV2; ``staged``: whether something passes the staging area from or to
    DRAM. ``cycles`` of the body, ``streaming``: those in which it loads from DRAM or stores there, as estimated;
    ``streamed``: the bytes that it loads and stores then, those of its weight window, which a prologue loads, left out.
    ``plan``: its points, and its tasks by the order in which kernels emitted them. ``ahead``: see
    :class:`JobProgram`.

    For the linker it also has the number of its ``step``, what its weight window holds, and the weights that it
    streams."""

    engine: int
    own_loads: bool
    tasks: int
    cycles: int
    streaming: int
    streamed: int
    loads: bool
    staged: bool
    parts: tuple[PartPieces, ...]
    code: bytes
    program: list[Insn]
    fixups: tuple[Fixup, ...]
    points: list[BodyPoint]
    starting: list[LiveBytes]
    plan: JobPlan
    ahead: tuple[int, int] | None = None
    step: int = 0
    window_data: bytes = b""
    stream_data: bytes = b""


@dataclass(frozen=True)
class RefusedRegion:
    """Says ``why`` the members of a free region cannot be one step, or gain nothing by it."""

    why: str


@dataclass(frozen=True)
class StepObject:
    """Holds the jobs of a step, in order, and the ``tiles`` of each member."""

    jobs: tuple[JobObject, ...] = ()
    tiles: tuple[AnyTiles, ...] = ()

    @property
    def cycles(self) -> int:
        """Return the estimated cycles of all bodies, one after the other."""
        return sum(job.cycles for job in self.jobs)

    @property
    def busiest(self) -> int:
        """Return the estimated cycles of the engine with the most to compute."""
        return _most((job.engine, job.cycles) for job in self.jobs)

    @property
    def streaming(self) -> int:
        """Return the estimated cycles in which bodies load from DRAM or store there, of the engine with the most."""
        return _most((job.engine, job.streaming) for job in self.jobs)

    @property
    def size(self) -> int:
        """Return the bytes of code."""
        return sum(len(job.code) for job in self.jobs)

    def weighted(self, number: int, question: Question) -> "StepObject | None":
        """Return this object with the weights of ``question``, for step ``number``; None if it is not that of these
        weights, as some are equal that differ elsewhere."""
        known, jobs = dict[ConvData, bytes](), list[JobObject]()
        for job in self.jobs:
            data = _weights_of(job, question, known)
            if data is None:
                return None
            jobs.append(replace(job, step=number, window_data=data[0], stream_data=data[1]))
        return replace(self, jobs=tuple(jobs))


def _most(cycles: Iterable[tuple[int, int]]) -> int:
    sums: dict[int, int] = {}
    for engine, count in cycles:
        sums[engine] = sums.get(engine, 0) + count
    return max(sums.values(), default=0)


def step_object(question: Question) -> StepObject:
    """Return the object that answers ``question``. Raises :class:`compiler.ir.CompileError`."""
    step, context = question.step, question.context
    try:
        jobs, tiles = step_jobs(step, context)
    except (ArithmeticError, AssertionError, LookupError, ValueError) as error:
        if step.free or isinstance(error, CompileError):
            raise
        raise PlanError(f"tiles {step.tiles} cannot be emitted: {error!r}") from error
    points = job_points(
        context.placement, context.number, jobs, context.params, context.budget.engines, question.limits, step.jobs
    )
    found = StepObject(
        tuple(_job(*job, *held, question) for job, held in zip(jobs, points, strict=True)), tiles
    )  # fmt: skip
    for _, order in jobs:
        release(order.tasks)
    return found


def step_jobs(step: ModelStep, context: KernelContext) -> tuple[list[ScheduledJob], tuple[AnyTiles, ...]]:
    """Cut, emit and schedule ``step`` with the kernels that match; return its verified jobs, each with its program
    order, and the tiles of its members. Raises :class:`compiler.ir.CompileError`."""
    given = step.tiles or (None,) * len(step.members)
    if step.places:
        jobs, tiles = region_jobs(step, given, context, step.jobs)
    else:
        jobs, cut = emitted(step.members[0], given[0], context)
        tiles = [cut]
    exports = context.placement.exports
    if step.output in exports:
        view = context.operand(step.output).view
        jobs = [*jobs, export_job(context.params, context.number, view, exports[step.output], Segment.SHARED)]
    made = [(job, schedule(job.tasks, context.params, engines=context.budget.engines)) for job in jobs]
    if step.jobs is not None:
        check_jobs(step.jobs, len(made))
        for at, (plan, (job, _)) in enumerate(zip(step.jobs, made, strict=True)):
            if any(cut >= len(job.tasks) for cut in plan.cuts):
                raise PlanError(f"jobs[{at}].cuts are {plan.cuts}, and must be below its {len(job.tasks)} tasks")
        made = [
            (job, order if own.order is None else scheduled_in(job, own.order, order))
            for (job, order), own in zip(made, step.jobs, strict=True)
        ]
    try:
        verify_jobs(step.kind, made)
    except CompileError as error:
        if any(plan.order is not None for plan in step.jobs or ()):
            raise PlanError("its order puts an instruction ahead of one that it needs; leave order out") from error
        raise
    return made, tuple(tiles)


def _weights_of(job: JobObject, question: Question, known: dict[ConvData, bytes]) -> tuple[bytes, bytes] | None:
    """Return the data of the window and of the stream if ``job`` is that of ``question``, whose pieces are ``known``
    once they have been made; None if these weights would lie otherwise."""
    window, stream, context = bytearray(), bytearray(), question.context

    def data_of(piece: Piece) -> bytes:
        if not isinstance(piece, ConvData):
            assert isinstance(piece, bytes)
            return piece
        if piece not in known:
            known[piece] = conv_data(piece, question.conv(piece.output), context.params, context.placement.tensors)
        return known[piece]

    for part in job.parts:
        own, places = bytearray(), dict[bytes, int]()
        for piece, offset in part.window:
            data = data_of(piece)
            if data not in places:
                places[data] = len(own)
                own += data + bytes(-len(data) % context.params.lv1_word)
            if places[data] != offset:
                return None
        window += own
        stream += b"".join(map(data_of, part.stream))
    return bytes(window), bytes(stream)


def _job(
    job: JobProgram, order: TaskSchedule, points: list[BodyPoint], starting: list[LiveBytes], question: Question
) -> JobObject:  # fmt: skip
    params, private = question.context.params, question.private
    made = _codes(params)
    cancels = {point.cut: number for number, point in enumerate(points)}
    code, program, fixups = bytearray(), list[Insn](), list[Fixup]()

    def timed(insn: Insn) -> Insn:
        masks = [(name, insn.fields[name]) for name in ("wait", "signal") if name in insn.fields]
        return _timed(insn.op, tuple(essential(insn, params)), tuple(masks))

    def coded(task: Task) -> tuple[bytes, Insn]:
        insn = private.insn(task, _AT_ZERO) if private else task.insn(_AT_ZERO)
        # It takes longest with the largest parameters.
        most = {one.field: insn[one.field] + one.most for one in task.more}
        return insn.encode(), timed(Insn(insn.op, insn.fields | most) if most else insn)

    def known(task: Task) -> tuple[bytes, Insn]:
        numbers = task.numbers
        key = (task.op, tuple(numbers), tuple(numbers.values()), frozenset(task.waits), frozenset(task.signals))
        if key not in made:
            if len(made) == _MOST_CODES:
                made.clear()
            made[key] = coded(task)
        return made[key]

    for number, task in enumerate(order.tasks):
        if number in cancels:
            cancel = Insn(Op.CANCEL, {"point": cancels[number]} if cancels[number] else {})
            code += cancel.encode()
            program.append(timed(cancel))
        if task.symbols:
            fixups += [Fixup(len(program), name, value.anchor) for name, value in task.symbols.items()]
        raw, duration = coded(task) if private or task.more else known(task)
        code += raw
        program.append(duration)
    streaming = [task for task in order.tasks if task.unit in (Unit.LD2, Unit.ST2)]
    return JobObject(
        job.engine, job.own_loads, len(order.tasks), order.cycles,
        sum(task.cycles(params, question.context.budget.engines) for task in streaming),
        sum(math.prod(read_box(task).shape) for task in streaming),
        any(task.op is Op.LD2 for task in order.tasks), not job.direct and any(map(_passes_staging, order.tasks)),
        tuple(map(_pieces, job.parts or [job])), bytes(code), program, tuple(fixups), points, starting,
        JobPlan(job.engine, tuple(point.cut for point in points), order_of(job, order.tasks)), job.ahead,
    )  # fmt: skip


@lru_cache(1)
def _codes(params: SocParams) -> dict[tuple, tuple[bytes, Insn]]:
    """Return the codes of instructions, and what their times depend on: rings repeat themselves, and so do jobs."""
    return {}


@lru_cache(1 << 16)
def _timed(op: Op, values: tuple[int, ...], masks: tuple[tuple[str, int], ...]) -> Insn:
    """Return the one instruction with these ``values`` of the fields that times depend on, and semaphore ``masks``."""
    return Insn(op, essence_of(op, values).fields | dict(masks))


def _pieces(part: JobProgram) -> PartPieces:
    return PartPieces(tuple(part.window_pieces.items()), tuple(part.stream_pieces))


def _passes_staging(task: Task) -> bool:
    """Return whether something passes a staging area on its way from or to DRAM with ``task``."""
    loads = task.op is Op.LD2 and task.fields["dst_seg"] == Segment.LV2
    return loads or (task.op is Op.ST2 and task.fields["src_seg"] == Segment.LV2)
