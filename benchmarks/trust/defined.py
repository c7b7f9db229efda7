"""Which results mean something: those of instructions that depend neither on the order of their own accesses nor on
numbers outside the ranges that ``hw.contract.isa`` gives."""

import numpy as np
import numpy.typing as npt

from benchmarks.trust.soc import PARAMS
from hw.contract.isa import RECORD_BYTES, VEC_CHANNEL_BYTES, Insn, Op, Segment, VecOp
from sim.functional import Box

_TINY = float(np.finfo(np.float32).tiny)
_HUGE = 2.0


def is_defined(insn: Insn, lv1: npt.NDArray[np.uint8]) -> bool:
    """Whether the result of an instruction that is legal, with this in LV1, does not depend on how it is computed.
    True for one that faults. False for one that reads the program, which the model has not been given."""
    if insn.op is Op.LD2 and insn["src_seg"] == Segment.CODE:
        return False
    if insn.op in (Op.LD2, Op.ST2, Op.LD1, Op.ST1, Op.LD0):
        return not _overlaps_itself(insn, "dst", ("n2", "n1", "n0"), insn["len"])
    if insn.op is Op.MAC:
        return insn["p1"] == 1 or insn["acc_s"] >= insn["p0"]
    lanes = PARAMS.vec_lanes
    if _overlaps_itself(insn, "d", ("n2", "n1", "n0"), lanes):
        return False
    target = _range(insn, "d", ("s2", "s1", "s0"), lanes)
    sources = [] if insn["src_acc"] else [_range(insn, "a", ("s2", "s1", "s0", "k1", "k0"), lanes)]
    if insn["b_en"]:
        sources.append(_range(insn, "b", ("s2", "s1", "s0"), lanes))
    if any(low < target[1] and target[0] < high for low, high in sources):
        return False
    return insn["op"] == VecOp.RAW or (_parameters_mean_something(insn, lv1) and _records_do(insn, lv1))


def _box(insn: Insn, name: str, strides: tuple[str, ...], size: int) -> Box:
    counts = {"s2": "n2", "s1": "n1", "s0": "n0", "k1": "k1", "k0": "k0"}
    shape = tuple(insn[counts[stride]] for stride in strides)
    return Box(insn[name], (*shape, size), (*(insn[f"{name}_{stride}"] for stride in strides), 1))


def _range(insn: Insn, name: str, strides: tuple[str, ...], size: int) -> tuple[int, int]:
    return _box(insn, name, strides, size).bounds()


def _overlaps_itself(insn: Insn, name: str, counts: tuple[str, ...], size: int) -> bool:
    starts = _box(insn, name, ("s2", "s1", "s0"), 1).indices().reshape(-1)
    starts.sort()
    return bool((np.diff(starts) < size).any())


def _parameters_mean_something(insn: Insn, lv1: npt.NDArray[np.uint8]) -> bool:
    head = PARAMS.vec_header_bytes
    end = insn["p"] + head + VEC_CHANNEL_BYTES * PARAMS.vec_lanes * (insn["n0"] if insn["per_channel"] else 1)
    if end > lv1.size or insn["p"] % PARAMS.lv1_word:
        return True  # a fault
    raw = lv1[insn["p"] : end].tobytes()
    zp_a, zp_b = (int(number) for number in np.frombuffer(raw[:4], "<i2"))
    ma, mb = (int(number) for number in np.frombuffer(raw[4:12], "<i4"))
    zp_y, lo, hi = (int(number) for number in np.frombuffer(raw[12:18], "<i2"))
    scale = np.frombuffer(raw[head:], [("bias", "<i4"), ("scale", "<f4")])["scale"]
    records = insn["across"] or insn["row"]
    return (
        _small(scale) and -128 <= zp_a <= 255 and -128 <= zp_b <= 255 and lo <= hi and -128 <= zp_y <= 255
        and max(abs(ma), abs(mb)) < 1 << 22 and (not records or -64 <= mb <= 63)
    )  # fmt: skip


def _records_do(insn: Insn, lv1: npt.NDArray[np.uint8]) -> bool:
    if not insn["row"]:
        return True
    box = _box(insn, "b", ("s2", "s1", "s0"), RECORD_BYTES)
    low, high = box.bounds()
    if low < 0 or high > lv1.size:
        return True  # a fault
    return _small(np.ascontiguousarray(box.view(lv1)[..., 4:]).view("<f4"))


def _small(numbers: npt.NDArray) -> bool:
    """Finite, no denormals, and not so large that a product overflows."""
    sizes = np.abs(numbers.astype(np.float64))
    return bool((np.isfinite(sizes) & (sizes < _HUGE) & ((sizes == 0) | (sizes >= _TINY))).all())
