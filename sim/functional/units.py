"""What each instruction does to the memories: the definitions of ``hw.contract.isa`` in NumPy."""

from collections.abc import Callable, Collection, Sequence
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
    MacMode,
    Op,
    Segment,
)
from hw.contract.job import Fault
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from sim.functional.limits import first_beyond, source_start, wholly_within
from sim.functional.pieces import MOST, cut, pieces, whole
from sim.functional.state import EngineMemories, MemoryAccess, Segments
from sim.functional.strided import Box, strided
from sim.functional.vector import VectorUnit

_DEFAULTS = {op: {f.name: f.default for f in fields} for op, fields in FORMATS.items()}
COPIES = (Op.LD2, Op.ST2, Op.LD1, Op.ST1, Op.LD0)  #: instructions of the DMAs
_LV0 = {Lv0Space.ACT: Space.LV0_ACT, Lv0Space.WGT: Space.LV0_WGT}


class Units(VectorUnit):
    """The memories of one SoC and the units that work on them, one instruction at a time.

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
        self._run: dict[Op, Callable[[dict, Segments, EngineMemories, Op], None]] = {
            Op.LD2: self._copy, Op.ST2: self._copy, Op.LD1: self._copy, Op.ST1: self._copy,
            Op.LD0: self._load_lv0, Op.MAC: self._mac, Op.VEC: self._vec,
        }  # fmt: skip

    def execute(
        self, insn: Insn, segments: Segments, engine: int = 0, pc: int = 0, *, only_checks: bool = False
    ) -> None:
        """Carry out one LD2 ... VEC, ignoring its semaphores, or, with ``only_checks``, see whether it faults; raises
        :class:`FunctionalFault`."""
        if insn.op not in self._run:
            raise ValueError(f"{insn.op.name} belongs to the sequencer, not to a unit")
        self._pc, self._unit, self.accesses, self._only_checks = pc, UNIT_OF[insn.op], [], only_checks
        self._run[insn.op](_DEFAULTS[insn.op] | insn.fields, segments, self.engines[engine], insn.op)
        if insn.op in COPIES:
            self.bytes_read[insn.op] += sum(prod(access.where.shape) for access in self.accesses if not access.write)

    def _segment(
        self, segments: Segments, number: int, allowed: Collection[Segment]
    ) -> tuple[npt.NDArray, Space, int, int]:
        """Memory, its name, base and limit of a segment that must be one of ``allowed``."""
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
        """A view of the bytes that a copy reads, (n2, n1, n0, len) of them inside the clip box."""
        (lo1, hi1), (lo0, hi0), (lo, hi) = _clips(f)
        inner = (f["n2"], max(0, hi1 - lo1), max(0, hi0 - lo0), max(0, hi - lo))
        start = source_start(f) + lo1 * f["src_s1"] + lo0 * f["src_s0"] + lo
        box = Box(start, inner, (f["src_s2"], f["src_s1"], f["src_s0"], 1))
        return self._view(memory, space, box, False, base, limit)

    def _move(self, f: dict, data: npt.NDArray[np.uint8], targets: Sequence[npt.NDArray[np.uint8]]) -> None:
        """Write the (n2, n1, n0, len) bytes of a copy to ``targets``: ``data`` inside the clip box, fill elsewhere."""
        if self._only_checks:
            return
        shape = (f["n2"], f["n1"], f["n0"], f["len"])
        (lo1, hi1), (lo0, hi0), (lo, hi) = _clips(f)
        if data.shape == shape:
            for target in targets:
                target[...] = data
            return
        for piece in pieces(shape[:3], f["len"]):
            i2, i1, i0 = whole(piece, shape[:3])
            runs = np.full([*(each.stop - each.start for each in (i2, i1, i0)), f["len"]], f["fill"], np.uint8)
            if data.size:
                (to1, from1), (to0, from0) = cut(i1, lo1, hi1), cut(i0, lo0, hi0)
                runs[:, to1, to0, lo:hi] = data[i2, from1, from0]
            for target in targets:
                target[i2, i1, i0] = runs

    def _copy(self, f: dict, segments: Segments, engine: EngineMemories, op: Op) -> None:
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
        self._move(f, data, [self._view(memory, space, _target(f), True, base, limit)])

    def _load_lv0(self, f: dict, segments: Segments, engine: EngineMemories, op: Op) -> None:
        if f["space"] > max(Lv0Space):
            raise self._fault(Fault.ILLEGAL, 0, f"LV0 space {f['space']}")
        if f["pe_mask"] >> self.params.pes:
            raise self._fault(Fault.ILLEGAL, 0, f"pe_mask names more than {self.params.pes} PEs")
        space = Lv0Space(f["space"])
        if space is Lv0Space.ACC:
            self._load_accumulators(f, engine)
            return
        memory = engine.act if space is Lv0Space.ACT else engine.wgt
        name, (pes, size), row = _LV0[space], memory.shape, self.params.rows
        interleaved = f["view"] == Lv0View.INTERLEAVED
        self._check_runs(f, self.params.lv1_bytes, size * pes if interleaved else size)
        data = self._source(f, engine.lv1, Space.LV1, 0, self.params.lv1_bytes)
        box = _target(f)
        low, high = box.bounds()
        word = row * pes if interleaved else row
        self.accesses.append(MemoryAccess(name, Box(low // word, ((high - 1) // word - low // word + 1,), (1,)), True))
        if interleaved:
            linear = memory.reshape(pes, -1, row).transpose(1, 0, 2).reshape(-1)
            self._move(f, data, [box.view(linear)])
            memory.reshape(pes, -1, row)[...] = linear.reshape(-1, pes, row).transpose(1, 0, 2)
            return
        self._move(f, data, [box.view(memory[pe]) for pe in bits(f["pe_mask"])])

    def _load_accumulators(self, f: dict, engine: EngineMemories) -> None:
        """LD0 with space ACC: whole LV1 words to the little-endian bytes of the accumulators, row after row."""
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
        box = _target(f)
        low, high = box.bounds()
        self.accesses.append(
            MemoryAccess(Space.LV0_ACC, Box(low // row, ((high - 1) // row - low // row + 1,), (1,)), True)
        )
        self._move(f, data, [box.view(memory)])

    def _mac(self, f: dict, segments: Segments, engine: EngineMemories, op: Op) -> None:
        p, rows = self.params, self.params.rows
        if f["mode"] > MacMode.DEPTHWISE:
            raise self._fault(Fault.ILLEGAL, f["mode"], f"MAC mode {f['mode']}")
        depthwise = f["mode"] == MacMode.DEPTHWISE
        taps = min(p.lv0_banks, rows) if depthwise else 1
        blocks = f["n2"] * f["n1"] * f["n0"]
        shape = (f["n2"], f["n1"], f["n0"], taps, f["p1"], f["p0"])
        act = Box(f["act"], shape, (f["k2_s"], f["k1_s"], f["k0_s"], 1, f["p1_s"], f["p0_s"]))
        wgt = Box(f["wgt"], (blocks * rows,), (1,))
        acc = Box(f["acc"], (f["p1"], f["p0"]), (f["acc_s"], 1))
        self._touch(Space.LV0_ACT, act, False, p.lv0_act_bytes // rows)
        self._touch(Space.LV0_WGT, wgt, False, p.lv0_wgt_bytes // rows)
        self._touch(Space.LV0_ACC, acc, True, p.lv0_acc_rows)
        if self._only_checks:
            return
        # (pe, block loops, tap, pixel loops, byte)
        x = strided(
            engine.act, f["act"] * rows, (p.pes, *shape, rows),
            (p.lv0_act_bytes, *(stride * rows for stride in act.strides), 1), np.int8 if f["x_signed"] else np.uint8,
        )  # fmt: skip
        raw = engine.wgt[:, f["wgt"] * rows : (f["wgt"] + blocks * rows) * rows]
        raw = raw.view(np.int8) if f["w_signed"] else raw
        exact = np.float32 if blocks * taps * rows <= _EXACT_DEPTH else np.float64
        w = _widen(raw.reshape(p.pes, blocks, rows, rows), f["w_signed"], f["w_zp"], exact)  # (pe, block, row, column)
        if f["w_cols"]:
            w = w.transpose(0, 1, 3, 2)
        loops, each = (f["p1"], f["p0"]), p.pes * blocks * taps * rows
        before = engine.acc.copy() if prod(loops) * each > _PIXELS_MOST else engine.acc
        for piece in pieces(loops, each, _PIXELS_MOST):
            i1, i0 = whole(piece, loops)
            found = _products(f, _widen(x[..., i1, i0, :], f["x_signed"], f["x_zp"], exact), w, depthwise)
            self._accumulate(f, i1.start * f["acc_s"] + i0.start, found, before, engine.acc)

    def _accumulate(self, f: dict, first: int, found: npt.NDArray, before: npt.NDArray, acc: npt.NDArray) -> None:
        """Put the (p1, p0, channel) numbers ``found`` into the accumulators from row ``first`` of the instruction's on;
        where it adds, to what was there ``before``."""
        height, length, width = found.shape
        first += f["acc"]
        if f["acc_s"] >= length or height == 1:
            steps = (f["acc_s"] * width, width, 1)
            target, old = (strided(each, first * width, found.shape, steps) for each in (acc, before))
            target[...] = (found + old if f["accumulate"] else found).astype(np.int32)
            return
        index = Box(first, (height, length), (f["acc_s"], 1)).indices().reshape(-1)
        found = found.reshape(height * length, width)  # rows that overlap: the last pixel counts
        if f["accumulate"]:
            found = found + before[index]
        acc[index] = found.astype(np.int32)


#: Products of two operands of 9 bits that float32 adds without rounding: each is at most 255 * 255.
_EXACT_DEPTH = (1 << 24) // (255 * 255)
_PIXELS_MOST = MOST << 3  #: elements of activations that are multiplied together
_WHOLE_WORDS = ("src", "dst", "len", "src_s2", "src_s1", "src_s0", "dst_s2", "dst_s1", "dst_s0")


def _clips(f: dict) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """Where a copy reads: from which to before which i1, i0 and byte of a run."""
    return (
        (f["lo1"], min(f["hi1"], f["n1"])),
        (f["lo0"], min(f["hi0"], f["n0"])),
        (f["lo"], min(f["hi"], f["len"])),
    )


def _target(f: dict) -> Box:
    """What a copy writes, counted from where its memory or segment begins."""
    return Box(f["dst"], (f["n2"], f["n1"], f["n0"], f["len"]), (f["dst_s2"], f["dst_s1"], f["dst_s0"], 1))


def _products(f: dict, x: npt.NDArray, w: npt.NDArray, depthwise: bool) -> npt.NDArray[np.int64]:
    """Sums of products for the pixels of ``x`` (pe, block loops, tap, pixel loops, byte), as (p1, p0, channel)."""
    pes, *_, taps, height, length, rows = x.shape
    blocks, pixels = w.shape[1], height * length
    if depthwise:
        x = x.reshape(pes, blocks, taps, pixels, rows)
        total = np.einsum("pbtxc,pbtc->pxc", x, w[:, :, :taps, :], optimize=True)
    else:
        x = x.reshape(pes, blocks, pixels, rows).transpose(0, 2, 1, 3).reshape(pes, pixels, blocks * rows)
        total = x @ w.reshape(pes, blocks * rows, rows)
    # Sums of 17-bit products are exact; the accumulator wraps as int32 does.
    return total.astype(np.int64).transpose(1, 0, 2).reshape(height, length, pes * rows)


def bits(mask: int) -> list[int]:
    """Numbers of the bits that are set."""
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]


def _widen(raw: npt.NDArray, signed: int, zero_point: int, exact: type) -> npt.NDArray:
    """Numbers minus a raw zero point, as floats so that BLAS multiplies them."""
    data: npt.NDArray = raw.astype(exact)
    if zero_point:
        data -= int(np.uint8(zero_point).astype(np.int8)) if signed else zero_point
    return data
