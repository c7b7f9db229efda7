"""Writes supervisor programs, which dump on-chip memories to DRAM and bring them back with ordinary instructions (of
**Cancellation points**). The order between units follows from the bytes that instructions touch.

Supervisor programs see all of DRAM as segment 1 and all of LV2 as segment 6. LV2 goes to DRAM directly, LV1 through a
*staging buffer* of a few slots in LV2, accumulators through one in LV1 and then that in LV2."""

from dataclasses import dataclass, field
from itertools import count, cycle

from hw.contract.isa import UNIT_OF, Insn, Lv0Space, Op, Segment, Unit, VecOp
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from sw.driver.memory.ranges import LV2, MemoryId, Range, row_bytes

MemoryRange = tuple[MemoryId, int, int]  #: memory, first byte, end

MAX_INSTRUCTIONS = 120  #: of one program, so that no semaphore can count too far however far a unit runs ahead


@dataclass
class _Step:
    op: Op
    fields: dict[str, int]
    reads: list[MemoryRange]
    writes: list[MemoryRange]
    wait: int = 0
    signal: int = 0


@dataclass
class Program:
    """Holds instructions in program order. :meth:`encode` adds the semaphores: wherever an instruction touches bytes
    that one of another unit touched before, and one of the two writes them, it waits for that one's signal.

    One semaphore per ordered pair of units. Units complete in order, so the latest conflict stands for all before it.
    """

    params: SocParams
    steps: list[_Step] = field(default_factory=list)

    def add(self, op: Op, fields: dict[str, int], reads: list[MemoryRange], writes: list[MemoryRange]) -> None:
        """Append an instruction (``fields`` without wait and signal) with the bytes it touches."""
        self.steps.append(_Step(op, fields, reads, writes))

    @property
    def moved(self) -> int:
        """Return how many bytes of DRAM the instructions read or write."""
        touched = [r for step in self.steps for r in (*step.reads, *step.writes)]
        return sum(end - start for memory, start, end in touched if memory[0] == Space.DRAM)

    def split(self) -> list["Program"]:
        """Return the same instructions in programs that may run one behind the other."""
        starts = range(0, len(self.steps), MAX_INSTRUCTIONS)
        return [Program(self.params, self.steps[i : i + MAX_INSTRUCTIONS]) for i in starts]

    def encode(self) -> bytes:
        """Return the encoded program with END; call this once."""
        self._synchronise()
        insns = [Insn(s.op, s.fields | {"wait": s.wait, "signal": s.signal}) for s in self.steps]
        return b"".join(insn.encode() for insn in (*insns, Insn(Op.END)))

    def _synchronise(self) -> None:
        numbers, free = dict[tuple[Unit, Unit], int](), count()
        ordered: dict[tuple[Unit, Unit], int] = {}  # latest instruction of the first that the second has waited for
        for i, step in enumerate(self.steps):
            unit = UNIT_OF[step.op]
            for other, j in self._conflicts(i).items():
                pair = (other, unit)
                if j > ordered.get(pair, -1):
                    if pair not in numbers:
                        numbers[pair] = next(free)
                    ordered[pair] = j
                    self.steps[j].signal |= 1 << numbers[pair]
                    step.wait |= 1 << numbers[pair]

    def _conflicts(self, i: int) -> dict[Unit, int]:
        """Return the latest earlier instruction of each other unit that step ``i`` must follow."""
        step, found = self.steps[i], dict[Unit, int]()
        for j in range(i - 1, -1, -1):
            earlier = self.steps[j]
            unit = UNIT_OF[earlier.op]
            if unit is UNIT_OF[step.op] or unit in found:
                continue
            if _touch(step.writes, earlier.reads + earlier.writes) or _touch(step.reads, earlier.writes):
                found[unit] = j
        return found


def _touch(a: list[MemoryRange], b: list[MemoryRange]) -> bool:
    return any(m == n and s < y and x < e for m, s, e in a for n, x, y in b)


DRAM_SEGMENT, LV2_SEGMENT = int(Segment.SCRATCH), int(Segment.LV2)
DRAM: MemoryId = (Space.DRAM, 0)
RUN = 4096  #: bytes of one run of a long copy
SLOTS = 4  #: of a staging buffer: enough for every unit on the way to work on one
SLOT_BYTES = 4096  #: large enough to hide a unit's start, small enough to fill the pipeline early
_INT32 = 4


@dataclass(frozen=True)
class Spill:
    """Describes ``size`` bytes at ``start`` of an on-chip ``memory``, and the ``address`` of their copy in DRAM."""

    memory: MemoryId
    start: int
    size: int
    address: int


class StagingBuffer:
    """Hands out the slots of a staging buffer in turn. Slot addresses are multiples of ``align``; ``where`` is at least
    one slot long."""

    def __init__(self, where: Range, align: int, slot: int = SLOT_BYTES) -> None:
        start = -(-where[0] // align) * align
        room = (where[1] - start) // align * align
        self.slot = min(slot, max(align, room // SLOTS // align * align))
        slots = max(1, min(SLOTS, room // self.slot))
        self.where = (start, start + slots * self.slot)
        self._next = cycle(range(start, start + slots * self.slot, self.slot))

    def next(self) -> int:
        """Return the address of the next slot."""
        return next(self._next)


def copy_fields(src: int, dst: int, size: int) -> list[dict[str, int]]:
    """Return the fields of copies of ``size`` contiguous bytes: whole runs, then the rest."""
    runs, rest = divmod(size, RUN)
    parts = []
    if runs:
        strides = {"src_s0": RUN, "dst_s0": RUN} if runs > 1 else {}
        parts.append({"src": src, "dst": dst, "len": RUN, "hi": RUN, "n0": runs, "hi0": runs, "hi1": 1} | strides)
    if rest:
        at = runs * RUN
        parts.append({"src": src + at, "dst": dst + at, "len": rest, "hi": rest, "hi0": 1, "hi1": 1})
    return parts


def _copy(
    program: Program, op: Op, source: MemoryRange, target: MemoryRange, segments: dict[str, int] | None = None
) -> None:
    (src_memory, src, end), (dst_memory, dst, _) = source, target
    at = 0
    for fields in copy_fields(src, dst, end - src):
        size = fields["len"] * fields.get("n0", 1)
        reads = [(src_memory, src + at, src + at + size)]
        program.add(op, fields | (segments or {}), reads, [(dst_memory, dst + at, dst + at + size)])
        at += size


def _store2(program: Program, lv2: int, dram: int, size: int) -> None:
    segments = {"src_seg": LV2_SEGMENT, "dst_seg": DRAM_SEGMENT}
    _copy(program, Op.ST2, (LV2, lv2, lv2 + size), (DRAM, dram, dram + size), segments)


def _load2(program: Program, dram: int, lv2: int, size: int) -> None:
    segments = {"src_seg": DRAM_SEGMENT, "dst_seg": LV2_SEGMENT}
    _copy(program, Op.LD2, (DRAM, dram, dram + size), (LV2, lv2, lv2 + size), segments)


def save(program: Program, spill: Spill, lv1: StagingBuffer | None = None, lv2: StagingBuffer | None = None) -> None:
    """Append the dump of ``spill``. LV1 needs a staging buffer ``lv2``, accumulators (whole rows) need both."""
    if spill.memory == LV2:
        _store2(program, spill.start, spill.address, spill.size)
    elif spill.memory[0] == Space.LV1:
        assert lv2 is not None
        for at, size in _chunks(spill, lv2.slot):
            slot = lv2.next()
            source, target = (spill.memory, spill.start + at, spill.start + at + size), (LV2, slot, slot + size)
            _copy(program, Op.ST1, source, target, {"dst_seg": LV2_SEGMENT})
            _store2(program, slot, spill.address + at, size)
    else:
        assert lv1 is not None and lv2 is not None
        for at, size in _chunks(spill, _whole_rows(program.params, lv1, lv2)):
            low, slot, engine = lv1.next(), lv2.next(), spill.memory[1]
            _raw(program, spill.memory, spill.start + at, size, low)
            source, target = ((Space.LV1, engine), low, low + size), (LV2, slot, slot + size)
            _copy(program, Op.ST1, source, target, {"dst_seg": LV2_SEGMENT})
            _store2(program, slot, spill.address + at, size)


def load(program: Program, spill: Spill, lv1: StagingBuffer | None = None, lv2: StagingBuffer | None = None) -> None:
    """Append the way back of ``spill``, with staging buffers as for :func:`save`."""
    if spill.memory == LV2:
        _load2(program, spill.address, spill.start, spill.size)
    elif spill.memory[0] == Space.LV1:
        assert lv2 is not None
        for at, size in _chunks(spill, lv2.slot):
            slot = lv2.next()
            _load2(program, spill.address + at, slot, size)
            target = (spill.memory, spill.start + at, spill.start + at + size)
            _copy(program, Op.LD1, (LV2, slot, slot + size), target, {"src_seg": LV2_SEGMENT})
    else:
        assert lv1 is not None and lv2 is not None
        for at, size in _chunks(spill, _whole_rows(program.params, lv1, lv2)):
            low, slot, engine = lv1.next(), lv2.next(), spill.memory[1]
            _load2(program, spill.address + at, slot, size)
            staged = ((Space.LV1, engine), low, low + size)
            _copy(program, Op.LD1, (LV2, slot, slot + size), staged, {"src_seg": LV2_SEGMENT})
            target = (spill.memory, spill.start + at, spill.start + at + size)
            _copy(program, Op.LD0, staged, target, {"space": Lv0Space.ACC})


def _chunks(spill: Spill, most: int) -> list[tuple[int, int]]:
    return [(at, min(most, spill.size - at)) for at in range(0, spill.size, most)]


def _whole_rows(params: SocParams, lv1: StagingBuffer, lv2: StagingBuffer) -> int:
    row = row_bytes(params)
    return min(lv1.slot, lv2.slot) // row * row


def _raw(program: Program, memory: MemoryId, start: int, size: int, target: int) -> None:
    """Append VEC in mode RAW: whole accumulator rows go to ``target`` in LV1, as LD0 with space ACC takes them."""
    p, row = program.params, row_bytes(program.params)
    fields = {
        "op": VecOp.RAW, "src_acc": 1, "a": start // row, "a_s1": 1, "d": target,
        "n2": _INT32, "n1": size // row, "n0": p.vec_groups,
        "d_s2": p.vec_lanes, "d_s1": row, "d_s0": _INT32 * p.vec_lanes,
    }  # fmt: skip
    program.add(Op.VEC, fields, [(memory, start, start + size)], [((Space.LV1, memory[1]), target, target + size)])


def reload(program: Program, insns: list[Insn], engine: int) -> None:
    """Append LD2, LD1 and LD0 instructions of an image, in their order, for segments of the image's own.

    Their waits and signals are left out; the program's own order takes their place.
    """
    spaces = {Op.LD2: (Space.DRAM, Space.LV2), Op.LD1: (Space.LV2, Space.LV1), Op.LD0: (Space.LV1, Space.LV0_ACT)}
    for insn in insns:
        source, target = spaces[insn.op]
        fields = {name: value for name, value in insn.fields.items() if name not in ("wait", "signal")}
        read = (_memory(source, engine, insn["src_seg"]), *_reach(insn, "src"))
        write = (_memory(target, engine, insn["dst_seg"]), *_reach(insn, "dst"))
        # Which LV0 memory does not matter: only LD0 writes it.
        program.add(insn.op, fields, [read], [write])


def _memory(space: Space, engine: int, segment: int) -> MemoryId:
    """Return the memory that a segment of a job counts as: segments of one job do not overlap, so each is one of its
    own."""
    return (space, engine) if space in (Space.LV1, Space.LV0_ACT) else (space, segment)


def _reach(insn: Insn, side: str) -> tuple[int, int]:
    """Return the lowest byte and the end of what a copy may touch at one side, padding included."""
    start = insn[side]
    low = high = start - (1 << 32) if start >> 31 else start
    for loop in ("2", "1", "0"):
        reach = (insn[f"n{loop}"] - 1) * insn[f"{side}_s{loop}"]
        low, high = low + min(0, reach), high + max(0, reach)
    return low, high + insn["len"]
