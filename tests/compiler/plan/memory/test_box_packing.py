"""Boxes of buffers: what lives at the same time is stacked, what follows takes its bytes, and nothing overlaps."""

import random

import numpy as np
from hypothesis import given, strategies as st

from compiler.plan.memory.box_packing import boxed_packing, boxes
from compiler.plan.memory.first_fit import NOWHERE, first_fit
from compiler.plan.memory.packing import Areas, best_packing
from compiler.plan.memory.packing_search import canonical_packing
from compiler.plan.memory.sharing import SharedBuffer
from compiler.plan.regions.layer_order import Chain
from hw.contract.params import preset
from tests.support.packings import arrays, shared, together

#: Size, first step, further steps, base.
BUFFERS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(0, 3), st.integers(0, 4)))
LOSSES = st.sampled_from((0.0, 0.1, 0.5))
TINY = preset("tiny")


def nested(seed, buffers, side=512):
    """Lives and sizes that fill ``side`` bytes in each of ``side`` steps, cut in turn by bytes and by steps."""
    rng, found = random.Random(seed), []

    def cut(first, life, size, count, *, by_life):
        whole = life if by_life else size
        if count <= 1 or whole == 1:
            found.append((size, first, life - 1, 0))
            return
        at = rng.randrange(1, whole)
        for begin, length in ((0, at), (at, whole - at)):
            here = (first + begin, length, size) if by_life else (first, life, length)
            cut(*here, count * length // whole, by_life=not by_life)

    cut(0, side, side, buffers, by_life=False)
    rng.shuffle(found)
    return found


@given(BUFFERS, LOSSES)
def test_each_buffer_lies_in_one_box_as_long_as_it_lives(buffers, loss):
    lives, sizes, bases = arrays(buffers)
    made = boxes(lives, sizes, bases, loss)
    assert sorted(number for box in made for number, _ in box.inside) == list(range(len(buffers)))
    offsets = np.zeros(len(buffers), np.int64)
    at = 1000  # boxes one on the other, each at least at its base
    for box in made:
        for number, above in box.inside:
            offsets[number] = at + above
            assert box.first <= lives[number, 0] and lives[number, 1] < box.past
            assert above >= 0 and above + sizes[number] <= box.size and box.base + above >= bases[number]
        at += box.size
    assert shared(offsets, lives, sizes) == 0


@given(BUFFERS)
def test_who_may_lose_nothing_wastes_nothing(buffers):
    lives, sizes, bases = arrays(buffers)
    wasted = sum(box.size * (box.past - box.first) for box in boxes(lives, sizes, bases, 0.0))
    assert wasted == (sizes * (lives[:, 1] - lives[:, 0] + 1)).sum()


def test_those_that_follow_each_other_are_one_if_they_differ_by_little():
    lives, sizes, bases = arrays([(100, 0, 1, 0), (30, 2, 1, 8), (67, 2, 1, 5)])
    assert [(box.size, box.base) for box in boxes(lives, sizes, bases, 0.02)] == [(100, 0), (97, 8)]
    assert [(box.size, box.base) for box in boxes(lives, sizes, bases, 0.04)] == [(100, 8)]
    assert boxed_packing(lives, sizes, bases, 107, 100) is None
    assert boxed_packing(lives, sizes, bases, 108, 100).tolist() == [8, 8, 38]


@given(BUFFERS, st.integers(8, 40))
def test_a_packing_of_boxes_is_one_of_buffers(buffers, limit):
    lives, sizes, bases = arrays(buffers)
    offsets = boxed_packing(lives, sizes, bases, limit, 1000)
    if offsets is not None:
        assert (offsets >= bases).all() and (offsets + sizes <= limit).all() and shared(offsets, lives, sizes) == 0


def test_nested_lives_are_packed_where_the_search_and_first_fit_find_nothing():
    buffers = nested(7, 160)
    lives, sizes, bases = arrays(buffers)
    assert canonical_packing(lives, sizes, bases, 512, 10_000) is None
    order = np.lexsort((lives[:, 0], -sizes))
    assert NOWHERE in first_fit(order, sizes, bases, together(lives), 512)
    found = boxed_packing(lives, sizes, bases, 512, 1)
    assert (found + sizes <= 512).all() and shared(found, lives, sizes) == 0


def test_all_tensors_of_nested_lives_have_a_place():
    word = TINY.lv1_word
    waiting = [
        SharedBuffer(size * word, first, first + more, 2, users={first, first + more})
        for size, first, more, _ in nested(7, 160)
    ]
    few, searched = (best_packing(waiting, TINY, Chain(), Areas(0), 512 * word, tries) for tries in (0, 200))
    assert few.moved and not searched.moved and searched.extent == 512 * word
