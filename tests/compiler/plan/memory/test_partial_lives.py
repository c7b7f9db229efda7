"""What leaves LV2 between which uses: as few bytes as the best of all choices moves, for lives and sizes from seeds."""

import itertools
import random

import pytest

from compiler.plan.memory.partial_lives import PartialLife, Residency, least_moved

ROOM = 20


def moved(lives, rooms, gone):
    """Bytes that pass if what is ``gone`` leaves behind these users; None if a step has no room."""
    for step, room in enumerate(rooms):
        held = 0
        for number, one in enumerate(lives):
            before = max((user for user in one.users if user <= step), default=None)
            used = step in one.users
            stays = before is not None and step < one.users[-1] and (number, before) not in gone
            held += one.size * (used or stays)
        if held > room:
            return None
    total = 0
    for number, one in enumerate(lives):
        kept = False
        for user in one.users[:-1]:
            kept = kept and user not in one.writes
            if (number, user) in gone:
                total += one.size * (1 if kept else 2)
                kept = True
    return total


def drawn(rng):
    """Lives and rooms that leave each step enough for what it uses itself, mostly."""
    steps, lives = rng.randint(2, 7), []
    for _ in range(rng.randint(1, 5)):
        users = sorted(rng.sample(range(steps), rng.randint(1, min(4, steps))))
        writes = frozenset({users[0], *rng.sample(users, rng.randint(0, 1))})
        leaves = tuple(rng.random() < 0.9 for _ in users[:-1])
        lives.append(PartialLife(rng.randint(1, 12), tuple(users), writes, leaves, (False,) * len(users)))
    return lives, [rng.randint(ROOM // 2, ROOM) for _ in range(steps)]


@pytest.mark.parametrize("seed", range(120))
def test_no_choice_moves_less(seed):
    lives, rooms = drawn(random.Random(seed))
    able = [(i, user) for i, one in enumerate(lives) for user, may in zip(one.users, one.leaves, strict=False) if may]
    some = (set(c) for count in range(len(able) + 1) for c in itertools.combinations(able, count))
    best = min((cost for gone in some if (cost := moved(lives, rooms, gone)) is not None), default=None)
    found = least_moved(lives, rooms, 0)
    assert isinstance(found, Residency) is (best is not None), f"seed {seed}"
    if isinstance(found, Residency):
        assert not found.passed and found.gone <= set(able), f"seed {seed}"
        assert found.moved == moved(lives, rooms, found.gone) == best, f"seed {seed}"


def test_what_a_step_cannot_hold_passes_through_a_staging_area():
    large = PartialLife(12, (0, 1), frozenset({0}), (True,), (True, True))
    other = PartialLife(13, (1, 2), frozenset({1}), (True,), (True, True))
    found = least_moved([large, other], [ROOM] * 3, 6)
    assert found == Residency(24, frozenset({(0, 0)}), frozenset({(0, 1)}))  # stored, and read where it is
    found = least_moved([large, other], [ROOM] * 3, 9)  # no room for the area beside either
    assert found == Residency(50, frozenset({(0, 0)}), frozenset({(0, 1), (1, 1)}))
