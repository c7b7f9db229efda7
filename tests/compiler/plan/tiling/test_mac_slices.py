"""Weight blocks of a chunk over several MAC instructions."""

from math import prod

import numpy as np
from hypothesis import given, strategies as st

from compiler.plan.tiling.conv_tiling import mac_slices


def _visited(blocks, steps, first=0, act=0):
    """(block, activation word) in the order in which the unit takes them."""
    for number, index in enumerate(np.ndindex(*blocks)):
        yield first + number, act + sum(i * step for i, step in zip(index, steps, strict=True))


@given(
    st.tuples(*[st.integers(1, 9)] * 3), st.tuples(*[st.integers(-50, 50)] * 3), st.integers(1, 60)
)  # fmt: skip
def test_parts_take_every_block_in_order_and_none_is_too_long(blocks, steps, most):
    cut = list(mac_slices(blocks, steps, most))
    taken = [pair for part in cut for pair in _visited(part.blocks, steps, part.first, part.act)]
    assert taken == list(_visited(blocks, steps))
    assert max(prod(part.blocks) for part in cut) <= most


def test_what_is_short_enough_stays_whole():
    assert [part.blocks for part in mac_slices((3, 3, 8), (1, 1, 1), 72)] == [(3, 3, 8)]


def test_parts_are_nearly_equal():
    assert [part.blocks for part in mac_slices((7, 1, 3), (30, 0, 1), 12)] == [(3, 1, 3), (4, 1, 3)]


def test_a_limit_below_one_block_leaves_single_blocks():
    assert [part.first for part in mac_slices((1, 2, 2), (0, 5, 1), 0)] == [0, 1, 2, 3]
