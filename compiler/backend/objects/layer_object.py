"""A layer compiled alone: the bodies of its jobs as code that can be moved, without weights.

Addresses of weights, and numbers of cancellation points, count from 0; :class:`BodyObject` lists the instructions that
have to be changed when the linker knows better. Weights are described by pieces, so that layers of one shape share an
object.
"""

from dataclasses import dataclass

from compiler.backend.kernels.conv_data import ConvData, conv_data
from compiler.backend.kernels.layer_program import LayerProgram, layer_program
from compiler.backend.objects.layer_source import LayerSource
from compiler.backend.preempt.job_body import BodyPoint, JobBody, job_bodies
from compiler.backend.preempt.live_bytes import LiveBytes
from compiler.backend.program.address import Anchor, JobAddresses
from compiler.backend.program.job import JobProgram, Piece
from compiler.backend.program.job_order import order_of
from compiler.backend.program.task import Task
from compiler.backend.program.verify import verify_jobs
from compiler.plan.plan import JobPlan
from compiler.plan.tiles import AnyTiles
from hw.contract.isa import Insn, Op, Segment, Unit
from sim.cost import essence, insn_cycles

_AT_ZERO = JobAddresses()


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
class BodyObject:
    """A body. ``code``: encoded instructions with CANCEL, without END; ``program``: the same as far as times depend on
    it, equal ones being one object; ``points``: with ``cut`` and ``reload`` as numbers of tasks, which leave CANCEL
    out. ``loads``: whether it loads to LV2; ``staged``: whether something passes the staging area from or to DRAM.
    ``cycles`` of the body, ``streaming``: those in which it loads from DRAM or stores there, as estimated. ``plan``:
    its points, and its tasks by the order in which kernels emitted them."""

    engine: int
    own_loads: bool
    tasks: int
    cycles: int
    streaming: int
    loads: bool
    staged: bool
    parts: tuple[PartPieces, ...]
    code: bytes
    program: list[Insn]
    fixups: tuple[Fixup, ...]
    points: list[BodyPoint]
    starting: list[LiveBytes]
    plan: JobPlan


@dataclass(frozen=True)
class LayerObject:
    """Holds the bodies of a layer's jobs, in order; ``tiles``: of each member; ``summary``: a few words on them."""

    summary: str
    bodies: tuple[BodyObject, ...]
    tiles: tuple[AnyTiles, ...]

    @property
    def cycles(self) -> int:
        """Return the estimated cycles of all bodies, one after the other."""
        return sum(body.cycles for body in self.bodies)

    @property
    def size(self) -> int:
        """Return the bytes of code."""
        return sum(len(body.code) for body in self.bodies)


def layer_object(source: LayerSource, program: LayerProgram | None = None) -> LayerObject:
    """Compile ``source``; ``program``: if it has been already. Raises :class:`compiler.ir.CompileError`."""
    made = program or source_program(source)
    bodies = job_bodies(
        source.placement, source.number, made.jobs, source.params, source.budget.engines, source.limits,
        source.jobs,
    )  # fmt: skip
    cycles = [order.cycles for _, order in made.jobs]
    return LayerObject(
        made.summary, tuple(_body(body, took, source) for body, took in zip(bodies, cycles, strict=True)), made.tiles
    )


def source_program(source: LayerSource) -> LayerProgram:
    """Return the instructions of ``source``, verified. Raises :class:`compiler.ir.CompileError`."""
    program = layer_program(source.layer, source.context, source.tiles, source.jobs)
    verify_jobs(source.layer.kind, program.jobs)
    return program


def weights_of(body: BodyObject, source: LayerSource, known: dict[ConvData, bytes]) -> tuple[bytes, bytes] | None:
    """Return the data of the window and of the stream if ``body`` is that of ``source``, whose pieces are ``known``
    once they have been made; None if these weights would lie otherwise, as some are equal that differ elsewhere."""
    window, stream = bytearray(), bytearray()

    def data_of(piece: Piece) -> bytes:
        if not isinstance(piece, ConvData):
            assert isinstance(piece, bytes)
            return piece
        if piece not in known:
            known[piece] = conv_data(piece, source.conv(piece.output), source.params, source.placement.tensors)
        return known[piece]

    for part in body.parts:
        own, places = bytearray(), dict[bytes, int]()
        for piece, offset in part.window:
            data = data_of(piece)
            if data not in places:
                places[data] = len(own)
                own += data + bytes(-len(data) % source.params.lv1_word)
            if places[data] != offset:
                return None
        window += own
        stream += b"".join(map(data_of, part.stream))
    return bytes(window), bytes(stream)


def _body(body: JobBody, cycles: int, source: LayerSource) -> BodyObject:
    job, params = body.job, source.params
    known: dict[tuple, Insn] = {}
    cancels = {point.cut: number for number, point in enumerate(body.points)}
    code, program, fixups = bytearray(), list[Insn](), list[Fixup]()

    def add(insn: Insn) -> None:
        code.extend(insn.encode())
        short = essence(insn, params)
        masks = {name: insn.fields[name] for name in ("wait", "signal") if name in insn.fields}
        key = insn.op, *short.fields.values(), *masks.items()
        if key not in known:
            known[key] = Insn(insn.op, short.fields | masks)
        program.append(known[key])

    for number, task in enumerate(body.tasks):
        if number in cancels:
            add(Insn(Op.CANCEL, {"point": cancels[number]} if cancels[number] else {}))
        fixups += [Fixup(len(program), name, value.anchor) for name, value in task.symbols.items()]
        add(source.private.insn(task, _AT_ZERO) if source.private else task.insn(_AT_ZERO))
    streaming = (task for task in body.tasks if task.unit in (Unit.LD2, Unit.ST2))
    return BodyObject(
        job.engine, job.own_loads, len(body.tasks), cycles,
        sum(insn_cycles(task.op, task.fields, params, source.budget.engines) for task in streaming),
        any(task.op is Op.LD2 for task in body.tasks), any(map(_passes_staging, body.tasks)),
        tuple(map(_pieces, job.parts or [job])), bytes(code), program, tuple(fixups), body.points, body.starting,
        JobPlan(job.engine, tuple(point.cut for point in body.points), order_of(job, body.tasks)),
    )  # fmt: skip


def _pieces(part: JobProgram) -> PartPieces:
    return PartPieces(tuple(part.window_pieces.items()), tuple(part.stream_pieces))


def _passes_staging(task: Task) -> bool:
    """Return whether something passes a staging area on its way from or to DRAM with ``task``."""
    loads = task.op is Op.LD2 and task.fields["dst_seg"] == Segment.LV2
    return loads or (task.op is Op.ST2 and task.fields["src_seg"] == Segment.LV2)
