"""First fit: buffers with lifetimes in an address range."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from compiler.plan.memory.first_fit import ENDLESS, NOWHERE, aligned, first_fit

BUFFERS = st.lists(st.tuples(st.integers(1, 200), st.integers(0, 9), st.integers(0, 4)), max_size=30)


def fit(buffers, limit, base=0):
    """Offsets of buffers (size, first step, last step)."""
    sizes = np.array([size for size, *_ in buffers], np.int64)
    together = [[a <= d and c <= b for _, c, d in buffers] for _, a, b in buffers]
    beside = np.array(together, np.bool_).reshape(len(buffers), len(buffers))
    return first_fit(np.arange(len(buffers)), sizes, np.full(len(buffers), base), beside, limit), beside


def lowest(buffers, limit, base):
    """The same, by trying every address."""
    places = []
    for size, first, last in buffers:
        taken = [
            (at, at + other)
            for at, (other, begin, end) in zip(places, buffers, strict=False)
            if at != NOWHERE and begin <= last and first <= end
        ]
        free = (at for at in range(base, limit - size + 1) if all(at + size <= a or b <= at for a, b in taken))
        places.append(next(free, NOWHERE))
    return places


@given(BUFFERS, st.integers(64, 600), st.integers(0, 40))
def test_each_gets_the_lowest_address_that_is_free(given_buffers, limit, base):
    buffers = [(size, start, start + length) for size, start, length in given_buffers]
    assert fit(buffers, limit, base)[0].tolist() == lowest(buffers, limit, base)


def test_bytes_are_used_again_after_a_buffer_died():
    assert fit([(100, 0, 3), (50, 3, 4), (50, 4, 5)], 100)[0].tolist() == [0, NOWHERE, 0]
    assert fit([(100, 0, 3), (50, 3, 4), (50, 4, 5)], ENDLESS)[0].tolist() == [0, 100, 0]


def test_those_that_are_not_offered_a_place_are_in_nobodys_way():
    sizes, bases, together = np.full(3, 8), np.array([0, 0, 16]), np.ones((3, 3), np.bool_)
    assert first_fit(np.array([2, 0]), sizes, bases, together, 32).tolist() == [0, NOWHERE, 16]


def test_lives_must_be_known_of_each_two():
    with pytest.raises(ValueError, match="lives"):
        first_fit(np.arange(2), np.ones(2, np.int64), np.zeros(2, np.int64), np.ones((1, 2), np.bool_), 8)


def test_whole_words():
    assert aligned(np.array([0, 1, 8, 9]), 8).tolist() == [0, 8, 8, 16]
