"""Waits of placed jobs: enough for every edge, and none twice."""

import numpy as np
import pytest

from sw.driver.models.job_order import EdgeWaits

PENDING = lambda job: False  # noqa: E731


def test_a_job_waits_for_counts_of_other_engines():
    edges = EdgeWaits(3)
    for job, (after, part) in enumerate([((), 0), ((), 1), ((0,), 0), ((), 1)]):
        assert edges.waits(after, part, PENDING) == []
        edges.queue(job, after, part)
    assert sorted(edges.waits((2, 3), 2, PENDING)) == [(0, 2), (1, 2)]
    assert edges.waits((2, 3), 0, PENDING) == [(1, 2)]
    assert edges.waits((0, 2, 3), 1, PENDING) == [(0, 2)]
    assert edges.waits((2, 3), 2, lambda job: job == 3) == [(0, 2)]


def test_what_follows_from_another_wait_is_left_out():
    edges = EdgeWaits(3)
    edges.queue(0, (), 0)
    edges.queue(1, (0,), 1)
    assert edges.waits((0, 1), 2, PENDING) == [(1, 1)]  # job 1 began when job 0 had ended
    edges.queue(2, (0, 1), 2)
    assert edges.waits((0,), 2, PENDING) == []  # so had job 2, which is ahead in the queue


def test_an_inference_counts_from_its_beginning():
    edges = EdgeWaits(2)
    edges.queue(0, (), 0)
    edges.begin()
    edges.queue(0, (), 1)
    assert edges.waits((0,), 0, PENDING) == [(1, 1)]


@pytest.mark.parametrize("seed", range(30))
def test_no_order_of_engines_breaks_an_edge(seed):
    """Engines run their queues in order as waits allow, in a random order among each other; no job begins before those
    that it needs have ended, and all end."""
    print("seed", seed)
    rng = np.random.default_rng(seed)
    parts, count = int(rng.integers(2, 9)), 40
    edges, queues = EdgeWaits(parts), [[] for _ in range(parts)]
    needs = [sorted({int(k) for k in rng.integers(0, job, min(job, int(rng.integers(4))))}) for job in range(count)]
    for job in range(count):
        part = int(rng.integers(parts))
        queues[part].append((job, edges.waits(needs[job], part, PENDING)))
        edges.queue(job, needs[job], part)
    done, signals = set(), [0] * parts
    while len(done) < count:
        heads = [p for p in range(parts) if queues[p] and all(signals[q] >= n for q, n in queues[p][0][1])]
        part = int(rng.choice(heads))
        job, _ = queues[part].pop(0)
        assert done.issuperset(needs[job])
        done.add(job)
        signals[part] += 1
