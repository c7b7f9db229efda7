"""The compiled schedule of a region gives the numbers of the one in Python, to the last bit."""

import random

import pytest

from sim.timing import compiled_region_time
from sim.timing.compiled_region_time import CompiledRegionTime, fast_side_by_side
from sim.timing.region_time import RegionMember, side_by_side_cycles


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
    rng, compiled = random.Random(seed), CompiledRegionTime()
    for _ in range(5):
        members = random_members(rng)
        assert compiled(members) == side_by_side_cycles(members), f"seed {seed}"


def test_more_members_than_bits():
    members = [RegionMember((10.0, 100.0, 5.0, 5.0))] * 70
    assert CompiledRegionTime()(members) == side_by_side_cycles(members)


def test_python_stands_in(monkeypatch):
    def missing() -> CompiledRegionTime:
        raise RuntimeError("no compiler")

    fast_side_by_side.cache_clear()
    monkeypatch.setattr(compiled_region_time, "CompiledRegionTime", missing)
    assert fast_side_by_side() is side_by_side_cycles
    fast_side_by_side.cache_clear()
