"""Requantisation against NumPy: random values, ties, powers of two, extremes."""

import numpy as np
import pytest

from hw.vec.requantise import LATENCY, Requantise
from tests.support.streams import simulate


def cases(seed: int) -> list[tuple[int, int, np.float32]]:
    rng = np.random.default_rng(seed)
    sums = np.concatenate(
        [
            rng.integers(-(2**31), 2**31, 700),
            rng.integers(-2000, 2000, 700),
            rng.integers(-(2**24) - 50, 2**24 + 50, 300),
            [0, 1, -1, 2**31 - 1, -(2**31), 2**24 + 1, 2**25 + 2],
        ]
    )
    bias = np.where(rng.random(len(sums)) < 0.5, 0, rng.integers(-1000, 1000, len(sums)))
    scale = np.exp2(rng.uniform(-30, 0, len(sums))).astype(np.float32)
    exact = rng.random(len(sums)) < 0.4  # powers of two make ties
    scale[exact] = np.exp2(rng.integers(-12, 3, exact.sum())).astype(np.float32)
    scale *= rng.choice([-1, 1], len(sums)).astype(np.float32)
    scale[:6] = [0, 1e-42, 3e38, 1.0, 1.17549435e-38, 0.5]
    return list(zip(sums.tolist(), bias.tolist(), scale, strict=True))


def expected(s: int, bias: int, scale: np.float32, zp: int, lo: int, hi: int) -> int:
    total = np.int64(s + bias).astype(np.int32)
    if abs(scale) < np.finfo(np.float32).tiny:
        scale = np.float32(0)
    with np.errstate(over="ignore"):
        product = np.rint(np.float32(total) * scale)
    return int(np.clip(np.float64(product) + zp, lo, hi))


@pytest.mark.parametrize(
    ("zp", "lo", "hi"), [(3, -128, 127), (-(2**15), -(2**15), 2**15 - 1), (0, -(2**23), 2**23 - 1)]
)
def test_equals_numpy_bit_for_bit(zp, lo, hi):
    dut, todo = Requantise(), cases(seed=7)

    async def testbench(ctx) -> None:
        for port, value in ((dut.zp_y, zp), (dut.lo, lo), (dut.hi, hi), (dut.en, 1)):
            ctx.set(port, value)
        for i in range(len(todo) + LATENCY - 1):
            if i < len(todo):
                s, bias, scale = todo[i]
                ctx.set(dut.s, s)
                ctx.set(dut.bias, bias)
                ctx.set(dut.scale, int(scale.view(np.uint32)))
            await ctx.tick()
            if i >= LATENCY - 1:
                case = todo[i - LATENCY + 1]
                assert ctx.get(dut.y) == expected(*case, zp, lo, hi), case

    simulate(dut, testbench)
