"""The response-time analysis: published examples, that nothing gets shorter by more work, and what it refuses."""

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from sw.admission import RequestStream, WorkPiece, responses


def stream(name, priority, period, *cycles, **more):
    return RequestStream(name, priority, period, tuple(WorkPiece(one) for one in cycles), **more)


#: Of Bril, Lukkien and Verhaegh: the first request of the second task is not its worst.
BRIL = [stream("first", 2, 50, 20), stream("second", 1, 70, 12, 30)]


def example(deadline=120_000):
    """A planner beside two networks on one engine: their bodies, and what a switch takes, in cycles."""

    def model(name, priority, period, cost, halt, **more):
        return RequestStream(
            name, priority, period, (WorkPiece(halt, 26_000),), execution=cost - 6_300, tail=0, start=6_300,
            restore=30_000, refill=2_500, **more,
        )  # fmt: skip

    return [
        model("planner", 3, 400_000, 35_300, 6_000, jitter=5_000, deadline=deadline),
        model("mobilenet", 2, 4_000_000, 972_943, 9_000, deadline=3_000_000),
        model("resnet", 1, 20_000_000, 9_872_135, 10_774, deadline=20_000_000),
    ]


def worst(streams, section=0):
    return [found.response for found in responses(streams, section)]


def test_a_published_set_whose_worst_request_is_not_the_first():
    first, second = responses(BRIL)
    assert (first.response, first.blocking) == (50, 30)
    assert (second.response, second.number) == (70, 4)


def test_that_set_by_its_first_request_alone_and_without_its_last_piece():
    once = replace(BRIL[1], period=10_000)  # there is no second one within the busy period
    assert worst([BRIL[0], once])[1] == 62
    assert worst([BRIL[0], replace(BRIL[1], tail=0)])[1] == 90


def test_a_planner_beside_two_networks():
    planner, mobilenet, resnet = responses(example())
    assert (planner.blocking, planner.response, planner.slack) == (66_774, 107_074, 12_926)
    assert (mobilenet.blocking, mobilenet.response) == (66_774, 1_414_917)
    assert [(part.urgent.name, part.count, part.each) for part in mobilenet.interference] == [("planner", 4, 93_800)]
    assert (resnet.blocking, resnet.response) == (0, 19_719_350)
    assert [part.count for part in resnet.interference] == [50, 5]
    assert all(found.accepted for found in (planner, mobilenet, resnet))


def test_a_deadline_that_is_too_early_is_refused():
    planner = responses(example(deadline=100_000))[0]
    assert not planner.accepted and planner.slack == -7_074
    assert planner.blocking * 100 // planner.response == 62


def test_the_section_of_the_host_blocks_everybody():
    assert worst(BRIL[:1], 7) == [27]


# -- sets of engines ---------------------------------------------------------------------------------------------------
def on(engines, *args, **more):
    return stream(*args, engines=frozenset(engines), **more)


def test_streams_of_other_engines_cost_nothing():
    assert worst([on({0}, "a", 2, 100, 40), on({1}, "b", 1, 100, 50)]) == [40, 50]


def test_a_stream_that_another_may_have_held_up_comes_as_late_as_its_response():
    """Two of ``middle``, which comes late behind ``high``, meet ``low``, which does not meet ``high`` itself."""
    streams = [on({1}, "high", 3, 100, 50), on({0, 1}, "middle", 2, 100, 10), on({0}, "low", 1, 500, *[1] * 45)]
    high, middle, low = responses(streams)
    assert (high.response, middle.response, low.response) == (60, 113, 65)
    assert [part.count for part in low.interference if part.urgent is middle.stream] == [2]


# -- refusals ----------------------------------------------------------------------------------------------------------
def test_overload_is_refused_with_its_share():
    found = responses([stream("a", 2, 10, 6), stream("b", 1, 100, 50)])[1]
    assert found.response is None and not found.accepted and "110.0%" in found.reason


def test_a_full_load_has_a_bound_only_if_nothing_comes_on_top():
    assert worst(BRIL) == [50, 70]  # it asks for 100 %
    for more in ({"jitter": 1}, {"burst": 2}):
        found = responses([replace(BRIL[0], **more), BRIL[1]])[1]
        assert found.response is None and "100.0%" in found.reason


def test_the_load_of_less_urgent_streams_does_not_matter():
    assert responses([stream("a", 2, 100, 60), stream("b", 1, 100, 90)])[0].response == 150


def test_a_stream_without_a_rate_must_be_less_urgent_than_those_with_a_promise():
    loose = replace(stream("loose", 3, 1, 5), period=None, promised=False)
    found = responses([loose, stream("a", 2, 100, 10)])[0]
    assert "loose" in found.reason and "as often as it likes" in found.reason
    assert worst([replace(loose, priority=1), stream("a", 2, 100, 10)]) == [15]


def test_a_promise_needs_a_period():
    with pytest.raises(ValueError, match="'a': promised without a period"):
        stream("a", 1, None, 5)


@pytest.mark.parametrize(
    ("change", "told"),
    [({"period": 0}, "period must be at least 1"), ({"jitter": -1}, "jitter must be at least 0"),
     ({"engines": frozenset()}, "engines must be"), ({"pieces": ()}, "pieces must be"),
     ({"tail": 30, "execution": 20}, "tail 30 is longer than execution 20")],
)  # fmt: skip
def test_impossible_streams_are_refused(change, told):
    with pytest.raises(ValueError, match=told):
        replace(BRIL[0], **change)


def test_two_streams_of_one_name_are_refused():
    with pytest.raises(ValueError, match="same name"):
        responses([BRIL[0], BRIL[0]])


def test_equals_have_the_length_of_their_busy_period():
    """Whatever their order: 10 + 20 + 30, and a piece of the less urgent one."""
    equals = [stream(name, 1, 1_000, cycles) for name, cycles in (("a", 10), ("b", 20), ("c", 30))]
    assert worst([*equals, stream("low", 0, 1_000, 7)])[:3] == [67, 67, 67]


def test_equals_on_different_engines_are_refused():
    found = responses([on({0}, "a", 1, 100, 10), on({0, 1}, "b", 1, 100, 10), on({1}, "c", 0, 100, 10)])
    assert "as urgent" in found[0].reason and "engines" in found[0].reason


# -- more work never takes less time -----------------------------------------------------------------------------------
def _more(field):
    def change(one, by):
        if field == "pieces":
            return replace(one, pieces=tuple(replace(piece, cycles=piece.cycles + by) for piece in one.pieces))
        if field == "dump":
            return replace(one, pieces=tuple(replace(piece, dump=piece.dump + by) for piece in one.pieces))
        if field == "period":
            return replace(one, period=max(1, one.period - by))
        return replace(one, **{field: getattr(one, field) + by})

    return change


_ENGINES = [frozenset({0}), frozenset({1}), frozenset({0, 1})]


@st.composite
def sets(draw):
    count = draw(st.integers(2, 4))
    one = draw(st.booleans())
    return [
        RequestStream(
            f"s{number}", number, draw(st.integers(200, 900)),
            tuple(draw(st.lists(st.builds(WorkPiece, st.integers(1, 20), st.integers(0, 5)), min_size=1, max_size=3))),
            jitter=draw(st.integers(0, 50)), burst=draw(st.integers(1, 2)),
            engines=_ENGINES[0] if one else draw(st.sampled_from(_ENGINES)),
            start=draw(st.integers(0, 5)), restore=draw(st.integers(0, 9)), refill=draw(st.integers(0, 3)),
        )
        for number in range(count)
    ]  # fmt: skip


@settings(max_examples=60, deadline=None, print_blob=True)
@given(
    sets(), st.sampled_from(["pieces", "dump", "period", "jitter", "burst", "start", "restore", "refill"]),
    st.integers(0, 3), st.integers(1, 9),
)  # fmt: skip
def test_more_of_anything_never_shortens_a_response(streams, field, which, by):
    which %= len(streams)
    after = [*streams[:which], _more(field)(streams[which], by), *streams[which + 1 :]]
    for before, changed in zip(worst(streams), worst(after), strict=True):
        assert changed is None or (before is not None and before <= changed)
