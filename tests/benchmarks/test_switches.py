"""Arrivals of urgent models, and what belongs to which interruption."""

import random
from types import SimpleNamespace

import pytest

from benchmarks.switches import interruptions, stratified
from sw.runtime import RunSpan


@pytest.mark.parametrize(("span", "count"), [(1000, 10), (1003, 7), (5, 5)])
def test_one_arrival_falls_into_each_slice(span, count):
    times = stratified(random.Random(3), span, count)
    assert len(times) == count
    for i, time in enumerate(times):
        assert span * i // count <= time < span * (i + 1) // count


def test_arrivals_differ_with_the_seed():
    assert stratified(random.Random(1), 10_000, 20) != stratified(random.Random(2), 10_000, 20)
    assert stratified(random.Random(1), 10_000, 20) == stratified(random.Random(1), 10_000, 20)


def test_a_restore_belongs_to_the_break_before_a_pause_that_waits_for_it():
    def span(kind, begin, end, size=0):
        return RunSpan(kind, 0, "long", 0, begin, end, size)

    spans = [
        span("pause", 100, 220), span("drain", 100, 200), span("dump", 230, 300, 64), span("resume", 1000, 1010),
        span("pause", 1020, 1400), span("drain", 1020, 1300),  # sent while the restore was still to come
        span("restore", 1030, 1200, 64), span("dump", 1450, 1500, 32), span("resume", 2000, 2010),
        span("restore", 2020, 2100, 32),
    ]  # fmt: skip
    first, second = interruptions(sorted(spans, key=lambda s: (s.begin, s.end)), SimpleNamespace(number=0))
    assert (first.sent, first.halted, first.resumed) == (100, 200, 1200)
    assert (second.sent, second.halted, second.resumed) == (1020, 1300, 2100)
    assert [s.begin for s in (*first.dumps, *first.restores)] == [230, 1030]
    assert [s.begin for s in (*second.dumps, *second.restores)] == [1450, 2020]
