"""What VEC instructions do to LV1: the definition of ``VEC_FORMAT`` in ``hw.contract.isa`` in NumPy."""

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np
import numpy.typing as npt

from hw.contract.isa import (
    RECORD_BYTES,
    TABLE_BYTES,
    VEC_CHANNEL_BYTES,
    VEC_HEADER,
    WIDE_BYTES,
    WIDE_TABLE_BYTES,
    Op,
    VecOp,
)
from hw.contract.job import Fault
from hw.contract.row_function import row_factor
from hw.contract.spaces import Space
from sim.functional.checked import CheckedMemories
from sim.functional.pieces import MOST, pieces, whole
from sim.functional.state import EngineMemories, Segments
from sim.functional.strided import Box

_A_STRIDES = ("a_s2", "a_s1", "a_s0", "a_k1", "a_k0")
_B_STRIDES = ("b_s2", "b_s1", "b_s0")
_D_STRIDES = ("d_s2", "d_s1", "d_s0")
_ACROSS = (VecOp.MAX, VecOp.SUM, VecOp.LOOKUP, VecOp.MOMENTS)
_WINDOWS = (VecOp.MAX, VecOp.SUM, VecOp.MOMENTS, VecOp.WIDE)  #: and LOOKUP with ``across``
_RECORD = np.dtype([("number", "<i4"), ("factor", "<f4")])
_INT24 = 1 << 23


class VectorUnit(CheckedMemories):
    """The vector units of all engines, one instruction at a time."""

    def _vec(self, f: dict, segments: Segments, engine: EngineMemories, op: Op) -> None:
        why = self._illegal(f)
        if why:
            raise self._fault(Fault.ILLEGAL, f["op"], f"VEC {VecOp(f['op']).name}: {why}")
        self._check_alignment(f | ({"p": 0} if f["op"] == VecOp.RAW else {}))
        steps = prod(f[name] for name in ("n2", "n1", "n0", "k1", "k0"))
        if steps * self.params.vec_lanes <= MOST and not self._only_checks:
            self._vectors(f, engine, engine.lv1)
            return
        self._touch_all(f, engine)
        accesses = self.accesses
        read = replace(engine, lv1=engine.lv1.copy())  # all is read before anything is written
        for part in _parts(f, self.params.vec_lanes) if not self._only_checks else ():
            self.accesses = []
            self._vectors(part, read, engine.lv1)
        self.accesses = accesses

    def _touch_all(self, f: dict, engine: EngineMemories) -> None:
        """Check what an instruction reads and writes, in the order of :meth:`_vectors`."""
        p, lv1, shape, lanes = self.params, engine.lv1, (f["n2"], f["n1"], f["n0"]), self.params.vec_lanes
        rows = Box(f["a"], shape[:2], (f["a_s2"], f["a_s1"]))
        if f["op"] != VecOp.RAW:
            self._vec_header(f["p"], lv1)
            self._channel_params(f, lv1)
            if f["b_en"]:
                self._touch(Space.LV1, Box(f["b"], (*shape, lanes), (*(f[n] for n in _B_STRIDES), 1)), False, lv1.size)
        if f["src_acc"]:
            self._touch(Space.LV0_ACC, rows, False, p.lv0_acc_rows)
        else:
            box = Box(f["a"], (*shape, f["k1"], f["k0"], lanes), (*(f[n] for n in _A_STRIDES), 1))
            self._touch(Space.LV1, box, False, lv1.size)
        for wanted, size in ((f["op"] == VecOp.LOOKUP, WIDE_TABLE_BYTES), (f["table"], TABLE_BYTES)):
            if wanted:
                self._touch(Space.LV1, Box(f["t"], (size,), (1,)), False, lv1.size)
        self._touch(Space.LV1, Box(f["d"], (*shape, lanes), (*(f[n] for n in _D_STRIDES), 1)), True, lv1.size)

    def _vectors(self, f: dict, engine: EngineMemories, into: npt.NDArray[np.uint8]) -> None:
        """Compute all vectors of an instruction at once; results go to ``into``."""
        if f["op"] == VecOp.RAW:
            self._vec_raw(f, engine, into)
            return
        lanes, lv1, shape = self.params.vec_lanes, engine.lv1, (f["n2"], f["n1"], f["n0"])
        head = self._vec_header(f["p"], lv1)
        bias, scale = self._channel_params(f, lv1)
        b = None
        if f["b_en"]:
            box = Box(f["b"], (*shape, lanes), (*(f[n] for n in _B_STRIDES), 1))
            b = self._view(lv1, Space.LV1, box, False)
        record = None
        if b is not None and (f["row"] or f["op"] == VecOp.LOOKUP):
            record = np.ascontiguousarray(b[..., :RECORD_BYTES]).view(_RECORD)  # (n2, n1, n0, 1)
            scale = record["factor"]
        target = Box(f["d"], (*shape, lanes), (*(f[n] for n in _D_STRIDES), 1))
        if f["across"]:
            a = self._operand(f, engine, head)
            made = self._records(f, a, record, head, int(bias.flat[0]), lv1)
            y = np.zeros((*shape, lanes), np.uint8)
            y[..., :RECORD_BYTES] = made.view(np.uint8).reshape(*shape, RECORD_BYTES)
            self._view(into, Space.LV1, target, True)[...] = y
            return
        s = self._total(f, engine, head, b, record)
        if f["planes"]:
            value = np.clip(_product(s + bias, scale), -_INT24, _INT24 - 1).astype(np.int64)
            plane = np.arange(WIDE_BYTES).reshape(-1, 1, 1, 1)
            y = (np.broadcast_to(value, (*shape, lanes)) >> 8 * plane).astype(np.uint8)
        else:
            y = requantise(s + bias, scale, head["zp_y"], head["lo"], head["hi"]).astype(np.uint8)
        if f["table"]:
            y = self._view(lv1, Space.LV1, Box(f["t"], (TABLE_BYTES,), (1,)), False)[y]
        self._view(into, Space.LV1, target, True)[...] = y

    def _illegal(self, f: dict) -> str:
        """Why the fields of an instruction do not fit together; empty if they do. The rules of ``hw/vec/unit.py``."""
        p, op = self.params, f["op"]
        window, acc, across = f["k1"] * f["k0"] != 1, f["src_acc"], f["across"]
        if op == VecOp.RAW:
            names = ("b_en", "a_signed", "b_signed", "table", "per_channel", "across", "tail", "row", "planes")
            if not acc or f["n2"] != 4 or window or any(f[name] for name in names) or f["n0"] > p.vec_groups:
                return "takes src_acc, n2 = 4, no window and no other flag"
            return ""
        if acc and (op != VecOp.LIN or f["b_en"]):
            return "accumulators with another operation or operand"
        if f["b_en"] != (op in (VecOp.MUL, VecOp.LOOKUP)) and op != VecOp.LIN:
            return "an operand B too many or missing"
        if window and not (op in _WINDOWS or (op == VecOp.LOOKUP and across)):
            return "a window"
        if (f["per_channel"] or acc) and f["n0"] > p.vec_groups:
            return "more channels than an engine computes"
        if op == VecOp.MOMENTS and not across:
            return "needs across"
        if across and (op not in _ACROSS or f["n0"] != 1 or f["per_channel"] or f["table"] or f["planes"]):
            return "across with another operation, n0 or flag"
        if f["tail"] > (p.vec_lanes if across else 0):
            return "tail without across or beyond the lanes"
        if f["row"] != (op == VecOp.LOOKUP) and not (op == VecOp.LIN and f["b_en"]):
            return "row without a record, or none where one is needed"
        if (f["row"] or across) and p.vec_lanes < RECORD_BYTES:
            return f"a record takes {RECORD_BYTES} lanes"
        if op == VecOp.LOOKUP and f["table"]:
            return "has a table of its own"
        if f["planes"] and (f["n2"] != WIDE_BYTES or f["table"]):
            return f"planes take n2 = {WIDE_BYTES} and no table"
        return ""

    def _operand(self, f: dict, engine: EngineMemories, head: dict[str, int]) -> npt.NDArray[np.int64]:
        """Operand A from LV1, (n2, n1, n0, k1, k0, lanes), less its zero point but for WIDE."""
        shape = (f["n2"], f["n1"], f["n0"], f["k1"], f["k0"], self.params.vec_lanes)
        raw = self._view(engine.lv1, Space.LV1, Box(f["a"], shape, (*(f[n] for n in _A_STRIDES), 1)), False)
        if f["op"] != VecOp.WIDE:
            return _signed(raw, f["a_signed"]) - head["zp_a"]
        a = raw.astype(np.int64)
        if f["a_signed"]:
            a[:, :, :, 0, 0] = a[:, :, :, 0, 0].astype(np.int8)
        return a

    def _total(
        self, f: dict, engine: EngineMemories, head: dict[str, int], b: npt.NDArray | None, record: npt.NDArray | None
    ) -> npt.NDArray[np.int64]:
        """What is requantised, (n2, n1, n0, lanes)."""
        if f["src_acc"]:
            return self._accumulators(f, engine).astype(np.int64)
        a, op = self._operand(f, engine, head), f["op"]
        if op == VecOp.MAX:
            return a.max(axis=(3, 4))
        if op == VecOp.SUM:
            return a.sum(axis=(3, 4))
        if op == VecOp.WIDE:
            places = np.arange(f["k1"] * f["k0"])[::-1].reshape(f["k1"], f["k0"], 1)
            return np.where(places < 4, a << 8 * np.minimum(places, 4), 0).sum(axis=(3, 4))
        a = a[:, :, :, 0, 0]
        if op == VecOp.LOOKUP:
            assert record is not None
            return self._looked_up(f, a, record["number"], engine.lv1)
        s = a if op == VecOp.MUL else a * head["ma"]
        if b is None:
            return s
        if record is not None:
            return s - record["number"]
        other = _signed(b, f["b_signed"]) - head["zp_b"]
        return s * other if op == VecOp.MUL else s + other * head["mb"]

    def _records(
        self, f: dict, a: npt.NDArray, record: npt.NDArray | None, head: dict[str, int], bias: int, lv1: npt.NDArray
    ) -> npt.NDArray:
        """The records of all rows of ``a``."""
        counts = np.ones(a.shape[3:], bool)
        if f["tail"]:
            counts[-1, -1, f["tail"] :] = False
        op, axes, exponent = f["op"], (3, 4, 5), head["mb"]
        made = np.zeros((*a.shape[:3], 1), _RECORD)
        if op == VecOp.MAX:
            made["number"][..., 0] = a.max(axis=axes, where=counts, initial=-(1 << 31))
            return made
        if op == VecOp.MOMENTS:
            total = a.sum(axis=axes, where=counts).astype(np.int32).astype(np.int64)
            squares = (a * a).sum(axis=axes, where=counts) & 0xFFFFFFFF
            argument = head["ma"] * squares - total * total + (bias & 0xFFFFFFFF)
        else:
            if op == VecOp.LOOKUP:
                assert record is not None
                a = self._looked_up(f, a, record["number"].reshape(*a.shape[:3], 1, 1, 1), lv1)
            total = a.sum(axis=axes, where=counts)
            argument = total & 0xFFFFFFFF
        made["number"][..., 0] = total.astype(np.int32) if record is None else record["number"][..., 0]
        made["factor"][..., 0] = row_factor(argument, op == VecOp.MOMENTS, exponent)
        return made

    def _looked_up(self, f: dict, a: npt.NDArray, number: npt.NDArray, lv1: npt.NDArray) -> npt.NDArray[np.int64]:
        box = Box(f["t"], (WIDE_TABLE_BYTES,), (1,))
        table = np.frombuffer(self._view(lv1, Space.LV1, box, False).tobytes(), "<i4").astype(np.int64)
        return table[(number - a) & 0xFF]

    def _vec_raw(self, f: dict, engine: EngineMemories, into: npt.NDArray[np.uint8]) -> None:
        """RAW: vector i2 takes bytes i2 * lanes ... of the accumulators of each lane group."""
        shape, lanes = (f["n2"], f["n1"], f["n0"]), self.params.vec_lanes
        raw = np.ascontiguousarray(self._accumulators(f, engine), "<i4").view(np.uint8).reshape(*shape, 4, lanes)
        target = Box(f["d"], (*shape, lanes), (*(f[n] for n in _D_STRIDES), 1))
        quarters = np.arange(4)
        self._view(into, Space.LV1, target, True)[...] = raw[quarters, :, :, quarters]

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
        tables = ["t"] if f["table"] or f["op"] == VecOp.LOOKUP else []
        for names, unit in ((vectors, lanes), (["p", *tables], word)):
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


def _parts(f: dict, lanes: int) -> Iterator[dict]:
    """Instructions that do pieces of the one with the fields ``f``, one after the other. Planes stay together, and so
    do channels where they are told apart."""
    together = ("2" if f["planes"] or f["op"] == VecOp.RAW else "") + ("0" if f["per_channel"] or f["src_acc"] else "")
    loops = [k for k in "210" if k not in together]
    turn = prod(f[name] for name in ("k1", "k0", *(f"n{k}" for k in together))) * lanes
    counts = [f[f"n{k}"] for k in loops]
    for piece in pieces(counts, turn):
        part = dict(f)
        for k, here in zip(loops, whole(piece, counts), strict=True):
            part[f"n{k}"] = here.stop - here.start
            for operand in "abd":
                part[operand] += here.start * f[f"{operand}_s{k}"]
        yield part


def requantise(
    s: npt.NDArray, scale: npt.NDArray[np.float32], zero_point: int, lo: int, hi: int
) -> npt.NDArray[np.int64]:
    """``clamp(rint(float32(s) * scale) + zero_point, lo, hi)`` with ``s`` as a wrapping int32."""
    return np.clip(_product(s, scale) + zero_point, lo, hi).astype(np.int64)


def _product(s: npt.NDArray, scale: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """``rint(float32(s) * scale)`` with ``s`` as a wrapping int32."""
    return np.rint(s.astype(np.int32).astype(np.float32) * scale.astype(np.float32)).astype(np.float64)


def _signed(raw: npt.NDArray[np.uint8], signed: int) -> npt.NDArray[np.int64]:
    return raw.astype(np.int8).astype(np.int64) if signed else raw.astype(np.int64)
