"""The row function: how far the contract is from the true values, and the RTL from the contract."""

import numpy as np
import pytest

from hw.contract.row_function import (
    ARGUMENT_BITS,
    C0_BITS,
    C1_BITS,
    C2_BITS,
    INTERVAL_BITS,
    PLACE_BITS,
    RECIPROCAL,
    ROOT_EVEN,
    ROOT_ODD,
    coefficients,
    row_factor,
)
from hw.vec.row_function import LATENCY, RowFunction
from tests.support.streams import simulate

FRACTION_BITS = INTERVAL_BITS + PLACE_BITS


def numbers(rng: np.random.Generator, count: int) -> np.ndarray:
    """Integers of all lengths, and those at the ends of the intervals of the look-up."""
    lengths = rng.integers(1, ARGUMENT_BITS + 1, count)
    values = rng.integers(0, 1 << ARGUMENT_BITS, count) >> (ARGUMENT_BITS - lengths)
    powers = 1 << np.arange(ARGUMENT_BITS)
    ends = rng.integers(128, 257, 400) << rng.integers(0, ARGUMENT_BITS - 8, 400)
    return np.concatenate([[0], powers, powers - 1, powers + 1, ends, ends - 1, values]) & ((1 << ARGUMENT_BITS) - 1)


def true_factor(value: np.ndarray, root: bool) -> np.ndarray:
    exact = value.astype(np.longdouble)
    return 1 / (np.sqrt(exact) if root else exact)


@pytest.mark.parametrize("rom", [RECIPROCAL, ROOT_EVEN, ROOT_ODD])
def test_coefficients_fit_their_columns(rom):
    found = coefficients(rom)
    assert found.shape == (1 << INTERVAL_BITS, 3) and (found > 0).all()
    assert (found < [1 << C0_BITS, 1 << C1_BITS, 1 << C2_BITS]).all()


@pytest.mark.parametrize(("root", "places"), [(False, FRACTION_BITS), (True, 24), (True, 25)])
def test_every_fraction_is_accurate(root, places):
    """Of one power of two, or of an even and an odd one, all that the look-up distinguishes, in the middle."""
    fractions = np.arange(1 << FRACTION_BITS, dtype=np.int64)
    value = ((1 << FRACTION_BITS) + fractions) << (places - FRACTION_BITS)
    error = np.abs(row_factor(value, root, 0) / true_factor(value, root) - 1)
    assert error.max() < 2**-22


@pytest.mark.parametrize("root", [False, True])
def test_numbers_of_all_lengths_are_accurate(root):
    value = numbers(np.random.default_rng(3), 200_000)
    value = value[value != 0]
    error = np.abs(row_factor(value, root, 0) / true_factor(value, root) - 1)
    assert error.max() < 2**-22
    assert not row_factor(np.zeros(1, np.int64), root, 63).any()


@pytest.mark.parametrize(("root", "exponent"), [(False, 31), (True, -64), (False, -7), (True, 63)])
def test_equals_the_contract_bit_for_bit(root, exponent):
    dut, values = RowFunction(), numbers(np.random.default_rng(exponent + 100), 3000)
    wanted = row_factor(values, root, exponent).view(np.uint32).tolist()
    todo = values.tolist()

    async def testbench(ctx) -> None:
        ctx.set(dut.root, root)
        ctx.set(dut.exponent, exponent)
        ctx.set(dut.en, 1)
        for i in range(len(todo) + LATENCY - 1):
            if i < len(todo):
                ctx.set(dut.value, todo[i])
            await ctx.tick()
            if i >= LATENCY - 1:
                made = i - LATENCY + 1
                assert ctx.get(dut.factor) == wanted[made], todo[made]

    simulate(dut, testbench)
