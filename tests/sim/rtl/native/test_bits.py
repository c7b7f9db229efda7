"""Words of bits: cutting and joining never changes a value."""

from hypothesis import given, strategies as st

from sim.rtl.native.bits import CONSTANT, Piece, constant, constant_of, joined, sliced, width_of

VALUES = {0: 0b1011_0010_1110_0001, 1: 0x5A5A_1234, 2: 1}
WIDTHS = {0: 16, 1: 32, 2: 1}


def evaluate(word):
    """The bits of a word, the least significant first, given the values of its nodes."""
    bits = []
    for node, low, width, repeat in word:
        value = low if node == CONSTANT else VALUES[node]
        first = 0 if node == CONSTANT else low
        bits += [value >> (first if repeat else first + i) & 1 for i in range(width)]
    return bits


@st.composite
def pieces(draw):
    kind = draw(st.sampled_from(["constant", "bits", "copies"]))
    if kind == "constant":
        width = draw(st.integers(1, 9))
        return constant(draw(st.integers(0, 2**width - 1)), width)[0]
    node = draw(st.sampled_from(sorted(VALUES)))
    low = draw(st.integers(0, WIDTHS[node] - 1))
    if kind == "copies":
        return Piece(node, low, draw(st.integers(2, 9)), True)
    return Piece(node, low, draw(st.integers(1, WIDTHS[node] - low)))


words = st.lists(pieces(), max_size=6).map(tuple)


@given(words)
def test_joining_keeps_the_bits_and_cannot_be_repeated(word):
    once = joined(word)
    assert evaluate(once) == evaluate(word)
    assert joined(once) == once
    assert width_of(once) == width_of(word) == len(evaluate(word))


@given(words, st.data())
def test_a_slice_has_the_bits_at_its_place(word, data):
    low = data.draw(st.integers(0, width_of(word)))
    width = data.draw(st.integers(0, width_of(word) - low))
    assert evaluate(sliced(word, low, width)) == evaluate(word)[low : low + width]


@given(words)
def test_constants_are_known_as_such(word):
    value = constant_of(joined(word))
    if value is not None:
        assert evaluate(word) == [value >> i & 1 for i in range(width_of(word))]
    assert (value is None) == any(piece.node != CONSTANT for piece in word)
