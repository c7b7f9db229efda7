"""Arrivals of urgent models."""

import random

import pytest

from benchmarks.switches import stratified


@pytest.mark.parametrize(("span", "count"), [(1000, 10), (1003, 7), (5, 5)])
def test_one_arrival_falls_into_each_slice(span, count):
    times = stratified(random.Random(3), span, count)
    assert len(times) == count
    for i, time in enumerate(times):
        assert span * i // count <= time < span * (i + 1) // count


def test_arrivals_differ_with_the_seed():
    assert stratified(random.Random(1), 10_000, 20) != stratified(random.Random(2), 10_000, 20)
    assert stratified(random.Random(1), 10_000, 20) == stratified(random.Random(1), 10_000, 20)
