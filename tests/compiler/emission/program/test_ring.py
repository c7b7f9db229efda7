"""Rings of buffers: what would be overwritten while it is still read is an error, not a wrong result."""

import pytest

from compiler.emission.program import Ring, Sem, Task
from hw.contract.isa import Op


def used(order: str, slots: int) -> Ring:
    """A ring after tasks have read these keys in turn, each loaded where it is not there."""
    ring = Ring(Sem.ACT0_FULL, Sem.ACT0_FREE, 0, 64, slots)
    for key in order:
        held = ring.holding(key, lambda _: [Task(Op.LD0, {})])
        ring.read_by(held, Task(Op.MAC, {}))
    return ring


@pytest.mark.parametrize("order", ["abcabc", "abcdabcd", "aabbccdd", "abcdefabcdef", "abab"])
def test_keys_in_the_same_order_again(order):
    assert used(order, 3).find(order[-1]) is not None


@pytest.mark.parametrize("order", ["abcdbefg", "ABbcabCD"])
def test_a_key_that_outlives_those_behind_it(order):
    with pytest.raises(ValueError, match=r"MAC has read .* before what was in the ring earlier"):
        used(order, 3)
