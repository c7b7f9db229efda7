"""Static allocations: instances are the same each time, and each packing is right and little above the load."""

import pytest

from benchmarks.packing import packed
from benchmarks.workloads.allocations import CAPACITY, GRAIN, Allocation, dissected, height, instances, load
from tests.support.sampled import sampled

INSTANCES = instances()


def test_instances_are_the_same_each_time():
    assert instances() == INSTANCES
    assert dissected(1, 110) != dissected(2, 110)
    first = INSTANCES["dissected_1"]
    assert (len(first), first[0]) == (126, Allocation(0, 174_080, 84_992))


@pytest.mark.parametrize("name", sampled(INSTANCES, 10))
def test_a_packing_is_valid_and_little_above_the_load(name):
    buffers = INSTANCES[name]
    assert all(0 <= one.lower < one.upper and one.size > 0 for one in buffers)
    assert all(number % GRAIN == 0 for one in buffers for number in one)
    assert load(buffers) <= height(buffers, packed(buffers)) <= 1.025 * load(buffers)


@pytest.mark.parametrize("name", [name for name in INSTANCES if name.startswith("dissected")])
def test_a_dissection_fills_the_capacity_at_each_moment(name):
    buffers = INSTANCES[name]
    assert load(buffers) == CAPACITY
    assert sum((one.upper - one.lower) * one.size for one in buffers) == CAPACITY**2


@pytest.mark.parametrize("name", [name for name in INSTANCES if name.startswith("loose")])
def test_a_loose_one_nearly_does(name):
    assert 0.98 * CAPACITY < load(INSTANCES[name]) < CAPACITY


def test_a_packing_whose_buffers_share_bytes_is_refused():
    buffers = [Allocation(0, 2, 4), Allocation(1, 3, 4), Allocation(2, 4, 4)]
    assert load(buffers) == height(buffers, [0, 4, 0]) == 8
    for wrong in ([0, 3, 0], [0, 4, 1], [-1, 4, 0], [4, 0, 3]):
        with pytest.raises(ValueError, match="share bytes"):
            height(buffers, wrong)


def test_a_buffer_moved_into_another_is_found():
    """Each buffer, put where one of another life lies that is alive beside it."""
    buffers = INSTANCES["chained_1"]
    offsets = packed(buffers)
    for number, one in enumerate(buffers[:-1]):
        other = number + 1
        wrong = [offsets[other] if at == number else offset for at, offset in enumerate(offsets)]
        assert buffers[other].lower < one.upper
        with pytest.raises(ValueError, match="share bytes"):
            height(buffers, wrong)
