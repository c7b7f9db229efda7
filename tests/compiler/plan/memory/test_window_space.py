"""Weight windows wherever LV2 is free: nobody uses a byte of a window from its load to the end of its job."""

import itertools

import pytest
from hypothesis import given, strategies as st

from compiler.plan.memory.window_space import WAYS, HeldBytes, NoRoom, WindowSpace, WindowWay

WORD = 8
HOME = 64


@st.composite
def _programs(draw) -> tuple[list[tuple[int, int, int]], list[HeldBytes], int, int]:
    """Jobs (engine, layer, bytes of weights) by layer and turn, what layers hold, shared bytes, slots."""
    engines, layers = draw(st.integers(1, 3)), draw(st.integers(1, 6))
    shared = WORD * draw(st.integers(0, 16))
    jobs = []
    for layer in range(layers):
        counts = [draw(st.integers(0, 3)) for _ in range(engines)]
        turns = sorted((turn, engine) for engine, count in enumerate(counts) for turn in range(count))
        jobs += [(engine, layer, WORD * draw(st.integers(0, HOME // WORD))) for _, engine in turns]
    held = []
    for _ in range(draw(st.integers(0, 8)) if shared else 0):
        low = WORD * draw(st.integers(0, shared // WORD - 1))
        high = low + WORD * draw(st.integers(1, (shared - low) // WORD))
        first = draw(st.integers(0, layers - 1))
        last = draw(st.integers(first, layers - 1))
        held.append(HeldBytes(low, high, first, last, {e for e, layer, _ in jobs if layer == last}))
    return jobs, held, shared, draw(st.integers(1, 8))


@given(_programs(), st.sampled_from(WAYS))
def test_a_window_is_nobody_elses_from_its_load_to_the_end_of_its_job(program, way):
    jobs, held, shared, slots = program
    space = WindowSpace([(engine, layer) for engine, layer, _ in jobs], held, shared, HOME, slots, way)
    end = shared + HOME * (1 + max((engine for engine, *_ in jobs), default=0))
    queues: dict[int, list[int]] = {}
    windows, begins = [], []  # and the jobs that have ended when a load begins
    for number, (engine, layer, size) in enumerate(jobs):
        mine = queues.setdefault(engine, [])
        try:
            start, after = space.claim(engine, size)
        except NoRoom:
            assert not way.apart  # each engine has bytes that are enough for its largest window
            return
        assert 0 <= after <= len(mine)
        home = shared + engine * HOME
        apart = start + size <= shared or home <= start <= start + size <= home + HOME
        assert 0 <= start <= start + size <= end and (apart or not way.apart)
        windows.append((start, start + size))
        released = mine[-after] if after else None
        # A job that ran waited for all jobs of the layers before.
        begins.append(
            {
                k
                for k, (other, earlier, _) in enumerate(jobs)
                if released is not None
                and (earlier < jobs[released][1] or (other == engine and k <= released and k in mine))
            }
        )
        mine.append(number)
        for one in held:
            if not (size and one.meets(*windows[-1])) or one.first > layer:
                continue
            assert one.last < layer
            touching = {k for k, (e, at, _) in enumerate(jobs) if at == one.last and e in one.engines}
            assert touching <= begins[number], f"job {number} may be loaded over {one}"
    for a, b in itertools.combinations(range(len(jobs)), 2):
        (low, high), (start, end) = windows[a], windows[b]
        if max(low, start) < min(high, end):
            assert a in begins[b] or b in begins[a], f"windows of jobs {a} and {b}"


@given(_programs())
def test_a_second_inference_on_one_engine_waits_for_the_first(program):
    jobs, held, shared, slots = program
    jobs = [(0, layer, size) for engine, layer, size in jobs if engine == 0]
    space = WindowSpace([(0, layer) for _, layer, _ in jobs], held, shared, HOME, slots)
    spans = [(start, start + size) for _, _, size in jobs for start, _ in [space.claim(0, size)]]
    for number, span in enumerate(spans):
        users = [i for i, (low, high) in enumerate(spans) if low < span[1] and span[0] < high]
        if any(one.meets(*span) for one in held):
            users.append(len(jobs) - 1)
        assert number + len(jobs) - space.again(0, number) == max(users, default=number)


def test_windows_use_what_tensors_have_left():
    ends = HeldBytes(0, 128, 0, 1, {0})  # until layer 1
    space = WindowSpace([(0, layer) for layer in range(6)], [ends], 128, HOME, 8)
    assert [space.claim(0, HOME) for _ in range(2)] == [(128, 0), (128, 1)]
    # Behind layer 1 there is room for three: only the first of the next still waits for the job before.
    assert [space.claim(0, HOME) for _ in range(4)] == [(128, 1), (0, 2), (64, 3), (128, 3)]


def test_a_small_window_leaves_large_gaps_whole():
    between = HeldBytes(64, 72, 0, 5, {0})  # 64 bytes in front of it, 8 behind
    space = WindowSpace([(0, layer) for layer in range(4)], [between], 80, HOME, 8)
    assert [space.claim(0, size) for size in (8, HOME, HOME)] == [(72, 0), (0, 0), (80, 0)]


@pytest.mark.parametrize(("engine", "after"), [(0, 2), (1, 1)])
def test_what_another_engine_used_is_free_when_a_later_layer_has_begun(engine, after):
    jobs = [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]
    space = WindowSpace(jobs, [HeldBytes(0, 64, 0, 0, {engine})], 64, HOME, 8)
    for one, _ in jobs[:4]:
        space.claim(one, HOME if one == 0 else 0)
    # The end of a job of layer 1 tells that layer 0 has ended everywhere; that of its own job of layer 0 does not.
    assert space.claim(0, 56)[1] == after


def test_a_window_larger_than_what_an_engine_has_alone_is_refused():
    space = WindowSpace([(0, 0)], [], 1024, HOME, 8)
    with pytest.raises(ValueError, match="a window of 65 bytes does not fit the 64 of engine 0"):
        space.claim(0, 65)


@pytest.mark.parametrize(
    ("place", "starts"), [("lowest", [0, 24, 32, 0]), ("next", [0, 24, 32, 56]), ("least room", [0, 24, 32, 0])]
)
def test_ways_differ_in_which_of_equal_places_a_window_gets(place, starts):
    """The first window is free again when the fourth claims, and so is what lies behind the third."""
    space = WindowSpace([(0, layer) for layer in range(4)], [], 96, HOME, 3, WindowWay(False, place))
    assert [space.claim(0, size)[0] for size in (24, 8, 24, 16)] == starts


def test_engines_that_share_all_of_lv2_may_leave_no_room():
    space = WindowSpace([(0, 0), (1, 0)], [], 0, HOME, 8, WindowWay(False, "lowest"))
    assert space.claim(0, WORD) == (0, 0)
    assert space.claim(1, HOME) == (WORD, 0)
    space = WindowSpace([(0, 0), (0, 0), (1, 0)], [HeldBytes(HOME - WORD, HOME + WORD, 0, 0, {0})], 0, HOME, 8, WAYS[2])
    with pytest.raises(NoRoom, match="no room for a window of 64 bytes of engine 1 beside those of its layer"):
        space.claim(1, HOME)
