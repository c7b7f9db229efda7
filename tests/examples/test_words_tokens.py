"""Text as tokens, and the text that the decoder is trained on."""

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from examples.words import corpus, tokens
from examples.words.text import held_out

ASCII = st.text(st.characters(max_codepoint=127))
PIECES = st.lists(st.sampled_from(tokens.vocabulary())).map("".join)


@settings(max_examples=500)
@given(ASCII | PIECES)
@example(" \n  x\t\r\n \x00 ''\"\" 1.5e3 \x1c\x1f\x7f  ")
def test_tokens_say_the_text(text):
    written = tokens.encode(text)
    assert tokens.decode(written) == text
    assert len(written) <= len(text) and all(0 <= token < tokens.SIZE for token in written)


def test_vocabulary():
    pieces = tokens.vocabulary()
    assert len(pieces) == len(set(pieces)) == tokens.SIZE
    assert pieces[: tokens.CHARACTERS] == tuple(map(chr, range(tokens.CHARACTERS)))
    known = set(pieces)
    for piece in pieces[tokens.CHARACTERS :]:
        assert tokens.WORD.fullmatch(piece) and tokens.encode(piece) == [pieces.index(piece)]
        assert any(piece[:cut] in known and piece[cut:] in known for cut in range(1, len(piece)))


def test_what_is_not_ascii_is_named():
    with pytest.raises(ValueError, match="'é' is not ASCII"):
        tokens.encode("café…")


def test_learning_merges_what_is_most_frequent():
    learned = tokens.learn("abab abab abab cab", tokens.CHARACTERS + 4)
    assert learned[tokens.CHARACTERS :] == ["ab", "abab", " abab", "cab"]


def test_held_out_text():
    """It reads as text, in the tokens that it is encoded to."""
    text = tokens.decode(held_out())
    np.testing.assert_array_equal(tokens.encode(text), held_out())
    assert len(text) > 3 * len(held_out()) > 15_000 and " sequence" in text


def test_corpus_is_ascii_and_repeats_no_paragraph():
    whole = corpus.text()
    trained, held = corpus.split(whole)
    assert whole.isascii() and trained + held == whole and trained.endswith("\n\n")
    assert len(held) == pytest.approx(corpus.HELD_OUT * len(whole), rel=0.2)
    paragraphs = [paragraph for paragraph in whole.strip("\n").split("\n\n") if paragraph.strip()]
    assert len(set(paragraphs)) == len(paragraphs) > 1000
