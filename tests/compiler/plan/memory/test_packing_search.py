"""The search for a packing: it finds what first fit does not, and nothing where there is nothing."""

from itertools import permutations

import numpy as np
from hypothesis import given, strategies as st

from compiler.plan.memory.first_fit import ENDLESS, first_fit
from compiler.plan.memory.packing import Areas, best_packing
from compiler.plan.memory.packing_search import canonical_packing
from compiler.plan.memory.sharing import SharedBuffer
from compiler.plan.regions.layer_order import Chain
from hw.contract.params import preset
from tests.support.packings import arrays, shared, together

#: Size, first step, further steps, base.
BUFFERS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 5), st.integers(0, 3), st.integers(0, 4)), max_size=6)
NODES = 10_000
TINY = preset("tiny")
#: Words, first and last step of buffers that fill six words in each of six steps.
FULL = ((3, 0, 0), (1, 0, 3), (1, 0, 1), (1, 2, 5), (2, 2, 5), (1, 2, 5), (3, 1, 1), (2, 4, 5), (1, 0, 3))


def least(lives, sizes, bases):
    """The least height of any packing: first fit of every order."""
    beside, heights = together(lives), [0]
    if len(sizes):
        orders = (np.array(order) for order in permutations(range(len(sizes))))
        heights = [int((first_fit(one, sizes, bases, beside, ENDLESS) + sizes).max()) for one in orders]
    return min(heights)


@given(BUFFERS)
def test_it_finds_a_packing_of_the_least_height_and_none_below(buffers):
    lives, sizes, bases = arrays(buffers)
    height = least(lives, sizes, bases)
    offsets = canonical_packing(lives, sizes, bases, height, NODES)
    assert offsets is not None and (offsets >= bases).all() and (offsets + sizes <= height).all()
    assert shared(offsets, lives, sizes) == 0
    assert not buffers or canonical_packing(lives, sizes, bases, height - 1, NODES) is None


def test_who_may_look_at_nothing_finds_nothing():
    lives, sizes, bases = arrays([(1, 0, 0, 0)])
    assert canonical_packing(lives, sizes, bases, 1, 1).tolist() == [0]
    assert canonical_packing(lives, sizes, bases, 1, 0) is None


def test_all_tensors_have_a_place_where_first_fit_leaves_one_out():
    word = TINY.lv1_word
    waiting = [SharedBuffer(words * word, first, last, 2, users={first, last}) for words, first, last in FULL]
    few, searched = (best_packing(waiting, TINY, Chain(), Areas(0), 6 * word, tries) for tries in (0, 200))
    assert few.moved and not searched.moved and searched.extent == 6 * word


def test_what_has_no_room_by_sizes_stays_outside():
    """Of the same in seven words behind areas of two, one fewer than all, and no two share bytes."""
    word = TINY.lv1_word
    waiting = [SharedBuffer(words * word, first, last, 2, users={first, last}) for words, first, last in FULL]
    found = best_packing(waiting, TINY, Chain(), Areas(2 * word), 7 * word, 200)
    assert found.moved and all(offset >= 2 * word for offset in found.offsets.values())
    inside = [one for one in waiting if id(one) in found.offsets]
    for one in inside:
        for other in inside:
            apart = one is other or Chain().apart(one, other)
            at, beside = found.offsets[id(one)], found.offsets[id(other)]
            assert apart or at + one.size <= beside or beside + other.size <= at
