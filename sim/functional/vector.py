"""Says what VEC instructions read, compute and write: the definition of ``VEC_FORMAT`` in ``hw.contract.formats``."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from math import prod
from struct import Struct

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
from sim.functional.limits import CheckedMemories
from sim.functional.state import EngineMemories, Segments, Work, nothing
from sim.functional.strided import MOST, Box, pieces, strided, whole

#: Views of what an instruction reads and writes. ``header``: bytes of its parameters; ``channels``: (groups, lanes) of
#: :data:`CHANNEL`; ``table``, ``wide``: bytes of its tables; ``a``: operand A, (n2, n1, n0, k1, k0, lanes) bytes or
#: (n2, n1, n0, lanes) accumulators; ``b``: operand B; ``d``: what it writes. These two have (n2, n1, n0, lanes) bytes.
Vectors = Mapping[str, npt.NDArray]

_HEADER = Struct("<" + "".join({2: "h", 4: "i"}[size] for _, size, _ in VEC_HEADER))
_HEADER_NAMES = tuple(name for name, *_ in VEC_HEADER)
CHANNEL = np.dtype([("bias", "<i4"), ("scale", "<f4")])
_RECORD = np.dtype([("number", "<i4"), ("factor", "<f4")])
_INT24 = 1 << 23


def write_results(f: dict, v: Vectors) -> None:
    """Compute all vectors of the instruction with the fields ``f`` at once."""
    target = v["d"]
    if f["op"] == VecOp.RAW:
        target[...] = _raw(v["a"])
        return
    head = dict(zip(_HEADER_NAMES, _HEADER.unpack_from(v["header"].data), strict=True))
    bias, scale, record = v["channels"]["bias"], v["channels"]["scale"], None
    if "b" in v and (f["row"] or f["op"] == VecOp.LOOKUP):
        record = np.ascontiguousarray(v["b"][..., :RECORD_BYTES]).view(_RECORD)  # (n2, n1, n0, 1)
        scale = record["factor"]
    if f["across"]:
        made = _records(f, v, record, head, int(bias.flat[0]))
        y: npt.NDArray = np.zeros(target.shape, np.uint8)
        y[..., :RECORD_BYTES] = made.view(np.uint8).reshape(*target.shape[:3], RECORD_BYTES)
        target[...] = y
        return
    s = _total(f, v, head, record)
    if f["planes"]:
        value = np.clip(_product(s + bias, scale), -_INT24, _INT24 - 1).astype(np.int64)
        plane = np.arange(WIDE_BYTES).reshape(-1, 1, 1, 1)
        target[...] = np.broadcast_to(value, target.shape) >> 8 * plane
        return
    y = _requantise(s + bias, scale, head["zp_y"], head["lo"], head["hi"])
    target[...] = v["table"][y.astype(np.uint8)] if f["table"] else y


def _raw(a: npt.NDArray[np.int32]) -> npt.NDArray[np.uint8]:
    """Return the result of RAW: vector i2 takes bytes i2 * lanes ... of the accumulators of each lane group."""
    raw = np.ascontiguousarray(a, "<i4").view(np.uint8).reshape(*a.shape[:3], 4, a.shape[3])
    quarters = np.arange(4)
    return raw[quarters, :, :, quarters]


def _operand(f: dict, v: Vectors, head: dict[str, int]) -> npt.NDArray[np.int64]:
    """Return operand A from LV1, (n2, n1, n0, k1, k0, lanes), less its zero point but for WIDE."""
    raw = v["a"]
    if f["op"] != VecOp.WIDE:
        return _signed(raw, f["a_signed"]) - head["zp_a"]
    a = raw.astype(np.int64)
    if f["a_signed"]:
        a[:, :, :, 0, 0] = a[:, :, :, 0, 0].astype(np.int8)
    return a


def _total(f: dict, v: Vectors, head: dict[str, int], record: npt.NDArray | None) -> npt.NDArray[np.int64]:
    """Return what is requantised, (n2, n1, n0, lanes)."""
    if f["src_acc"]:
        return v["a"]
    a, op = _operand(f, v, head), f["op"]
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
        return _looked_up(v, a, record["number"])
    s = a if op == VecOp.MUL else a * head["ma"]
    if "b" not in v:
        return s
    if record is not None:
        return s - record["number"]
    other = _signed(v["b"], f["b_signed"]) - head["zp_b"]
    return s * other if op == VecOp.MUL else s + other * head["mb"]


def _records(f: dict, v: Vectors, record: npt.NDArray | None, head: dict[str, int], bias: int) -> npt.NDArray:
    """Return the records of all rows."""
    a = _operand(f, v, head)
    counts = np.ones(a.shape[3:], bool)
    if f["tail"]:
        counts[-1, -1, f["tail"] :] = False
    op, axes, exponent = f["op"], (3, 4, 5), head["mb"]
    made = np.zeros((*a.shape[:3], 1), _RECORD)
    if op == VecOp.MAX:
        made["number"][..., 0] = a.max(axis=axes, where=counts, initial=-(1 << 31))
        return made
    if op == VecOp.MOMENTS:
        total = a.sum(axis=axes, where=counts).astype(np.int32).astype(np.int64) * (1 - f["plain"])
        squares = (a * a).sum(axis=axes, where=counts) & 0xFFFFFFFF
        argument = head["ma"] * squares - total * total + (bias & 0xFFFFFFFF)
    else:
        if op == VecOp.LOOKUP:
            assert record is not None
            a = _looked_up(v, a, record["number"].reshape(*a.shape[:3], 1, 1, 1))
        total = a.sum(axis=axes, where=counts)
        argument = total & 0xFFFFFFFF
    made["number"][..., 0] = total.astype(np.int32) if record is None else record["number"][..., 0]
    made["factor"][..., 0] = row_factor(argument, op == VecOp.MOMENTS, exponent)
    return made


def _looked_up(v: Vectors, a: npt.NDArray, number: npt.NDArray) -> npt.NDArray[np.int64]:
    return v["wide"].view("<i4").astype(np.int64)[(number - a) & 0xFF]


def _requantise(
    s: npt.NDArray, scale: npt.NDArray[np.float32], zero_point: int, lo: int, hi: int
) -> npt.NDArray[np.int32]:
    """Return ``clamp(rint(float32(s) * scale) + zero_point, lo, hi)`` with ``s`` as a wrapping int32. In float32 a sum
    is rounded only where it is far beyond the limits, which have 16 bits."""
    y = _product(s, scale)
    y += zero_point
    np.maximum(y, lo, out=y)
    np.minimum(y, hi, out=y)
    return y.astype(np.int32)


def _product(s: npt.NDArray, scale: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return ``rint(float32(s) * scale)`` with ``s`` as a wrapping int32."""
    y = s.astype(np.int32, copy=False).astype(np.float32) * scale
    return np.rint(y, out=y)


def _signed(raw: npt.NDArray[np.uint8], signed: int) -> npt.NDArray[np.int64]:
    return (raw.view(np.int8) if signed else raw).astype(np.int64)


_A_STRIDES = ("a_s2", "a_s1", "a_s0", "a_k1", "a_k0")
_B_STRIDES = ("b_s2", "b_s1", "b_s0")
_D_STRIDES = ("d_s2", "d_s1", "d_s0")
_ACROSS = (VecOp.MAX, VecOp.SUM, VecOp.LOOKUP, VecOp.MOMENTS)
_WINDOWS = (VecOp.MAX, VecOp.SUM, VecOp.MOMENTS, VecOp.WIDE)  #: and LOOKUP with ``across``


class VectorUnit(CheckedMemories):
    """Runs the vector units of all engines, one instruction at a time."""

    def _vec(self, f: dict, segments: Segments, engine: EngineMemories, op: Op) -> Work:
        why = self._illegal(f)
        if why:
            raise self._fault(Fault.ILLEGAL, f["op"], f"VEC {VecOp(f['op']).name}: {why}")
        self._check_alignment(f | ({"p": 0} if f["op"] == VecOp.RAW else {}))
        for name, (space, box) in self._boxes(f).items():
            self._touch(space, box, name == "d", engine.lv1.size if space is Space.LV1 else self.params.lv0_acc_rows)
        if self._only_checks:
            return nothing
        steps = prod(f[name] for name in ("n2", "n1", "n0", "k1", "k0"))
        if steps * self.params.vec_lanes <= MOST:
            return partial(write_results, f, self._vectors(f, engine, engine.lv1))

        def work() -> None:
            read = replace(engine, lv1=engine.lv1.copy())  # all is read before anything is written
            for part in _parts(f, self.params.vec_lanes):
                write_results(part, self._vectors(part, read, engine.lv1))

        return work

    def _boxes(self, f: dict) -> dict[str, tuple[Space, Box]]:
        """Return what an instruction reads and, as ``d``, writes, in the order in which it is checked."""
        shape, lanes, boxes = (f["n2"], f["n1"], f["n0"]), self.params.vec_lanes, dict[str, tuple[Space, Box]]()
        if f["op"] != VecOp.RAW:
            groups, header = f["n0"] if f["per_channel"] else 1, self.params.vec_header_bytes
            boxes["header"] = Space.LV1, Box(f["p"], (header,), (1,))
            boxes["channels"] = Space.LV1, Box(f["p"] + header, (groups * lanes * VEC_CHANNEL_BYTES,), (1,))
            if f["b_en"]:
                boxes["b"] = Space.LV1, Box(f["b"], (*shape, lanes), (*(f[n] for n in _B_STRIDES), 1))
        if f["src_acc"]:
            boxes["a"] = Space.LV0_ACC, Box(f["a"], shape[:2], (f["a_s2"], f["a_s1"]))
        else:
            windows = (*shape, f["k1"], f["k0"], lanes)
            boxes["a"] = Space.LV1, Box(f["a"], windows, (*(f[n] for n in _A_STRIDES), 1))
        if f["op"] == VecOp.LOOKUP:
            boxes["wide"] = Space.LV1, Box(f["t"], (WIDE_TABLE_BYTES,), (1,))
        if f["table"]:
            boxes["table"] = Space.LV1, Box(f["t"], (TABLE_BYTES,), (1,))
        boxes["d"] = Space.LV1, Box(f["d"], (*shape, lanes), (*(f[n] for n in _D_STRIDES), 1))
        return boxes

    def _vectors(self, f: dict, engine: EngineMemories, into: npt.NDArray[np.uint8]) -> Vectors:
        """Return views of what an instruction reads, and of what it writes in ``into``, by the names of
        :meth:`_boxes`."""
        found = {}
        for name, (space, box) in self._boxes(f).items():
            if space is Space.LV1:
                found[name] = box.view(into if name == "d" else engine.lv1)
                if name == "channels":
                    found[name] = found[name].view(CHANNEL).reshape(-1, self.params.vec_lanes)
            else:
                width, lanes = engine.acc.shape[1], self.params.vec_lanes
                strides = (*(stride * width for stride in box.strides), lanes, 1)
                found[name] = strided(engine.acc, box.offset * width, (*box.shape, f["n0"], lanes), strides)
        return found

    def _illegal(self, f: dict) -> str:
        """Return why the fields of an instruction do not fit together, or nothing if they do, by the rules of
        ``hw/vec/unit.py``."""
        p, op = self.params, f["op"]
        window, acc, across = f["k1"] * f["k0"] != 1, f["src_acc"], f["across"]
        if op == VecOp.RAW:
            names = ("b_en", "a_signed", "b_signed", "table", "per_channel", "across", "tail", "row", "planes", "plain")
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
        if f["plain"] and op != VecOp.MOMENTS:
            return "plain with another operation"
        if f["planes"] and (f["n2"] != WIDE_BYTES or f["table"]):
            return f"planes take n2 = {WIDE_BYTES} and no table"
        return ""

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


def _parts(f: dict, lanes: int) -> Iterator[dict]:
    """Yield the fields of instructions that do pieces of the one with the fields ``f``, one after the other. Planes
    stay together, and so do channels where they are told apart."""
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
