"""Says what each instruction does to the memories: the definitions of ``hw.contract.isa`` in NumPy."""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from math import prod

import numpy as np
import numpy.typing as npt

from hw.contract.isa import (
    DESTINATION_SEGMENTS,
    FORMATS,
    LV2_SEGMENTS,
    SOURCE_SEGMENTS,
    UNIT_OF,
    Insn,
    Lv0Space,
    Lv0View,
    Op,
    Segment,
)
from hw.contract.job import Fault
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from sim.functional.copies import moving, source_box, target_box
from sim.functional.limits import first_beyond, wholly_within
from sim.functional.mac import MacArrays
from sim.functional.state import EngineMemories, MemoryAccess, Prepared, Segments, Work, nothing
from sim.functional.strided import Box, strided
from sim.functional.unpacking import unpack
from sim.functional.vector import VectorUnit

_DEFAULTS = {op: {f.name: f.default for f in fields} for op, fields in FORMATS.items()}
COPIES = (Op.LD2, Op.ST2, Op.LD1, Op.ST1, Op.LD0)  #: instructions of the DMAs
_LV0 = {Lv0Space.ACT: Space.LV0_ACT, Lv0Space.WGT: Space.LV0_WGT}


class Units(VectorUnit, MacArrays):
    """Holds the memories of one SoC and the units that work on them, one instruction at a time.

    ``dram`` is used in place when given (``bytearray`` or a uint8 array), otherwise ``params.dram_bytes`` of zeros.
    ``accesses`` is what the latest instruction touched, ``bytes_read`` how many bytes copies of each kind have read so
    far, as the hardware's counters of its DMAs tell.
    """

    def __init__(self, params: SocParams, dram: bytearray | npt.NDArray[np.uint8] | None = None) -> None:
        super().__init__(params)
        if dram is None:
            self.dram = np.zeros(params.dram_bytes, np.uint8)
        else:
            self.dram = np.frombuffer(dram, np.uint8) if isinstance(dram, bytearray) else dram
        self.lv2 = np.zeros(params.lv2_bytes, np.uint8)
        self.engines = [EngineMemories.blank(params) for _ in range(params.engines)]
        self.bytes_read = dict.fromkeys(COPIES, 0)
        self._run: dict[Op, Callable[[dict, Segments, EngineMemories, Op], Work]] = {
            Op.LD2: self._copy, Op.ST2: self._copy, Op.LD1: self._copy, Op.ST1: self._copy,
            Op.LD0: self._load_lv0, Op.MAC: self._mac, Op.VEC: self._vec,
        }  # fmt: skip

    def execute(
        self, insn: Insn, segments: Segments, engine: int = 0, pc: int = 0, *, only_checks: bool = False
    ) -> None:
        """Carry out one LD2 ... VEC, ignoring its semaphores, or, with ``only_checks``, see whether it faults; raises
        :class:`FunctionalFault`."""
        self._carry_out(self.prepare(insn, segments, engine, pc, only_checks=only_checks))

    def prepare(
        self, insn: Insn, segments: Segments, engine: int = 0, pc: int = 0, *, only_checks: bool = False
    ) -> Prepared:
        """Check one LD2 ... VEC as :meth:`execute` does, and find what it works on."""
        if insn.op not in self._run:
            raise ValueError(f"{insn.op.name} belongs to the sequencer, not to a unit")
        self._pc, self._unit, self.accesses, self._only_checks = pc, UNIT_OF[insn.op], [], only_checks
        work = self._run[insn.op](_DEFAULTS[insn.op] | insn.fields, segments, self.engines[engine], insn.op)
        reads = (prod(access.where.shape) for access in self.accesses if not access.write)
        return Prepared(insn.op, work, self.accesses, sum(reads) if insn.op in COPIES else 0)

    def _carry_out(self, prepared: Prepared) -> None:
        op, work, self.accesses, read = prepared
        work()
        if read:
            self.bytes_read[op] += read

    def _segment(
        self, segments: Segments, number: int, allowed: Collection[Segment]
    ) -> tuple[npt.NDArray, Space, int, int]:
        """Return the memory, its name, base and limit of a segment that must be one of ``allowed``."""
        if number not in allowed:
            raise self._fault(Fault.ILLEGAL, 0, f"segment {number}, where only {[*map(int, allowed)]} may be named")
        memory, space = (self.lv2, Space.LV2) if number in LV2_SEGMENTS else (self.dram, Space.DRAM)
        return memory, space, *segments[number]

    def _check_runs(self, f: dict, src_limit: int, dst_limit: int) -> None:
        """Raise the LIMIT fault of a copy, before it has written anything."""
        if wholly_within(f, src_limit, dst_limit):
            return
        culprit = first_beyond(f, src_limit, dst_limit)
        if culprit is not None:
            raise self._fault(Fault.LIMIT, culprit, f"limits: source {src_limit}, destination {dst_limit}")

    def _source(self, f: dict, memory, space: Space, base: int, limit: int) -> npt.NDArray[np.uint8]:
        """Return a view of the bytes that a copy reads, (n2, n1, n0, len) of them inside the clip box."""
        return self._view(memory, space, source_box(f), False, base, limit)

    def _move(self, f: dict, data: npt.NDArray[np.uint8], targets: Sequence[npt.NDArray[np.uint8]]) -> Work:
        return nothing if self._only_checks else moving(f, data, targets)

    def _copy(self, f: dict, segments: Segments, engine: EngineMemories, op: Op) -> Work:
        lv1 = (engine.lv1, Space.LV1, 0, self.params.lv1_bytes)
        if op is Op.ST1:
            source = lv1
        else:
            source = self._segment(segments, f["src_seg"], SOURCE_SEGMENTS[op])
        if op is Op.LD1:
            target = lv1
        else:
            target = self._segment(segments, f["dst_seg"], DESTINATION_SEGMENTS[op])
        memory, space, base, limit = target
        self._check_runs(f, source[3], limit)
        data = self._source(f, *source)
        return self._move(f, data, [self._view(memory, space, target_box(f), True, base, limit)])

    def _load_lv0(self, f: dict, segments: Segments, engine: EngineMemories, op: Op) -> Work:
        if f["pe_mask"] >> self.params.pes:
            raise self._fault(Fault.ILLEGAL, 0, f"pe_mask names more than {self.params.pes} PEs")
        space = Lv0Space(f["space"])
        if space is Lv0Space.ACC:
            return self._load_accumulators(f, engine)
        if space is Lv0Space.INT4:
            return self._unpack(f, engine)
        memory = engine.act if space is Lv0Space.ACT else engine.wgt
        name, (pes, size), row = _LV0[space], memory.shape, self.params.rows
        interleaved = f["view"] == Lv0View.INTERLEAVED
        self._check_runs(f, self.params.lv1_bytes, size * pes if interleaved else size)
        data = self._source(f, engine.lv1, Space.LV1, 0, self.params.lv1_bytes)
        box = target_box(f)
        low, high = box.bounds()
        word = row * pes if interleaved else row
        first, end = low // word, (high - 1) // word + 1
        self.accesses.append(MemoryAccess(name, Box(first, (end - first,), (1,)), True))
        if not interleaved:
            return self._move(f, data, [_multicast(box, memory, pe, count) for pe, count in _ranges(f["pe_mask"])])
        if self._only_checks:
            return nothing
        words = memory.reshape(pes, -1, row)[:, first:end].transpose(1, 0, 2)  # (word, pe, byte)
        if data.shape == (1, 1, 1, words.size):
            return partial(words.__setitem__, ..., data.reshape(words.shape))
        moved = Box(box.offset - first * word, box.shape, box.strides)

        def work() -> None:
            linear = words.reshape(-1)
            moving(f, data, [moved.view(linear)])()
            words[...] = linear.reshape(words.shape)

        return work

    def _unpack(self, f: dict, engine: EngineMemories) -> Work:
        """Carry out LD0 with space INT4, which writes two words of each PE for one of LV1."""
        (pes, size), row, word = engine.wgt.shape, self.params.rows, self.params.lv1_word
        if pes == 1:
            raise self._fault(Fault.ILLEGAL, 0, "LV0 space INT4, with one bank")
        self._check_runs(f, self.params.lv1_bytes, size * pes // 2)
        self._source(f, engine.lv1, Space.LV1, 0, self.params.lv1_bytes)
        low, high = target_box(f).bounds()
        first, end = low // word, (high - 1) // word + 1
        self.accesses.append(MemoryAccess(Space.LV0_WGT, Box(2 * first, (2 * (end - first),), (1,)), True))
        if self._only_checks:
            return nothing
        words = engine.wgt.reshape(pes, -1, 2, row)[:, first:end].transpose(2, 1, 0, 3)  # (half, word, pe, byte)
        return partial(unpack, f, engine.lv1, words, first * word)

    def _load_accumulators(self, f: dict, engine: EngineMemories) -> Work:
        """Carry out LD0 with space ACC: whole LV1 words go to the little-endian bytes of the accumulators, row after
        row."""
        word, length = self.params.lv1_word, f["len"]
        for name, value in [
            *((n, f[n]) for n in _WHOLE_WORDS),
            ("lo", min(f["lo"], length)),
            ("hi", min(f["hi"], length)),
        ]:
            if value % word:
                raise self._fault(Fault.ILLEGAL, 0, f"LD0.{name} is not a multiple of {word} with space ACC")
        memory, row = engine.acc.view(np.uint8).reshape(-1), 4 * self.params.out_channels
        self._check_runs(f, self.params.lv1_bytes, memory.size)
        data = self._source(f, engine.lv1, Space.LV1, 0, self.params.lv1_bytes)
        box = target_box(f)
        low, high = box.bounds()
        self.accesses.append(
            MemoryAccess(Space.LV0_ACC, Box(low // row, ((high - 1) // row - low // row + 1,), (1,)), True)
        )
        return self._move(f, data, [box.view(memory)])


_WHOLE_WORDS = ("src", "dst", "len", "src_s2", "src_s1", "src_s0", "dst_s2", "dst_s1", "dst_s0")


def _multicast(box: Box, memory: npt.NDArray[np.uint8], pe: int, count: int) -> npt.NDArray[np.uint8]:
    """Return the bytes of ``box`` in each of ``count`` PEs from ``pe`` on."""
    size = memory.shape[1]
    return strided(memory, pe * size + box.offset, (count, *box.shape), (size, *box.strides))


def _ranges(mask: int) -> Iterator[tuple[int, int]]:
    """Yield the bits that are set as ranges: the first, and how many there are side by side."""
    for bit in bits(mask & ~(mask << 1)):
        above = ~(mask >> bit)
        yield bit, (above & -above).bit_length() - 1


def bits(mask: int) -> list[int]:
    """Return the numbers of the bits that are set."""
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
