"""Computes what VEC instructions result in, as ``VEC_FORMAT`` in ``hw.contract.isa`` defines it, in NumPy."""

from collections.abc import Mapping
from struct import Struct

import numpy as np
import numpy.typing as npt

from hw.contract.isa import RECORD_BYTES, VEC_HEADER, WIDE_BYTES, VecOp
from hw.contract.row_function import row_factor

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
        total = a.sum(axis=axes, where=counts).astype(np.int32).astype(np.int64)
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
