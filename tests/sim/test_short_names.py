"""Short names: no longer than they may be, and no two alike."""

import pytest
from hypothesis import given, strategies as st

from sim import distinct_names, shortened

LAYERS = [f"/encoder/layers.{n}/self_attn/{what}_proj/MatMul" for n in range(12) for what in ("q", "k", "v", "out")]


def test_shortened_names_keep_both_ends():
    assert shortened("short") == "short"
    cut = shortened("first/" + "x" * 100 + "/last")
    assert len(cut) == 44 and cut.startswith("first/") and cut.endswith("/last")


@pytest.mark.parametrize("most", [44, 40, 30, 24, 20, 12, 8, 5])
def test_layers_of_a_transformer_differ(most):
    short = distinct_names(LAYERS, most)
    assert list(short) == LAYERS and len(set(short.values())) == len(LAYERS)
    assert max(map(len, short.values())) <= most


def test_where_names_differ_is_shown():
    one, other = (f"/model/backbone/stages.{n}/convolution/Conv_output_quantised" for n in "34")
    short = distinct_names([one, other], 24)
    assert "es.3" in short[one] and "es.4" in short[other]
    short = distinct_names([one, other, "a" * 60], 12)
    assert "3" in short[one] and "4" in short[other]


def test_names_that_fit_stay():
    assert distinct_names(["a", "b", "a", "c" * 9], 9) == {"a": "a", "b": "b", "c" * 9: "c" * 9}


NAMES = st.lists(
    st.one_of(st.text("ab/…1", max_size=30), st.text("a", max_size=40), st.sampled_from(LAYERS)), max_size=60
)


@given(NAMES, st.integers(5, 44))
def test_no_two_look_alike(names, most):
    short = distinct_names(names, most)
    assert set(short) == set(names) and len(set(short.values())) == len(short)
    assert all(len(text) <= most for text in short.values())
    assert all(text == name for name, text in short.items() if len(name) <= most)
