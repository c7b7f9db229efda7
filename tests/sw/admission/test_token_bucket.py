"""What a bucket lets in never comes more often than the analysis counts; what keeps to its rate is not held back."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from sw.admission import TokenBucket
from tests.sw.admission.random_sets import arrivals
from tests.sw.admission.test_response_time import stream

RATES = st.tuples(st.integers(1, 60), st.integers(1, 4), st.integers(0, 150))
"""Period, burst and jitter."""


def with_rate(rate):
    period, burst, jitter = rate
    return replace(stream("s", 1, period, 1), burst=burst, jitter=jitter)


def let_in(rate, cycles):
    bucket = TokenBucket(*rate)
    return [bucket.admit(cycle) for cycle in cycles]


@given(RATES, st.lists(st.integers(0, 600), max_size=40))
def test_no_more_are_let_in_than_the_analysis_counts(rate, cycles):
    """Whatever comes, in whatever order, in every interval with an arrival at both ends."""
    one, found = with_rate(rate), let_in(rate, cycles)
    assert found == sorted(found) and all(at >= cycle for at, cycle in zip(found, cycles, strict=True))
    for first in range(len(found)):
        for last in range(first, len(found)):
            length = found[last] - found[first]
            assert last - first + 1 <= one.released_until(length, one.jitter)
            assert last - first + 1 <= one.released_before(length + 1, one.jitter)


@given(RATES, st.integers(0, 2**32))
def test_who_keeps_to_the_rate_is_never_held_back(rate, seed):
    cycles = [one.released for one in arrivals(random.Random(seed), with_rate(rate), 10 * rate[0])]
    assert let_in(rate, cycles) == cycles


@given(RATES, st.lists(st.integers(0, 600), min_size=1, max_size=40).map(sorted))
def test_none_is_held_back_longer_than_it_must(rate, cycles):
    """One cycle sooner, some interval would have more than the analysis counts."""
    one, found = with_rate(rate), let_in(rate, cycles)
    for number, (came, at) in enumerate(zip(cycles, found, strict=True)):
        if at > max(came, found[number - 1] if number else 0):
            sooner = [*found[:number], at - 1]
            counts = [(number - first + 1, sooner[-1] - sooner[first]) for first in range(number + 1)]
            assert any(count > one.released_until(length, one.jitter) for count, length in counts)


def test_by_hand():
    assert let_in((100, 1, 0), [0, 10, 20, 500, 510]) == [0, 100, 200, 500, 600]
    assert let_in((100, 2, 0), [0, 10, 20, 30]) == [0, 10, 100, 200]
    assert let_in((100, 1, 30), [30, 100, 200, 210]) == [30, 100, 200, 300]


@pytest.mark.parametrize("rate", [(0, 1, 0), (9, 0, 0), (9, 1, -1)])
def test_what_is_no_rate_is_refused(rate):
    with pytest.raises(ValueError, match="must be at least 1"):
        TokenBucket(*rate)
