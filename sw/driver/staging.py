"""Which engine moves which bytes, through which stages, in which jobs: the plan of a dump or a restore."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hw.contract.params import SocParams
from hw.contract.spaces import Space
from sw.driver.dump import SLOT_BYTES, SLOTS, Stage, row_bytes
from sw.driver.errors import DriverError
from sw.driver.footprint import LV2, Footprint
from sw.driver.ranges import Range, intersect, normalise, subtract
from sw.driver.suspension import Piece

LV2_PIECE = 32 * 1024  #: bytes of LV2 that are noted as dumped, or as brought back, at a time
PRIVATE_PIECE = 16 * 1024  #: bytes of LV1 or accumulators in one job at most
STAGE_BYTES = SLOTS * SLOT_BYTES


@dataclass
class Part:
    """Pieces that one job of one engine moves, with the stages it uses."""

    engine: int
    pieces: list[Piece]
    lv1: Stage | None = None
    lv2: Stage | None = None

    def clobbers(self) -> Footprint:
        """What the stages overwrite."""
        result: dict = {LV2: [self.lv2.where]} if self.lv2 else {}
        return result | ({(Space.LV1, self.engine): [self.lv1.where]} if self.lv1 else {})


@dataclass
class Room:
    """Where stages may lie. ``lv2``: free ranges, best first; ``lv1``: by engine."""

    lv2: list[Range]
    lv1: Mapping[int, Sequence[Range]]
    used: list[Range] = field(default_factory=list)

    def stages(
        self, params: SocParams, engine: int, pieces: Iterable[Piece], share: int
    ) -> tuple[Stage | None, Stage] | None:
        """(LV1 stage if accumulators need one, LV2 stage), or None if there is no room. Each stage takes at most one
        ``share``-th of its range."""
        row = row_bytes(params)
        low = None
        if any(piece.memory[0] == Space.LV0_ACC for piece in pieces):
            low = _stage(params, self.lv1.get(engine, ()), 1)
            if low is None:
                return None
        high = _stage(params, [r for free in self.lv2 for r in subtract([free], self.used)], share)
        if high is None:
            return None
        self.used.append((high.where[0], -(-high.where[1] // row) * row))
        return low, high


def _stage(params: SocParams, free: Sequence[Range], share: int) -> Stage | None:
    row = row_bytes(params)
    for start, end in free:
        start = -(-start // row) * row
        size = min(STAGE_BYTES, (end - start) // share // row * row)
        if size >= row:
            return Stage((start, start + size), row)
    return None


def preferred(free: list[Range], first: Iterable[Range], last: Iterable[Range]) -> list[Range]:
    """``free`` in the order in which to use it: inside ``first``, then outside ``last``, then the rest; large ones
    before small ones."""
    first, last = normalise(first), normalise(last)
    groups = [intersect(free, first), subtract(free, [*first, *last]), intersect(subtract(free, first), last)]
    return [r for group in groups for r in sorted(group, key=lambda r: r[0] - r[1])]


def split(pieces: Iterable[Piece]) -> list[Piece]:
    """The same bytes in pieces that one job can move."""
    result = []
    for piece in pieces:
        most = LV2_PIECE if piece.memory == LV2 else PRIVATE_PIECE
        for at in range(piece.start, piece.end, most):
            copy = None if piece.copy is None else piece.copy + at - piece.start
            result.append(Piece(piece.memory, at, min(at + most, piece.end), copy, piece.on_chip))
    return result


def deal(pieces: Sequence[Piece], idle: Sequence[int]) -> dict[int, list[Piece]]:
    """Pieces by engine: private memories to their own, LV2 to one that has work anyway if any has. ``idle``: engines
    that can run jobs now.

    One engine alone moves LV2 nearly as fast as DRAM can: stores of a second would close its rows in every bank.
    """
    work: dict[int, list[Piece]] = {}
    for piece in pieces:
        if piece.memory != LV2:
            work.setdefault(piece.memory[1], []).append(piece)
    for engine in work:
        if engine not in idle:
            raise DriverError(f"engine {engine} holds data of a suspended task and is busy: suspend it, too")
    if not idle:
        raise DriverError("every engine is busy: suspend one before something must be moved out of LV2")
    lv2 = [piece for piece in pieces if piece.memory == LV2]
    if lv2:
        mover = min(idle, key=lambda e: (e not in work, e))
        work.setdefault(mover, []).extend(lv2)
    return work


def parts(params: SocParams, work: Mapping[int, Sequence[Piece]], room: Room) -> list[Part] | None:
    """Jobs in order, by engine; None where accumulators or LV1 have no stage. Staged pieces go first, so that LV2
    transfers fill the pipeline behind them."""
    result = []
    for engine, pieces in work.items():
        private = [p for p in pieces if p.memory != LV2]
        lv2 = [p for p in pieces if p.memory == LV2]
        for memory in (Space.LV0_ACC, Space.LV1):
            staged = [p for p in private if p.memory[0] == memory]
            if not staged:
                continue
            stages = room.stages(params, engine, staged, len(work))
            if stages is None:
                return None
            result += [Part(engine, [piece], *stages) for piece in staged]
        result += [Part(engine, lv2[i : i + 32]) for i in range(0, len(lv2), 32)]
    return result


def plan_dump(
    params: SocParams, work: Mapping[int, list[Piece]], room: Room, spare: Sequence[Piece]
) -> list[list[Part]]:
    """Groups of parts; a group begins once its engine has completed the groups before.

    Where no stage is free, LV2 is dumped first, LV1 through the place that made free, and accumulators through both.
    ``spare``: pieces of LV2 that may be dumped just to make room; an engine that needs one takes it into its ``work``.
    """
    planned = parts(params, work, room)
    if planned is not None:
        return [planned]
    left = list(spare)
    for pieces in work.values():
        if not any(p.memory == LV2 for p in pieces):
            if not left:
                raise DriverError("no place in LV2 to pass data of a suspended task through: unload a model")
            pieces.append(left.pop())
    groups: list[list[Part]] = []
    for memories in ((Space.LV2,), (Space.LV1,), (Space.LV0_ACC,)):
        group = []
        for engine, pieces in work.items():
            chosen = {engine: [p for p in pieces if p.memory[0] in memories]}
            freed = [(p.start, p.end) for p in pieces if p.memory == LV2]
            low = [*room.lv1.get(engine, ()), *((p.start, p.end) for p in pieces if p.memory[0] == Space.LV1)]
            planned = parts(params, chosen, Room(freed, {engine: low}))
            if planned is None:
                raise DriverError(f"engine {engine}: the place freed in LV2 is too small to pass accumulators through")
            group += planned
        groups.append(group)
    return [group for group in groups if group]
