"""The beam search: what it finds is a packing, it finds one where there is room, and seldom misses the lowest."""

import random

from hypothesis import given, strategies as st

from compiler.plan.memory.packing import Areas, best_packing
from compiler.plan.memory.packing_beam import beam_packing
from compiler.plan.memory.packing_search import canonical_packing
from compiler.plan.memory.sharing import SharedBuffer
from compiler.plan.regions.layer_order import Chain
from hw.contract.params import preset
from tests.support.packings import arrays, shared

#: Size, first step, further steps, base.
BUFFERS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(0, 5), st.integers(0, 4)), max_size=20)
TINY = preset("tiny")


def is_packing(offsets, lives, sizes, bases, limit):
    ends = offsets + sizes
    return (offsets >= bases).all() and (ends <= limit).all() and shared(offsets, lives, sizes) == 0


def some(seed, count, steps, longest, largest):
    """Buffers that begin anywhere, most of them short."""
    rng = random.Random(seed)
    return [
        (rng.randint(1, largest), rng.randrange(steps), min(longest, int(rng.expovariate(4 / longest))), 0)
        for _ in range(count)
    ]


@given(BUFFERS, st.integers(1, 60))
def test_what_it_finds_is_a_packing(buffers, limit):
    lives, sizes, bases = arrays(buffers)
    found = beam_packing(lives, sizes, bases, limit, 10_000)
    assert found is None or is_packing(found, lives, sizes, bases, limit)


@given(BUFFERS.filter(bool))
def test_with_room_for_all_it_finds_one(buffers):
    lives, sizes, bases = arrays(buffers)
    limit = int(sizes.sum() + bases.max())
    assert is_packing(beam_packing(lives, sizes, bases, limit, 10_000), lives, sizes, bases, limit)
    assert beam_packing(lives, sizes, bases, limit, 0) is None


def test_none_and_those_without_bytes():
    assert beam_packing(*arrays([]), 1, 1).tolist() == []
    assert beam_packing(*arrays([(1, 0, 0, 0), (0, 0, 0, 0)]), 1, 10) is None


def test_it_seldom_misses_the_least_height_of_few():
    missed = 0
    for seed in range(200):
        given_arrays = arrays(some(seed, 24, 16, 12, 9))
        least = next(at for at in range(1, 200) if canonical_packing(*given_arrays, at, 100_000) is not None)
        assert beam_packing(*given_arrays, least - 1, 10_000) is None
        missed += beam_packing(*given_arrays, least, 10_000) is None
    assert missed <= 2


def test_all_tensors_have_a_place_where_first_fit_and_the_search_of_branches_leave_one_out():
    buffers, word = some(2, 250, 150, 40, 40), TINY.lv1_word
    lives, sizes, bases = arrays(buffers)
    most = max(sizes[(lives[:, 0] <= step) & (step <= lives[:, 1])].sum() for step in range(200))
    assert canonical_packing(lives, sizes, bases, most, 10_000) is None
    waiting = [
        SharedBuffer(s * word, first, first + more, 2, users={first, first + more}) for s, first, more, _ in buffers
    ]
    few, searched = (best_packing(waiting, TINY, Chain(), Areas(0), int(most) * word, tries) for tries in (0, 200))
    assert few.moved and not searched.moved and searched.extent == most * word
