"""Plans a dump or a restore: which engine moves which bytes, through which staging buffers, in which jobs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hw.contract.params import SocParams
from hw.contract.spaces import Space
from sw.driver.errors import DriverError
from sw.driver.memory.ranges import LV2, Footprint, Range, intersect, normalise, row_bytes, subtract
from sw.driver.preempt.copies import SLOT_BYTES, SLOTS, StagingBuffer
from sw.driver.preempt.suspension import DirtyRange

LV2_COPY = 32 * 1024  #: bytes of LV2 that are noted as dumped, or as brought back, at a time
PRIVATE_COPY = 16 * 1024  #: bytes of LV1 or accumulators in one job at most
STAGE_BYTES = SLOTS * SLOT_BYTES


@dataclass
class CopyJob:
    """Names dirty ranges that one job of one engine moves, with the staging buffers it uses."""

    engine: int
    ranges: list[DirtyRange]
    lv1: StagingBuffer | None = None
    lv2: StagingBuffer | None = None

    def staged(self) -> Footprint:
        """Return what the staging buffers overwrite."""
        result: dict = {LV2: [self.lv2.where]} if self.lv2 else {}
        return result | ({(Space.LV1, self.engine): [self.lv1.where]} if self.lv1 else {})


@dataclass
class StagingSpace:
    """Says where staging buffers may lie. ``lv2``: free ranges, best first; ``lv1``: by engine."""

    lv2: list[Range]
    lv1: Mapping[int, Sequence[Range]]
    used: list[Range] = field(default_factory=list)

    def buffers(
        self, params: SocParams, engine: int, ranges: Iterable[DirtyRange], share: int
    ) -> tuple[StagingBuffer | None, StagingBuffer] | None:
        """Return (LV1 buffer if accumulators need one, LV2 buffer), or None if there is no room. Each takes at most one
        ``share``-th of its range."""
        row = row_bytes(params)
        low = None
        if any(dirty.memory[0] == Space.LV0_ACC for dirty in ranges):
            low = _stage(params, self.lv1.get(engine, ()), 1)
            if low is None:
                return None
        high = _stage(params, [r for free in self.lv2 for r in subtract([free], self.used)], share)
        if high is None:
            return None
        self.used.append((high.where[0], -(-high.where[1] // row) * row))
        return low, high


def _stage(params: SocParams, free: Sequence[Range], share: int) -> StagingBuffer | None:
    row = row_bytes(params)
    for start, end in free:
        start = -(-start // row) * row
        size = min(STAGE_BYTES, (end - start) // share // row * row)
        if size >= row:
            return StagingBuffer((start, start + size), row)
    return None


def preferred(free: list[Range], first: Iterable[Range], last: Iterable[Range]) -> list[Range]:
    """Return ``free`` in the order in which to use it: inside ``first``, then outside ``last``, then the rest; large
    ones before small ones."""
    first, last = normalise(first), normalise(last)
    groups = [intersect(free, first), subtract(free, [*first, *last]), intersect(subtract(free, first), last)]
    return [r for group in groups for r in sorted(group, key=lambda r: r[0] - r[1])]


def split(ranges: Iterable[DirtyRange]) -> list[DirtyRange]:
    """Return the same bytes in ranges that one job can move."""
    result = []
    for dirty in ranges:
        most = LV2_COPY if dirty.memory == LV2 else PRIVATE_COPY
        for at in range(dirty.start, dirty.end, most):
            copy = None if dirty.copy is None else dirty.copy + at - dirty.start
            result.append(DirtyRange(dirty.model, dirty.memory, at, min(at + most, dirty.end), copy, dirty.on_chip))
    return result


def deal(ranges: Sequence[DirtyRange], idle: Sequence[int]) -> dict[int, list[DirtyRange]]:
    """Return the ranges by engine: private memories go to their own, LV2 to one that has work anyway if any has.
    ``idle`` names engines that can run jobs now.

    One engine alone moves LV2 nearly as fast as DRAM can: stores of a second would close its rows in every bank.
    """
    work: dict[int, list[DirtyRange]] = {}
    for dirty in ranges:
        if dirty.memory != LV2:
            work.setdefault(dirty.memory[1], []).append(dirty)
    for engine in work:
        if engine not in idle:
            raise DriverError(f"engine {engine} holds data of a suspended task and is busy: suspend it, too")
    if not idle:
        raise DriverError("every engine is busy: suspend one before something must be moved out of LV2")
    lv2 = [dirty for dirty in ranges if dirty.memory == LV2]
    if lv2:
        mover = min(idle, key=lambda e: (e not in work, e))
        work.setdefault(mover, []).extend(lv2)
    return work


def copy_jobs(
    params: SocParams, work: Mapping[int, Sequence[DirtyRange]], space: StagingSpace, *, share: int | None = None
) -> list[CopyJob] | None:
    """Return jobs in order, by engine, or None where accumulators or LV1 have no staging buffer. Staged ranges go
    first, so that LV2 transfers fill the pipeline behind them. ``share`` is the number of engines that have to find
    buffers in the same space, by default those of ``work``."""
    result = []
    for engine, ranges in work.items():
        private = [p for p in ranges if p.memory != LV2]
        lv2 = [p for p in ranges if p.memory == LV2]
        for memory in (Space.LV0_ACC, Space.LV1):
            staged = [p for p in private if p.memory[0] == memory]
            if not staged:
                continue
            buffers = space.buffers(params, engine, staged, share or len(work))
            if buffers is None:
                return None
            result += [CopyJob(engine, [dirty], *buffers) for dirty in staged]
        result += [CopyJob(engine, lv2[i : i + 32]) for i in range(0, len(lv2), 32)]
    return result


def plan_dump(
    params: SocParams, work: Mapping[int, list[DirtyRange]], space: StagingSpace, spare: Sequence[DirtyRange]
) -> list[list[CopyJob]]:
    """Return groups of jobs; a group begins once its engine has completed the groups before.

    Where no buffer is free in LV1 or LV2, LV2 is dumped first, LV1 through what is free there, or through the place
    that this made, and accumulators through both. ``spare``: ranges of LV2 that may be dumped just to make room; an
    engine that needs one takes it into its ``work``. :class:`DriverError` if there is none.
    """
    planned = copy_jobs(params, work, space)
    if planned is not None:
        return [planned]
    roomy = [where for where in space.lv2 if where[1] - where[0] > STAGE_BYTES * (1 + len(work))]
    left, used = list(spare), dict[int, list[Range]]()
    for ranges in work.values():
        if left and not roomy and not any(p.memory == LV2 for p in ranges):
            ranges.append(left.pop())
    groups: list[list[CopyJob]] = []
    for memories in ((Space.LV2,), (Space.LV1,), (Space.LV0_ACC,)):
        group = []
        for engine, ranges in work.items():
            chosen = {engine: [p for p in ranges if p.memory[0] in memories]}
            freed = sorted(((p.start, p.end) for p in ranges if p.memory == LV2), key=lambda r: r[0] - r[1])
            dumped = [(p.start, p.end) for p in ranges if p.memory[0] == Space.LV1]  # before accumulators need a buffer
            low = sorted(normalise([*space.lv1.get(engine, ()), *dumped]), key=lambda r: r[0] - r[1])
            planned = None if roomy else copy_jobs(params, chosen, StagingSpace(freed, {engine: low}))
            if planned is None:
                others = [where for other, places in used.items() if other != engine for where in places]
                planned = copy_jobs(
                    params, chosen, StagingSpace(roomy or space.lv2, {engine: low}, others), share=len(work)
                )
                used[engine] = [job.lv2.where for job in planned or () if job.lv2 is not None]
            if planned is None:
                raise DriverError(f"engine {engine}: no place in LV2 to pass accumulators or LV1 through")
            group += planned
        groups.append(group)
    return [group for group in groups if group]
