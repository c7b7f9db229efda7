"""A suspended task: everything needed to continue it, as a record in host memory (of **Cancellation points**).

What lies on chip for it stays there until something else needs the place: *pieces* are dirty bytes, each on chip, in
DRAM, or both; *clean* bytes of LV2 and prefetched weight windows only need to be known as lost.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hw.contract.image import CancelPoint, ImageError, LiveRange
from hw.contract.isa import INSN_BYTES, Insn, Op, Segment
from hw.contract.job import JobFlag
from hw.contract.spaces import Space
from sw.driver.dump import row_bytes
from sw.driver.errors import DriverError
from sw.driver.footprint import LV2, Footprint, Memory
from sw.driver.loaded import LoadedModel
from sw.driver.ranges import Range, intersect, normalise, overlap, subtract

WORD = 1 << 32


@dataclass(frozen=True)
class HaltRecord:
    """Where an engine stood when it halted. ``in_job``: inside the body of ``job_id``, at cancellation point ``point``
    whose CANCEL is at ``pc``; otherwise before a body, or idle. ``loaded``: jobs of its ring whose prologue had run."""

    engine: int
    in_job: bool
    job_id: int = 0
    point: int = 0
    pc: int = 0
    cycle: int = 0  #: at which it became HALTED; 0 if it was idle
    loaded: int = 0


@dataclass(frozen=True)
class QueuedJob:
    """A job that has not finished: its descriptor, as first queued, and whose it is.

    ``held``: it was queued again without its prologue, as its weight window was intact.
    """

    job_id: int
    model: LoadedModel
    job: int  #: index in the image's job table
    descriptor: dict[str, int]
    place: int  #: index in the ring it was pushed to
    held: bool = False

    @classmethod
    def of(cls, job_id: int, model: LoadedModel, job: int, members: dict[str, int], place: int) -> "QueuedJob":
        """From the descriptor in the ring, in which prologue and window may have been changed."""
        info = model.image.meta.jobs[job]
        prologue = int(JobFlag.PROLOGUE) if info.prologue_pc is not None else 0
        held = bool(prologue and not members["flags"] & prologue)
        changed = {"flags": members["flags"] | prologue, "window_after": info.window_after}
        return cls(job_id, model, job, members | changed, place, held)


@dataclass(eq=False)
class Piece:
    """Dirty bytes of one memory. ``copy``: DRAM address of a valid copy; ``on_chip``: still in their place."""

    memory: Memory
    start: int
    end: int
    copy: int | None = None
    on_chip: bool = True

    @property
    def size(self) -> int:
        """Bytes."""
        return self.end - self.start


@dataclass(frozen=True)
class CleanRange:
    """LV2 bytes with a copy at ``source`` in DRAM."""

    start: int
    end: int
    source: int


@dataclass(eq=False)
class Suspension:
    """A task taken off its engines. Made by ``Device.suspend``; ``Device.resume`` continues it.

    ``points``: by engine that halted inside a body, its cancellation point. ``queues``: by engine, jobs not finished,
    in ring order.
    """

    engines: tuple[int, ...]
    halts: dict[int, HaltRecord]
    queues: dict[int, list[QueuedJob]]
    models: list[LoadedModel]  #: whose jobs are in it
    points: dict[int, CancelPoint]
    pieces: list[Piece]
    clean: list[CleanRange]
    windows: dict[int, Range]  #: prefetched weights by job id, intact in LV2
    sent: int = 0  #: cycle at which the pause was sent
    announced: int = 0  #: cycle at which all stopped jobs were queued again
    areas: list[int] = field(default_factory=list)  #: DRAM blocks that hold copies
    lost_clean: list[Range] = field(default_factory=list)
    stale: set[int] = field(default_factory=set)  #: engines whose LV1 and LV0 were overwritten

    def on_chip(self, memory: Memory) -> list[Range]:
        """Dirty bytes of ``memory`` still in their place."""
        return normalise((p.start, p.end) for p in self.pieces if p.on_chip and p.memory == memory)

    def kept_clean(self) -> list[Range]:
        """Clean bytes of LV2 still in their place."""
        return subtract([(c.start, c.end) for c in self.clean], self.lost_clean)

    def to_dump(self, footprint: Footprint) -> list[Piece]:
        """Dirty pieces that ``footprint`` would destroy; pieces are split at its edges."""
        result, pieces = [], []
        for piece in self.pieces:
            hit = intersect([(piece.start, piece.end)], footprint.get(piece.memory, ()))
            if not hit or not piece.on_chip or piece.copy is not None:
                pieces.append(piece)
                continue
            mine = [Piece(piece.memory, *r) for r in hit]
            rest = [Piece(piece.memory, *r) for r in subtract([(piece.start, piece.end)], hit)]
            pieces += mine + rest
            result += mine
        self.pieces = pieces
        return result

    def clobber(self, footprint: Footprint) -> None:
        """``footprint`` is about to be overwritten. :class:`DriverError` if that would lose a byte."""
        for piece in self.pieces:
            if piece.on_chip and overlap([(piece.start, piece.end)], footprint.get(piece.memory, ())):
                if piece.copy is None:
                    raise DriverError(
                        f"bytes {piece.start} to {piece.end} of {piece.memory[0]} hold data of a suspended task "
                        "without a copy: make room with Device.make_room first"
                    )
                piece.on_chip = False
        lv2 = footprint.get(LV2, ())
        self.lost_clean = normalise([*self.lost_clean, *intersect([(c.start, c.end) for c in self.clean], lv2)])
        self.windows = {i: w for i, w in self.windows.items() if not overlap([w], lv2)}
        self.stale |= {e for space, e in footprint if space in (Space.LV1, Space.LV0_ACT) and footprint[space, e]}

    def missing(self) -> list[Piece]:
        """Pieces that must be copied back."""
        return [p for p in self.pieces if not p.on_chip]

    def missing_clean(self) -> list[CleanRange]:
        """Parts of clean ranges that must be loaded again."""
        return [
            CleanRange(start, end, c.source + start - c.start)
            for c in self.clean
            for start, end in intersect([(c.start, c.end)], self.lost_clean)
        ]

    def reloads(self, engine: int) -> tuple[LoadedModel, list[Insn]] | None:
        """Model and reload instructions of the halted job, if the engine's own memories were overwritten."""
        point = self.points.get(engine)
        if point is None or engine not in self.stale or not point.reload:
            return None
        model = self.queues[engine][0].model
        code = model.code
        return model, [_reload_instruction(model, code, pc) for pc in point.reload]

    def descriptors(self, engine: int) -> list[tuple[QueuedJob, dict[str, int]]]:
        """What to queue again, in order: the halted job as a RESUME job, then those that had not started."""
        result = []
        for i, job in enumerate(self.queues[engine]):
            members = dict(job.descriptor)
            if i == 0 and engine in self.points:
                members = _resume_members(members, self.points[engine])
            elif job.job_id in self.windows:
                members["flags"] &= ~int(JobFlag.PROLOGUE)
            result.append((job, members))
        return result


def _resume_members(members: dict[str, int], point: CancelPoint) -> dict[str, int]:
    dropped = JobFlag.PROLOGUE | JobFlag.WAIT0 | JobFlag.WAIT1
    flags = members["flags"] & ~int(dropped) | JobFlag.RESUME
    counts = {f"sem{i}": 0 for i in range(32)} | {f"sem{number}": count for number, count in point.semaphores}
    return members | counts | {"flags": int(flags), "body_pc": point.pc + 1, "window_after": 0}


def _reload_instruction(model: LoadedModel, code: bytes, pc: int) -> Insn:
    insn = Insn.decode(code[pc * INSN_BYTES : (pc + 1) * INSN_BYTES])
    if insn.op not in (Op.LD2, Op.LD1, Op.LD0):
        raise ImageError(
            f"image {model.name!r}: the reload list names {insn.op.name} at PC {pc}; compile the model again"
        )
    return insn


def absolute(model: LoadedModel, live: LiveRange, engine: int) -> tuple[Memory, Range]:
    """Where a live range lies on chip; accumulators in whole rows."""
    if live.space == Space.LV2:
        base = model.segments[live.segment][0]
        return LV2, (base + live.offset, base + live.offset + live.size)
    if live.space == Space.LV1:
        return (Space.LV1, engine), (live.offset, live.offset + live.size)
    row = row_bytes(model.image.params)
    return (Space.LV0_ACC, engine), (live.offset // row * row, -(-(live.offset + live.size) // row) * row)


Live = tuple[LoadedModel, int, Sequence[LiveRange]]  #: model, engine, its live ranges


def dirty_pieces(lives: Iterable[Live]) -> list[Piece]:
    """The union of the dirty ranges, by memory and address. ``ImageError`` for dirty LV0, which nothing can dump."""
    by_memory: dict[Memory, list[Range]] = {}
    for model, engine, ranges in lives:
        for live in ranges:
            if live.dirty and live.space in (Space.LV0_ACT, Space.LV0_WGT):
                raise ImageError(
                    f"image {model.name!r} declares dirty {live.space}, which cannot be dumped: compile again"
                )
            if live.dirty:
                memory, where = absolute(model, live, engine)
                by_memory.setdefault(memory, []).append(where)
    return [Piece(memory, *r) for memory in sorted(by_memory) for r in normalise(by_memory[memory])]


def clean_ranges(lives: Iterable[Live], pieces: Iterable[Piece]) -> list[CleanRange]:
    """Clean LV2 ranges with their sources, without what is dirty for another engine."""
    dirty = [(p.start, p.end) for p in pieces if p.memory == LV2]
    seen: list[Range] = []
    result = []
    for model, engine, ranges in lives:
        for live in ranges:
            if live.dirty or live.space != Space.LV2:
                continue
            _, where = absolute(model, live, engine)
            source = model.segments[live.source_segment][0] + live.source_offset
            for start, end in subtract([where], [*dirty, *seen]):
                result.append(CleanRange(start, end, source + start - where[0]))
            seen.append(where)
    return result


def prefetched(queue: Sequence[QueuedJob], loaded: int) -> dict[int, Range]:
    """Weight windows that the loader had filled for jobs whose body had not begun, by job id."""
    windows = {}
    base_of = Segment.WINDOWS
    for job in queue:
        offset, length = job.model.image.meta.jobs[job.job].window
        has = job.descriptor["flags"] & JobFlag.PROLOGUE and length
        if has and (job.held or 0 < (loaded - job.place) % WORD <= WORD // 2):
            base = job.model.segments[base_of][0]
            windows[job.job_id] = (base + offset, base + offset + length)
    return windows
