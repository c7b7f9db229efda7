"""Which buffers stay in LV2: as good as the best of all choices, for lives and sizes from seeds."""

import itertools
import random

import pytest

from compiler.plan.memory.residents import BufferLife, residents

HIGH = 20


def fits(candidates, stay, touched, always, area):
    for step, passing in enumerate(touched):
        alive = [number for number in stay if candidates[number].first <= step <= candidates[number].last]
        staged = always[step] or any(number not in stay for number in passing)
        if sum(candidates[number].size for number in alive) > HIGH - area * staged:
            return False
    return True


@pytest.mark.parametrize("seed", range(80))
def test_no_choice_saves_more(seed):
    rng = random.Random(seed)
    steps, count, area = rng.randint(1, 6), rng.randint(1, 8), rng.randint(0, 6)
    candidates = []
    for _ in range(count):
        first = rng.randrange(steps)
        candidates.append(BufferLife(rng.randint(1, 12), rng.randint(1, 30), first, rng.randrange(first, steps)))
    touched = [[i for i, one in enumerate(candidates) if step in (one.first, one.last)] for step in range(steps)]
    always = [rng.random() < 0.2 for _ in range(steps)]
    found = residents(candidates, touched, always, area, HIGH)
    assert fits(candidates, found, touched, always, area), f"seed {seed}"
    best = max(
        sum(candidates[number].traffic for number in some)
        for size in range(count + 1)
        for some in itertools.combinations(range(count), size)
        if fits(candidates, some, touched, always, area)
    )
    assert sum(candidates[number].traffic for number in found) == best, f"seed {seed}"


def test_more_buffers_than_a_word_has_bits():
    small = [10, 70, 140, 149]
    candidates = [BufferLife(5 if number in small else HIGH + 1, 9, number % 3, 5) for number in range(150)]
    assert residents(candidates, [()] * 6, [False] * 6, 0, HIGH) == small


def test_what_saves_nothing_does_not_stay_even_where_all_fit():
    assert residents([BufferLife(1, 0, 0, 1), BufferLife(1, 5, 0, 1)], [()] * 2, [False] * 2, 0, HIGH) == [1]
    assert residents([BufferLife(1, 3, 0, 1), BufferLife(1, 5, 0, 1)], [()] * 2, [False] * 2, 0, HIGH) == [0, 1]
