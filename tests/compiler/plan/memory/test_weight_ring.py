"""The ring of weight windows: which job must retire before another's weights may come."""

from hypothesis import given, strategies as st

from compiler.plan.memory.weight_ring import WeightRing


@given(st.lists(st.integers(0, 64), max_size=40))
def test_a_window_is_free_once_the_named_job_has_retired(sizes):
    ring = WeightRing(64)
    held: list[tuple[int, int]] = []
    for number, size in enumerate(sizes):
        start, after = ring.claim(size)
        assert start >= 0 and start + size <= 64
        still = [job for job, (low, high) in enumerate(held) if low < start + size and start < high]
        assert (number - after if after else -1) == max(still, default=-1)
        held.append((start, start + size))


@given(st.lists(st.integers(1, 64), min_size=1, max_size=20))
def test_a_second_inference_waits_for_the_first(sizes):
    ring = WeightRing(64)
    held = [ring.claim(size) for size in sizes]
    spans = [(start, start + size) for (start, _), size in zip(held, sizes, strict=True)]
    for number, (start, end) in enumerate(spans):
        users = [i for i, (low, high) in enumerate(spans) if low < end and start < high]
        assert number + len(sizes) - ring.again(number) == max(users)


def test_two_half_windows_alternate():
    ring = WeightRing(64)
    assert [ring.claim(32) for _ in range(4)] == [(0, 0), (32, 0), (0, 2), (32, 2)]
