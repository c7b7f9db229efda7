"""Samples of parameters lie evenly, and lose none."""

import pytest

from tests.support.sampled import sampled


@pytest.mark.parametrize(("cases", "count"), [(range(8), 3), ("abc", 1), ([(1, 2), (3, 4), (5, 6)], 2), (range(9), 8)])
def test_a_sample_lies_evenly(cases, count):
    found = sampled(cases, count)
    assert [one.values for one in found] == [case if isinstance(case, tuple) else (case,) for case in cases]
    taken = [place for place, one in enumerate(found) if not one.marks]
    gaps = [after - before for before, after in zip(taken, [*taken[1:], len(cases)], strict=True)]
    assert taken[0] == 0 and len(taken) == count and max(gaps) - min(gaps) <= 1
    assert {one.marks[0].name for one in found if one.marks} == {"slow"}


@pytest.mark.parametrize("count", [0, 3, 4])
def test_a_sample_is_some_of_them(count):
    with pytest.raises(ValueError, match=f"a sample of {count} of 3"):
        sampled("abc", count)
