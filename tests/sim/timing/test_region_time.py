"""The schedule of few tiles by which regions are cut: what it overlaps, and what waits."""

import pytest

from sim.timing.region_time import RegionMember, side_by_side_cycles

CONV = (1000.0, 8000.0, 1000.0, 500.0)  #: cycles on LD1, MAC, VEC, ST1
POOL = (500.0, 0.0, 8000.0, 500.0)


def test_one_layer_takes_its_busiest_unit_and_both_ends():
    alone = side_by_side_cycles([RegionMember(CONV)])
    assert 8000 < alone < 8000 + sum(CONV) / 4


@pytest.mark.parametrize("members", [[CONV, POOL], [POOL, CONV]])
def test_arrays_and_vector_unit_work_side_by_side(members):
    """Whichever comes first: what frees accumulators does not wait behind all of the pool."""
    together = side_by_side_cycles([RegionMember(busy) for busy in members])
    assert 9000 < together < 11500


def test_a_reader_begins_with_the_first_tiles():
    apart = side_by_side_cycles([RegionMember(CONV)]) + side_by_side_cycles([RegionMember(POOL)])
    reading = side_by_side_cycles([RegionMember(CONV), RegionMember(POOL, (0,), 1)])
    beside = side_by_side_cycles([RegionMember(CONV), RegionMember(POOL)])
    assert beside < reading < 0.8 * apart


def test_layers_of_one_kind_follow_each_other():
    assert side_by_side_cycles([RegionMember(CONV)] * 2) > 16000


def test_a_layer_that_waits_holds_up_the_next_of_its_kind():
    """A convolution that reads the pool goes behind one that does not."""
    waits, free = RegionMember(CONV, (0,)), RegionMember(CONV)
    held = side_by_side_cycles([RegionMember(POOL), waits, free])
    better = side_by_side_cycles([RegionMember(POOL), free, waits])
    assert better < held
