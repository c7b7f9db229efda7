"""The schedule of few tiles by which regions are cut: what it overlaps, and what waits."""

import random

import pytest

from sim.cost.region_time import MOST_MEMBERS, RegionMember, side_by_side_cycles
from tests.support import cost_oracle

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


def random_members(rng: random.Random) -> list[RegionMember]:
    members = []
    for number in range(rng.randint(1, 9)):
        most = rng.choice([10.0, 500.0, 5000.0, 40000.0])
        busy = [rng.choice([0.0, most, rng.uniform(0, most)]) for _ in range(4)]
        reads = sorted(rng.sample(range(number), rng.randint(0, min(number, 3))))
        members.append(RegionMember((busy[0], busy[1], busy[2], busy[3]), tuple(reads), rng.randint(0, 1)))
    return members


@pytest.mark.parametrize("seed", range(200))
def test_numbers_are_those_of_python(seed):
    rng = random.Random(seed)
    for _ in range(5):
        members = random_members(rng)
        assert side_by_side_cycles(members) == cost_oracle.side_by_side_cycles(members), f"seed {seed}"


def test_more_members_than_bits():
    with pytest.raises(ValueError, match="at most 64 members, not 65"):
        side_by_side_cycles([RegionMember(CONV)] * (MOST_MEMBERS + 1))
