"""Dumping on-chip memories to DRAM and bringing them back, with ordinary instructions (of **Cancellation points**).

Supervisor programs see all of DRAM as segment 1 and all of LV2 as segment 6. LV2 goes to DRAM directly, LV1 through a
*stage* of a few slots in LV2, accumulators through a stage in LV1 and then that in LV2.
"""

from dataclasses import dataclass
from itertools import cycle

from hw.contract.isa import Insn, Lv0Space, Op, Segment, VecOp
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from sw.driver.footprint import LV2, Memory
from sw.driver.program import Access, Program
from sw.driver.ranges import Range

DRAM_SEGMENT, LV2_SEGMENT = int(Segment.WEIGHTS), int(Segment.LV2)
DRAM: Memory = (Space.DRAM, 0)
RUN = 4096  #: bytes of one run of a long copy
SLOTS = 4  #: of a stage: enough for every unit on the way to work on one
SLOT_BYTES = 2048  #: large enough to hide a unit's start, small enough to fill the pipeline early
_INT32 = 4


@dataclass(frozen=True)
class Move:
    """``size`` bytes at ``start`` of ``memory`` and their place in DRAM."""

    memory: Memory
    start: int
    size: int
    address: int


class Stage:
    """Slots handed out in turn. ``align``: slot addresses are multiples of it; ``where``: at least one slot long."""

    def __init__(self, where: Range, align: int, slot: int = SLOT_BYTES) -> None:
        start = -(-where[0] // align) * align
        room = (where[1] - start) // align * align
        self.slot = min(slot, max(align, room // SLOTS // align * align))
        slots = max(1, min(SLOTS, room // self.slot))
        self.where = (start, start + slots * self.slot)
        self._next = cycle(range(start, start + slots * self.slot, self.slot))

    def next(self) -> int:
        """Address of the next slot."""
        return next(self._next)


def copy_fields(src: int, dst: int, size: int) -> list[dict[str, int]]:
    """Fields of copies of ``size`` contiguous bytes: whole runs, then the rest."""
    runs, rest = divmod(size, RUN)
    parts = []
    if runs:
        strides = {"src_s0": RUN, "dst_s0": RUN} if runs > 1 else {}
        parts.append({"src": src, "dst": dst, "len": RUN, "hi": RUN, "n0": runs, "hi0": runs, "hi1": 1} | strides)
    if rest:
        at = runs * RUN
        parts.append({"src": src + at, "dst": dst + at, "len": rest, "hi": rest, "hi0": 1, "hi1": 1})
    return parts


def _copy(program: Program, op: Op, source: Access, target: Access, segments: dict[str, int] | None = None) -> None:
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


def save(program: Program, move: Move, lv1: Stage | None = None, lv2: Stage | None = None) -> None:
    """Append the dump of ``move``. LV1 needs a stage in ``lv2``, accumulators (whole rows) in both."""
    if move.memory == LV2:
        _store2(program, move.start, move.address, move.size)
    elif move.memory[0] == Space.LV1:
        assert lv2 is not None
        for at, size in _pieces(move, lv2.slot):
            slot = lv2.next()
            source, target = (move.memory, move.start + at, move.start + at + size), (LV2, slot, slot + size)
            _copy(program, Op.ST1, source, target, {"dst_seg": LV2_SEGMENT})
            _store2(program, slot, move.address + at, size)
    else:
        assert lv1 is not None and lv2 is not None
        for at, size in _pieces(move, _whole_rows(program.params, lv1, lv2)):
            low, slot, engine = lv1.next(), lv2.next(), move.memory[1]
            _raw(program, move.memory, move.start + at, size, low)
            source, target = ((Space.LV1, engine), low, low + size), (LV2, slot, slot + size)
            _copy(program, Op.ST1, source, target, {"dst_seg": LV2_SEGMENT})
            _store2(program, slot, move.address + at, size)


def load(program: Program, move: Move, lv1: Stage | None = None, lv2: Stage | None = None) -> None:
    """Append the way back of ``move``, with stages as for :func:`save`."""
    if move.memory == LV2:
        _load2(program, move.address, move.start, move.size)
    elif move.memory[0] == Space.LV1:
        assert lv2 is not None
        for at, size in _pieces(move, lv2.slot):
            slot = lv2.next()
            _load2(program, move.address + at, slot, size)
            target = (move.memory, move.start + at, move.start + at + size)
            _copy(program, Op.LD1, (LV2, slot, slot + size), target, {"src_seg": LV2_SEGMENT})
    else:
        assert lv1 is not None and lv2 is not None
        for at, size in _pieces(move, _whole_rows(program.params, lv1, lv2)):
            low, slot, engine = lv1.next(), lv2.next(), move.memory[1]
            _load2(program, move.address + at, slot, size)
            staged = ((Space.LV1, engine), low, low + size)
            _copy(program, Op.LD1, (LV2, slot, slot + size), staged, {"src_seg": LV2_SEGMENT})
            target = (move.memory, move.start + at, move.start + at + size)
            _copy(program, Op.LD0, staged, target, {"space": Lv0Space.ACC})


def instructions(params: SocParams, move: Move) -> int:
    """Most instructions that :func:`save` or :func:`load` appends, with stages of any size it accepts."""
    if move.memory == LV2:
        return 2
    slot = params.lv1_word if move.memory[0] == Space.LV1 else row_bytes(params)
    return 3 * -(-move.size // slot)


def row_bytes(params: SocParams) -> int:
    """Bytes of one accumulator row of all PEs of an engine."""
    return params.out_channels * _INT32


def _pieces(move: Move, most: int) -> list[tuple[int, int]]:
    return [(at, min(most, move.size - at)) for at in range(0, move.size, most)]


def _whole_rows(params: SocParams, lv1: Stage, lv2: Stage) -> int:
    row = row_bytes(params)
    return min(lv1.slot, lv2.slot) // row * row


def _raw(program: Program, memory: Memory, start: int, size: int, target: int) -> None:
    """VEC in mode RAW: whole accumulator rows to ``target`` in LV1, as LD0 with space ACC takes them."""
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


def _memory(space: Space, engine: int, segment: int) -> Memory:
    """Segments of one job do not overlap, so each counts as a memory of its own."""
    return (space, engine) if space in (Space.LV1, Space.LV0_ACT) else (space, segment)


def _reach(insn: Insn, side: str) -> tuple[int, int]:
    """Lowest byte and end of what a copy may touch at one side, padding included."""
    start = insn[side]
    low = high = start - (1 << 32) if start >> 31 else start
    for loop in ("2", "1", "0"):
        reach = (insn[f"n{loop}"] - 1) * insn[f"{side}_s{loop}"]
        low, high = low + min(0, reach), high + max(0, reach)
    return low, high + insn["len"]
