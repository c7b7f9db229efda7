"""What each instruction does to the memories: the definitions of ``hw.contract.isa`` in NumPy."""

from collections.abc import Callable, Collection
from math import prod

import numpy as np
import numpy.typing as npt

from hw.contract.isa import (
    DESTINATION_SEGMENTS,
    FORMATS,
    LV2_SEGMENTS,
    SOURCE_SEGMENTS,
    TABLE_BYTES,
    UNIT_OF,
    VEC_CHANNEL_BYTES,
    VEC_HEADER,
    Insn,
    Lv0Space,
    Lv0View,
    MacMode,
    Op,
    Segment,
    VecOp,
)
from hw.contract.job import Fault, FaultUnit
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from sim.functional.limits import first_beyond, wholly_within
from sim.functional.state import EngineMemories, FunctionalFault, MemoryAccess, Segments
from sim.functional.strided import Box, strided

_DEFAULTS = {op: {f.name: f.default for f in fields} for op, fields in FORMATS.items()}
_ADDRESS_SPACE = 1 << 32
COPIES = (Op.LD2, Op.ST2, Op.LD1, Op.ST1, Op.LD0)  #: instructions of the DMAs
_LV0 = {Lv0Space.ACT: Space.LV0_ACT, Lv0Space.WGT: Space.LV0_WGT}


class Units:
    """The memories of one SoC and the units that work on them, one instruction at a time.

    ``dram`` is used in place when given (``bytearray`` or a uint8 array), otherwise ``params.dram_bytes`` of zeros.
    ``accesses`` is what the latest instruction touched, ``bytes_read`` how many bytes copies of each kind have read so
    far, as the hardware's counters of its DMAs tell.
    """

    def __init__(self, params: SocParams, dram: bytearray | npt.NDArray[np.uint8] | None = None) -> None:
        self.params = params
        if dram is None:
            self.dram = np.zeros(params.dram_bytes, np.uint8)
        else:
            self.dram = np.frombuffer(dram, np.uint8) if isinstance(dram, bytearray) else dram
        self.lv2 = np.zeros(params.lv2_bytes, np.uint8)
        self.engines = [EngineMemories.blank(params) for _ in range(params.engines)]
        self.accesses: list[MemoryAccess] = []
        self.bytes_read = dict.fromkeys(COPIES, 0)
        self._pc = 0
        self._unit: int = FaultUnit.EXECUTOR
        self._run: dict[Op, Callable[[dict, Segments, EngineMemories, Op], None]] = {
            Op.LD2: self._copy, Op.ST2: self._copy, Op.LD1: self._copy, Op.ST1: self._copy,
            Op.LD0: self._load_lv0, Op.MAC: self._mac, Op.VEC: self._vec,
        }  # fmt: skip

    def execute(self, insn: Insn, segments: Segments, engine: int = 0, pc: int = 0) -> None:
        """Carry out one LD2 ... VEC, ignoring its semaphores; raises :class:`FunctionalFault`."""
        if insn.op not in self._run:
            raise ValueError(f"{insn.op.name} belongs to the sequencer, not to a unit")
        self._pc, self._unit, self.accesses = pc, UNIT_OF[insn.op], []
        self._run[insn.op](_DEFAULTS[insn.op] | insn.fields, segments, self.engines[engine], insn.op)
        if insn.op in COPIES:
            self.bytes_read[insn.op] += sum(prod(access.where.shape) for access in self.accesses if not access.write)

    def _fault(self, code: Fault, addr: int, why: str) -> FunctionalFault:
        return FunctionalFault(code, self._pc, addr % _ADDRESS_SPACE, self._unit, why)

    def _touch(self, space: Space, box: Box, write: bool, limit: int, base: int = 0) -> Box:
        """Check ``box``, whose offsets are relative to ``base``, against ``limit``; note it as an access."""
        low, high = box.bounds()
        if low < 0 or high > limit:
            bad = low if low < 0 else max(limit, low)
            raise self._fault(Fault.LIMIT, bad, f"{space} {low} to {high}, limit {limit}")
        moved = Box(box.offset + base, box.shape, box.strides)
        if not box.empty:
            self.accesses.append(MemoryAccess(space, moved, write))
        return moved

    def _view(self, memory: npt.NDArray, space: Space, box: Box, write: bool, base: int = 0, limit: int | None = None):
        """A view of ``box`` in ``memory`` after the limit check."""
        limit = memory.size - base if limit is None else limit
        return self._touch(space, box, write, limit, base).view(memory)

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

    def _read_runs(self, f: dict, memory, space: Space, base: int, limit: int) -> npt.NDArray[np.uint8]:
        """The (n2, n1, n0, len) bytes that a copy writes: source bytes inside the clip box, fill elsewhere."""
        src = f["src"] - _ADDRESS_SPACE if f["src"] >> 31 else f["src"]
        shape = (f["n2"], f["n1"], f["n0"], f["len"])
        lo1, hi1 = f["lo1"], min(f["hi1"], f["n1"])
        lo0, hi0 = f["lo0"], min(f["hi0"], f["n0"])
        lo, hi = f["lo"], min(f["hi"], f["len"])
        inner = (f["n2"], max(0, hi1 - lo1), max(0, hi0 - lo0), max(0, hi - lo))
        start = src + lo1 * f["src_s1"] + lo0 * f["src_s0"] + lo
        box = Box(start, inner, (f["src_s2"], f["src_s1"], f["src_s0"], 1))
        data = self._view(memory, space, box, False, base, limit)
        if inner == shape:
            return data
        runs = np.full(shape, f["fill"], np.uint8)
        if not box.empty:
            runs[:, lo1:hi1, lo0:hi0, lo:hi] = data
        return runs

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
        runs = self._read_runs(f, *source)
        box = Box(f["dst"], runs.shape, (f["dst_s2"], f["dst_s1"], f["dst_s0"], 1))
        self._view(memory, space, box, True, base, limit)[...] = runs

    def _load_lv0(self, f: dict, segments: Segments, engine: EngineMemories, op: Op) -> None:
        if f["space"] > max(Lv0Space):
            raise self._fault(Fault.ILLEGAL, 0, f"LV0 space {f['space']}")
        space = Lv0Space(f["space"])
        if space is Lv0Space.ACC:
            self._load_accumulators(f, engine)
            return
        memory = engine.act if space is Lv0Space.ACT else engine.wgt
        name, (pes, size), row = _LV0[space], memory.shape, self.params.rows
        interleaved = f["view"] == Lv0View.INTERLEAVED
        self._check_runs(f, self.params.lv1_bytes, size * pes if interleaved else size)
        runs = self._read_runs(f, engine.lv1, Space.LV1, 0, self.params.lv1_bytes)
        box = Box(f["dst"], runs.shape, (f["dst_s2"], f["dst_s1"], f["dst_s0"], 1))
        low, high = box.bounds()
        word = row * pes if interleaved else row
        self.accesses.append(MemoryAccess(name, Box(low // word, ((high - 1) // word - low // word + 1,), (1,)), True))
        if interleaved:
            linear = memory.reshape(pes, -1, row).transpose(1, 0, 2).reshape(-1)
            box.view(linear)[...] = runs
            memory.reshape(pes, -1, row)[...] = linear.reshape(-1, pes, row).transpose(1, 0, 2)
            return
        if f["pe_mask"] >> pes:
            raise self._fault(Fault.ILLEGAL, f["pe_mask"], f"pe_mask names more than {pes} PEs")
        for pe in bits(f["pe_mask"]):
            box.view(memory[pe])[...] = runs

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
        runs = self._read_runs(f, engine.lv1, Space.LV1, 0, self.params.lv1_bytes)
        box = Box(f["dst"], runs.shape, (f["dst_s2"], f["dst_s1"], f["dst_s0"], 1))
        low, high = box.bounds()
        self.accesses.append(
            MemoryAccess(Space.LV0_ACC, Box(low // row, ((high - 1) // row - low // row + 1,), (1,)), True)
        )
        box.view(memory)[...] = runs

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
        pixels, depth = f["p1"] * f["p0"], blocks * taps * rows
        exact = np.float32 if depth <= _EXACT_DEPTH else np.float64
        # (pe, block loops, tap, pixel loops, byte)
        raw = strided(
            engine.act, f["act"] * rows, (p.pes, *shape, rows),
            (p.lv0_act_bytes, *(stride * rows for stride in act.strides), 1), np.int8 if f["x_signed"] else np.uint8,
        )  # fmt: skip
        x = _widen(raw, f["x_signed"], f["x_zp"], exact)
        raw = engine.wgt[:, f["wgt"] * rows : (f["wgt"] + blocks * rows) * rows]
        raw = raw.view(np.int8) if f["w_signed"] else raw
        w = _widen(raw.reshape(p.pes, blocks, rows, rows), f["w_signed"], f["w_zp"], exact)  # (pe, block, row, column)
        if f["w_cols"]:
            w = w.transpose(0, 1, 3, 2)
        if depthwise:
            x = x.reshape(p.pes, blocks, taps, pixels, rows)
            total = np.einsum("pbtxc,pbtc->pxc", x, w[:, :, :taps, :], optimize=True)
        else:
            x = x.reshape(p.pes, blocks, pixels, rows).transpose(0, 2, 1, 3).reshape(p.pes, pixels, blocks * rows)
            total = x @ w.reshape(p.pes, blocks * rows, rows)
        # Sums of 17-bit products are exact; the accumulator wraps as int32 does.
        result = total.astype(np.int64).transpose(1, 0, 2).reshape(f["p1"], f["p0"], p.out_channels)
        width = p.out_channels
        if f["acc_s"] >= f["p0"] or f["p1"] == 1:
            target = strided(engine.acc, f["acc"] * width, result.shape, (f["acc_s"] * width, width, 1))
            target[...] = (result + target if f["accumulate"] else result).astype(np.int32)
            return
        index = acc.indices().reshape(-1)  # rows that overlap: the last pixel counts
        result = result.reshape(pixels, width)
        if f["accumulate"]:
            result = result + engine.acc[index]
        engine.acc[index] = result.astype(np.int32)

    def _vec(self, f: dict, segments: Segments, engine: EngineMemories, op: Op) -> None:
        p, lanes, lv1 = self.params, self.params.vec_lanes, engine.lv1
        if f["op"] == VecOp.RAW:
            self._vec_raw(f, engine)
            return
        reduces = f["op"] in (VecOp.MAX, VecOp.SUM)
        if (
            f["op"] > VecOp.RAW
            or (f["src_acc"] and (f["op"] != VecOp.LIN or f["b_en"]))
            or (f["b_en"] if reduces else f["k1"] * f["k0"] != 1)
            or ((f["per_channel"] or f["src_acc"]) and f["n0"] > p.vec_groups)
        ):
            raise self._fault(Fault.ILLEGAL, f["op"], f"VEC op {f['op']}")
        self._check_alignment(f)
        shape = (f["n2"], f["n1"], f["n0"])
        head = self._vec_header(f["p"], lv1)
        if f["src_acc"]:
            s = self._accumulators(f, engine).astype(np.int64)
        else:
            window = (f["k1"], f["k0"])
            box = Box(f["a"], (*shape, *window, lanes), (*(f[n] for n in _A_STRIDES), 1))
            s = _signed(self._view(lv1, Space.LV1, box, False), f["a_signed"]) - head["zp_a"]
            s = s.max(axis=(3, 4)) if f["op"] == VecOp.MAX else s.sum(axis=(3, 4))
            if f["op"] == VecOp.LIN:
                s = s * head["ma"]
        if f["b_en"]:
            box = Box(f["b"], (*shape, lanes), (*(f[n] for n in _B_STRIDES), 1))
            b = _signed(self._view(lv1, Space.LV1, box, False), f["b_signed"]) - head["zp_b"]
            s = s * b if f["op"] == VecOp.MUL else s + b * head["mb"]
        elif f["op"] == VecOp.MUL:
            raise self._fault(Fault.ILLEGAL, 0, "MUL without b_en")
        bias, scale = self._channel_params(f, lv1)
        y = requantise(s + bias, scale, head["zp_y"], head["lo"], head["hi"]).astype(np.uint8)
        if f["table"]:
            y = self._view(lv1, Space.LV1, Box(f["t"], (TABLE_BYTES,), (1,)), False)[y]
        target = Box(f["d"], (*shape, lanes), (*(f[n] for n in _D_STRIDES), 1))
        self._view(lv1, Space.LV1, target, True)[...] = y

    def _vec_raw(self, f: dict, engine: EngineMemories) -> None:
        """RAW: vector i2 takes bytes i2 * lanes ... of the accumulators of each lane group."""
        flags = [f[name] for name in ("b_en", "a_signed", "b_signed", "table", "per_channel")]
        if not f["src_acc"] or f["n2"] != 4 or f["k1"] * f["k0"] != 1 or any(flags) or f["n0"] > self.params.vec_groups:
            raise self._fault(Fault.ILLEGAL, f["op"], "RAW takes src_acc, n2 = 4, no window and no other flag")
        self._check_alignment(f | {"p": 0})
        shape, lanes = (f["n2"], f["n1"], f["n0"]), self.params.vec_lanes
        raw = np.ascontiguousarray(self._accumulators(f, engine), "<i4").view(np.uint8).reshape(*shape, 4, lanes)
        target = Box(f["d"], (*shape, lanes), (*(f[n] for n in _D_STRIDES), 1))
        quarters = np.arange(4)
        self._view(engine.lv1, Space.LV1, target, True)[...] = raw[quarters, :, :, quarters]

    def _accumulators(self, f: dict, engine: EngineMemories) -> npt.NDArray[np.int32]:
        """Operand A of a VEC with ``src_acc``: (n2, n1, n0, lanes)."""
        p, shape = self.params, (f["n2"], f["n1"])
        rows = Box(f["a"], shape, (f["a_s2"], f["a_s1"]))
        self._touch(Space.LV0_ACC, rows, False, p.lv0_acc_rows)
        groups = engine.acc[rows.indices()].reshape(*shape, p.vec_groups, p.vec_lanes)
        return groups[:, :, : f["n0"]]

    def _check_alignment(self, f: dict) -> None:
        lanes, word = self.params.vec_lanes, self.params.lv1_word
        vectors = ["d", *_D_STRIDES]
        if not f["src_acc"]:
            vectors += ["a", *_A_STRIDES]
        if f["b_en"]:
            vectors += ["b", *_B_STRIDES]
        for names, unit in ((vectors, lanes), (["p"] + ["t"] * f["table"], word)):
            for name in names:
                if f[name] % unit:
                    raise self._fault(Fault.ILLEGAL, f[name], f"VEC.{name} is not a multiple of {unit}")

    def _vec_header(self, at: int, lv1: npt.NDArray[np.uint8]) -> dict[str, int]:
        raw = self._view(lv1, Space.LV1, Box(at, (self.params.vec_header_bytes,), (1,)), False).tobytes()
        head, offset = {}, 0
        for name, size, _ in VEC_HEADER:
            head[name] = int.from_bytes(raw[offset : offset + size], "little", signed=True)
            offset += size
        return head

    def _channel_params(self, f: dict, lv1: npt.NDArray[np.uint8]) -> tuple[npt.NDArray, npt.NDArray]:
        """Bias (int64) and scale (float32), shaped to broadcast over (n2, n1, n0, lanes)."""
        lanes = self.params.vec_lanes
        groups = f["n0"] if f["per_channel"] else 1
        size = groups * lanes * VEC_CHANNEL_BYTES
        raw = self._view(lv1, Space.LV1, Box(f["p"] + self.params.vec_header_bytes, (size,), (1,)), False).tobytes()
        entries = np.frombuffer(raw, [("bias", "<i4"), ("scale", "<f4")]).reshape(groups, lanes)
        return entries["bias"].astype(np.int64), entries["scale"]


#: Products of two operands of 9 bits that float32 adds without rounding: each is at most 255 * 255.
_EXACT_DEPTH = (1 << 24) // (255 * 255)
_WHOLE_WORDS = ("src", "dst", "len", "src_s2", "src_s1", "src_s0", "dst_s2", "dst_s1", "dst_s0")
_A_STRIDES = ("a_s2", "a_s1", "a_s0", "a_k1", "a_k0")
_B_STRIDES = ("b_s2", "b_s1", "b_s0")
_D_STRIDES = ("d_s2", "d_s1", "d_s0")


def requantise(
    s: npt.NDArray, scale: npt.NDArray[np.float32], zero_point: int, lo: int, hi: int
) -> npt.NDArray[np.int64]:
    """``clamp(rint(float32(s) * scale) + zero_point, lo, hi)`` with ``s`` as a wrapping int32."""
    product = np.rint(s.astype(np.int32).astype(np.float32) * scale.astype(np.float32))
    return np.clip(product.astype(np.float64) + zero_point, lo, hi).astype(np.int64)


def bits(mask: int) -> list[int]:
    """Numbers of the bits that are set."""
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]


def _signed(raw: npt.NDArray[np.uint8], signed: int) -> npt.NDArray[np.int64]:
    return raw.astype(np.int8).astype(np.int64) if signed else raw.astype(np.int64)


def _widen(raw: npt.NDArray, signed: int, zero_point: int, exact: type) -> npt.NDArray:
    """Numbers minus a raw zero point, as floats so that BLAS multiplies them."""
    data: npt.NDArray = raw.astype(exact)
    if zero_point:
        data -= int(np.uint8(zero_point).astype(np.int8)) if signed else zero_point
    return data
