"""What is alive beside an operator in any order, and the order with the smallest peak: proved where the search ends,
judged by all orders of small graphs."""

import itertools
import random

import pytest

from compiler.plan.order.alive_sets import AliveBuffer, AliveSets
from compiler.plan.order.graph import members

SEEDS = range(60)


def made(rng, count):
    """Operators with a result each, a few with one that takes an operand's place, and buffers of several writers."""
    reads = [sorted(rng.sample(range(i), rng.randint(0, min(i, 2)))) for i in range(count)]
    before = tuple(sum(1 << j for j in one) for one in reads)
    users = [1 << i for i in range(count)]
    for i, one in enumerate(reads):
        for j in one:
            users[j] |= 1 << i
    sizes = [rng.randint(1, 9) for _ in range(count)]
    replaced = [()] * count
    for i, one in enumerate(reads):
        if one and rng.random() < 0.4:
            sizes[i] = sizes[one[0]]
            replaced[i] = ((i, one[0]),)
    buffers = [AliveBuffer(size, mask) for size, mask in zip(sizes, users, strict=True)]
    if count > 3:  # a concatenation, written by two operators
        buffers.append(AliveBuffer(rng.randint(1, 9), users[count - 1] | users[count - 2]))
    return AliveSets(before, tuple(buffers), tuple(replaced))


def possible(sets, order):
    done = 0
    for number in order:
        if sets.before[number] & ~done:
            return False
        done |= 1 << number
    return True


def counted(sets, order):
    """Bytes alive at each position, by the lives of buffers alone."""
    place = {number: at for at, number in enumerate(order)}
    spans = [[place[user] for user in members(one.users)] for one in sets.buffers]
    found = []
    for at, number in enumerate(order):
        alive = sum(
            one.size for one, span in zip(sets.buffers, spans, strict=True) if span and min(span) <= at <= max(span)
        )
        saved = [
            min(sets.buffers[new].size, sets.buffers[old].size)
            for new, old in sets.replaced[number]
            if min(spans[new]) == at == max(spans[old])
        ]
        found.append(alive - max(saved, default=0))
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_least_is_the_least_of_all_orders(seed):
    rng = random.Random(seed)
    sets = made(rng, rng.randint(1, 7))
    orders = [order for order in itertools.permutations(range(len(sets))) if possible(sets, order)]
    found = sets.least()
    assert possible(sets, found.order) and found.proved, f"seed {seed}"
    assert found.peak == sets.peak(found.order) == min(map(sets.peak, orders)), f"seed {seed}"
    for order in rng.sample(orders, min(20, len(orders))):
        assert sets.alive(order) == counted(sets, order), f"seed {seed}"
    for order in (sets.reverse_post_order(), sets.greedy()):
        assert possible(sets, order) and sets.peak(order) >= found.peak, f"seed {seed}"


@pytest.mark.parametrize("seed", SEEDS)
def test_cut_short_the_bound_still_holds(seed):
    rng = random.Random(seed)
    sets = made(rng, 12)
    whole, cut = sets.least(), sets.least(states=3)
    assert whole.proved and possible(sets, cut.order), f"seed {seed}"
    assert cut.bound <= whole.peak <= cut.peak == sets.peak(cut.order), f"seed {seed}"


@pytest.mark.parametrize("seed", SEEDS)
def test_lives_cover_what_is_alive(seed):
    """Where results take the places of operands, at no position more is counted than without, and never less than what
    is alive there."""
    rng = random.Random(seed)
    sets = made(rng, 10)
    for order in (sets.reverse_post_order(), sets.greedy()):
        lives = sets.lives(order)
        spread = [sum(size for size, first, last in lives if first <= at <= last) for at in range(len(order))]
        assert all(a >= b for a, b in zip(spread, sets.alive(order), strict=True)), f"seed {seed}"
        assert sum(size for size, _, _ in lives) <= sum(one.size for one in sets.buffers), f"seed {seed}"


def test_two_branches_one_at_a_time():
    """The worked example of two orders: A makes 10, B1 and C1 make 100 each, B2 and C2 make 10, D joins them. Branch by
    branch 120 are alive at most behind A, side by side 210."""
    sizes, reads = [10, 100, 10, 100, 10, 10], [[], [0], [1], [0], [3], [2, 4]]
    users = [1 << i for i in range(6)]
    for i, one in enumerate(reads):
        for j in one:
            users[j] |= 1 << i
    before = tuple(sum(1 << j for j in one) for one in reads)
    buffers = tuple(AliveBuffer(size, mask) for size, mask in zip(sizes, users, strict=True))
    sets = AliveSets(before, buffers, ((),) * 6)
    assert (sets.peak((0, 1, 3, 2, 4, 5)), sets.peak((0, 1, 2, 3, 4, 5))) == (210, 120)
    assert sets.least().peak == 120
