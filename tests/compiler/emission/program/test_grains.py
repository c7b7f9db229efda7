"""Boxes in grains: the same bytes, in any loops that addresses may walk."""

from hypothesis import example, given, strategies as st

from compiler.emission.program.grains import grain_of, in_grains, merged
from sim.functional import Box

UNIT = 4
LOOPS = st.lists(
    st.tuples(st.integers(1, 5), st.sampled_from([-12, -8, -4, -1, 0, 1, 2, 4, 8, 12, 16, 20])), min_size=1, max_size=3
)
BOXES = st.builds(
    lambda at, loops, run: Box(at * UNIT, (*(n for n, _ in loops), run * UNIT), (*(step for _, step in loops), 1)),
    st.integers(0, 8), LOOPS, st.integers(1, 4),
)  # fmt: skip


def touched(box):
    """Its bytes."""
    return set(box.indices().reshape(-1).tolist())


@given(BOXES)
def test_fewer_loops_touch_the_same(box):
    assert touched(merged(box)) == touched(box)


@given(st.lists(BOXES, min_size=1, max_size=4))
@example([Box(0, (4, 4), (1, 1))])  # a window that moves on by a byte
@example([Box(0, (4, 3), (4, 4))])  # single bytes
def test_whole_grains_are_the_same_bytes(boxes):
    boxes = [merged(box) for box in boxes]
    grain = grain_of(boxes)
    for box in boxes:
        found = {grain * one + byte for one in touched(in_grains(box, grain)) for byte in range(grain)}
        assert found == touched(box)


def test_grains_are_as_large_as_addresses_steps_and_runs_allow():
    assert grain_of([Box(32, (4, 16), (64, 1)), Box(48, (16,), (1,))]) == 16
    assert grain_of([Box(32, (4, 16), (64, 1)), Box(40, (16,), (1,))]) == 8
    assert grain_of([Box(0, (0, 16), (64, 1))]) == grain_of([]) == 1
