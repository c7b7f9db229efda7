"""From real scales to the accelerator's requantisation, matched to the rounding of onnxruntime's integer kernels.

Measured against onnxruntime 1.31 on x86-64: convolutions and fully connected layers compute
``rint(float32(acc) * scale) + zp`` with ``scale = float32(float32(sx*sw)/sy)``; QLinearAdd, QLinearMul and
QLinearAveragePool add the zero point *before* rounding, so ties go the other way where it is odd. QLinearAdd works in
float32 step by step, which no integer sum reproduces at ties: with scales that share no simple ratio at most 3 in
100,000 operand pairs differ; with decimal scales whose ratios make many exact ties (0.02, 0.03 and 0.1, say) up to 4 %.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from compiler.frontend.values import Quantisation
from compiler.ir import Requantisation

MULTIPLIER_BITS = 22
_MAX_SHIFT = 40
_INT32 = 2**31 - 1


def requantise(real: npt.ArrayLike, target: Quantisation, low: float, high: float) -> Requantisation:
    """Return the requantisation of integers that are worth ``real`` each (per channel, or one for all) to ``target``,
    clamped to real numbers in [low, high]."""
    lo, hi = target.clamp(low, high)
    scale = np.atleast_1d(np.asarray(real, np.float32) / np.float32(target.scale))
    return Requantisation(scale, target.zero_point, lo, hi)


@dataclass(frozen=True)
class Multipliers:
    """Integer arithmetic of an element-wise operator: ``rint(float32(a*ma + b*mb + bias) * scale) + zero_point``."""

    ma: int
    mb: int
    bias: int
    scale: np.float32
    zero_point: int


def add_multipliers(a: Quantisation, b: Quantisation, target: Quantisation, sign: int = 1) -> Multipliers:
    """Return the multipliers of a + sign * b that agree best with QLinearAdd over all pairs of 8-bit operands."""
    ra, rb = np.float32(a.scale / target.scale), np.float32(b.scale / target.scale)
    wanted = _qlinear_add(a, b, target, ra, np.float32(sign) * rb)
    left, right = _operands(a)[:, None], _operands(b)[None, :]
    best, fewest = None, wanted.size + 1
    for candidate in _add_candidates(float(ra), sign * float(rb), target):
        total = left * candidate.ma + right * candidate.mb + candidate.bias
        misses = int((_stored(total, candidate, target) != wanted).sum())
        if misses < fewest:
            best, fewest = candidate, misses
        if not fewest:
            break
    assert best is not None
    return best


def _add_candidates(ra: float, rb: float, target: Quantisation) -> list[Multipliers]:
    largest = max(abs(ra), abs(rb))
    exact = [k for k in range(_MAX_SHIFT) if (ra * 2**k).is_integer() and (rb * 2**k).is_integer()]
    shifts = [k for k in exact if largest * 2**k < 2**MULTIPLIER_BITS][:1]
    # 255 * (ma + mb) and the bias share an int32
    room = _INT32 / (510 * largest + abs(target.zero_point) + 1)
    widest = min(int(np.floor(np.log2(room))), int(np.floor(np.log2((2**MULTIPLIER_BITS - 1) / largest))))
    shifts += list(range(max(widest, 0), max(widest - 4, -1), -1))
    found = []
    for k in dict.fromkeys(shifts):
        ma, mb, scale = round(ra * 2**k), round(rb * 2**k), np.float32(2.0**-k)
        inside = target.zero_point << k
        for nudge in (0, 1, -1, 1 << max(k - 16, 0), -(1 << max(k - 16, 0))):
            found.append(Multipliers(ma, mb, inside + nudge, scale, 0))
        if target.zero_point % 2 == 0:
            found.insert(-5, Multipliers(ma, mb, 0, scale, target.zero_point))
    return found


def mul_multipliers(a: Quantisation, b: Quantisation, target: Quantisation) -> Multipliers:
    """Return the scale and bias of a * b that agree best with QLinearMul over all pairs of 8-bit operands."""
    scale = np.float32(np.float32(a.scale * b.scale) / target.scale)
    product = _operands(a)[:, None] * _operands(b)[None, :]
    real = product.astype(np.float32) * scale + np.float32(target.zero_point)
    wanted = np.clip(np.rint(real), *target.limits)
    inside = round(target.zero_point / float(scale))
    candidates = [Multipliers(1, 1, 0, scale, target.zero_point)]
    if abs(inside) < 2**30:
        candidates.append(Multipliers(1, 1, inside, scale, 0))
    return min(candidates, key=lambda c: int((_stored(product + c.bias, c, target) != wanted).sum()))


def pool_bias(source: Quantisation, target: Quantisation) -> int:
    """Return what to add per pixel so that the zero point is added before rounding; 0 if no integer does."""
    bias = target.zero_point * float(np.float32(target.scale)) / float(np.float32(source.scale))
    nearest = round(bias)
    return nearest if abs(bias - nearest) < 1e-5 and abs(nearest) < 2**14 else 0


def _operands(params: Quantisation) -> npt.NDArray[np.int64]:
    low, high = params.limits
    return np.arange(low, high + 1, dtype=np.int64) - params.zero_point


def _stored(total: npt.NDArray, by: Multipliers, target: Quantisation) -> npt.NDArray:
    rounded = np.rint(total.astype(np.float32) * by.scale) + by.zero_point
    return np.clip(rounded, *target.limits)


def _qlinear_add(a: Quantisation, b: Quantisation, target: Quantisation, ra: np.float32, rb: np.float32) -> npt.NDArray:
    """Return what onnxruntime's kernel computes, step by step in float32."""
    fixed = np.float32(target.zero_point) - (ra * np.float32(a.zero_point) + rb * np.float32(b.zero_point))
    left = (_operands(a) + a.zero_point).astype(np.float32)[:, None] * ra
    right = (_operands(b) + b.zero_point).astype(np.float32)[None, :] * rb
    return np.clip(np.rint((fixed + left) + right), *target.limits)
