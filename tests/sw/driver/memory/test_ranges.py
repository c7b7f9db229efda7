from itertools import pairwise

from hypothesis import given, strategies as st

from sw.driver.memory.ranges import intersect, normalise, overlap, size, subtract

RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)).map(lambda r: (r[0], r[0] + r[1])), max_size=6)


def members(ranges):
    return {i for start, end in ranges for i in range(start, end)}


@given(RANGES, RANGES)
def test_operations_are_those_of_sets(a, b):
    assert members(normalise(a)) == members(a)
    assert members(intersect(a, b)) == members(a) & members(b)
    assert members(subtract(a, b)) == members(a) - members(b)
    assert size(a) == len(members(a))
    assert overlap(normalise(a), normalise(b)) == bool(members(a) & members(b))
    for result in (normalise(a), intersect(a, b), subtract(a, b)):
        assert all(s < e for s, e in result)
        assert all(x[1] < y[0] for x, y in pairwise(result))
