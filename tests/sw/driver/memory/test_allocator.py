import pytest
from hypothesis import given, strategies as st

from sw.driver.errors import DriverError, OutOfMemory
from sw.driver.memory.allocator import Allocator

REQUESTS = st.lists(st.tuples(st.integers(1, 300), st.sampled_from([1, 2, 8, 64]), st.booleans()), max_size=40)


@given(REQUESTS, st.randoms())
def test_blocks_are_aligned_inside_and_disjoint(requests, rng):
    memory, live = Allocator("DRAM", 100, 2000), {}
    for size, align, release in requests:
        if release and live:
            memory.free(live.pop(rng.choice(sorted(live)))[0])
        try:
            address = memory.allocate(size, align)
        except OutOfMemory:
            assert memory.largest_block < size + align
            continue
        assert address % align == 0 and address >= 100 and address + size <= 2100
        assert all(address + size <= a or a + s <= address for a, s in live.values())
        live[address] = (address, size)
        assert memory.free_bytes == 2000 - sum(s for _, s in live.values())
    for address, _ in live.values():
        memory.free(address)
    assert memory.largest_block == memory.free_bytes == 2000


def test_first_fit_takes_the_lowest_hole():
    memory = Allocator("LV2", 0, 100)
    first, _ = memory.allocate(10), memory.allocate(10)
    memory.free(first)
    assert memory.allocate(20) == 20
    assert memory.allocate(5) == 0


def test_out_of_memory_names_size_and_what_is_left():
    memory = Allocator("DRAM", 0, 100)
    memory.allocate(40)
    with pytest.raises(OutOfMemory, match=r"DRAM: no room for 61 bytes of weights: 60 bytes left, largest block 60"):
        memory.allocate(61, purpose="weights")


@pytest.mark.parametrize("size, align", [(0, 1), (-3, 1), (4, 0)])
def test_impossible_requests_are_refused(size, align):
    with pytest.raises(DriverError, match="cannot allocate"):
        Allocator("DRAM", 0, 100).allocate(size, align)


def test_freeing_twice_is_refused():
    memory = Allocator("DRAM", 0, 100)
    address = memory.allocate(10)
    memory.free(address)
    with pytest.raises(DriverError, match="nothing is allocated at 0x0"):
        memory.free(address)


def test_what_is_shared_is_free_once_all_have_given_it_back():
    memory = Allocator("DRAM", 0, 100)
    first = memory.allocate(60)
    assert memory.share(first) == memory.share(first) == first
    for _ in range(2):
        memory.free(first)
        assert memory.free_bytes == 40
    memory.free(first)
    assert memory.free_bytes == 100
    for act in (memory.free, memory.share):
        with pytest.raises(DriverError, match="nothing is allocated at 0x0"):
            act(first)
