"""The parts of a value: their sum says nothing of it, and the sum of their squares is its square."""

import numpy as np
import pytest

from compiler.plan.layers.square_parts import PARTS_SQUARE, PARTS_SUM, square_parts


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_sums_of_all_values_and_zero_points(dtype):
    info, counts = np.iinfo(dtype), []
    for zero in range(info.min, info.max + 1):
        parts = square_parts(zero, dtype).astype(np.int64)
        values = np.arange(256, dtype=np.uint8).view(dtype).astype(np.int64) - zero
        np.testing.assert_array_equal(parts.sum(axis=0), PARTS_SUM, err_msg=f"zero point {zero}")
        np.testing.assert_array_equal((parts**2).sum(axis=0), 2 * values**2 + PARTS_SQUARE)
        counts.append(len(parts))
    middle = len(counts) // 2
    assert counts[middle - 14 : middle + 15] == [4] * 29, "zero points near the middle need few"
    assert max(counts) == 10
