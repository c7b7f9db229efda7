"""Text as tokens: byte-pair encoding of ASCII, with a vocabulary of 1024.

    python -m examples.words.tokens    # learn the vocabulary again, and write vocabulary.txt

``vocabulary.txt`` has a token on each line, as a JSON string: the 128 characters of ASCII, then one token for each
merge, in the order in which they were learned. Merges do not cross the border of a word (``WORD``).
"""

import functools
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from examples.words import corpus

VOCABULARY = Path(__file__).parent / "vocabulary.txt"
SIZE = 1024
CHARACTERS = 128
WORD = re.compile(r" ?[A-Za-z]+| ?[^\sA-Za-z]+|\s+(?!\S)|\s+?(?= ?\S)")  #: a word takes the space before it


def encode(text: str) -> list[int]:
    """The tokens of a text. Raises ValueError at a character that is not ASCII."""
    if not text.isascii():
        strange = next(character for character in text if not character.isascii())
        raise ValueError(f"{strange!r} is not ASCII: this vocabulary has no token for it")
    return [token for word in WORD.findall(text) for token in _encode_word(word)]


def decode(tokens: Iterable[int]) -> str:
    """The text of tokens."""
    pieces = vocabulary()
    return "".join(pieces[token] for token in tokens)


@functools.cache
def vocabulary() -> tuple[str, ...]:
    """The text of each token."""
    return tuple(json.loads(line) for line in VOCABULARY.read_text().splitlines())


@functools.cache
def _numbers() -> dict[str, int]:
    return {piece: number for number, piece in enumerate(vocabulary())}


@functools.lru_cache(maxsize=1 << 16)
def _encode_word(word: str) -> tuple[int, ...]:
    """Merge the neighbours whose merge was learned first, until none is left to merge."""
    numbers = _numbers()
    pieces = list(word)
    while len(pieces) > 1:
        merged = [numbers.get(left + right, SIZE) for left, right in pairwise(pieces)]
        first = min(merged)
        if first == SIZE:
            break
        at = merged.index(first)
        pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]
    return tuple(numbers[piece] for piece in pieces)


def learn(text: str, size: int = SIZE) -> list[str]:
    """A vocabulary: the characters, then ever again the two neighbours that stand side by side most often."""
    words = [(list(word), count) for word, count in sorted(Counter(WORD.findall(text)).items())]
    pieces = [chr(code) for code in range(CHARACTERS)]
    known = set(pieces)
    while len(pieces) < size:
        pairs: Counter[tuple[str, str]] = Counter()
        for parts, count in words:
            for pair in pairwise(parts):
                pairs[pair] += count
        left, right = max((pair for pair in pairs if "".join(pair) not in known), key=lambda pair: (pairs[pair], pair))
        known.add(left + right)
        pieces.append(left + right)
        for parts, _ in words:
            _merge(parts, left, right)
    return pieces


def _merge(parts: list[str], left: str, right: str) -> None:
    at = 0
    while at < len(parts) - 1:
        if parts[at] == left and parts[at + 1] == right:
            parts[at : at + 2] = [left + right]
        at += 1


def write(pieces: Sequence[str]) -> None:
    """Write the vocabulary to its file."""
    VOCABULARY.write_text("".join(f"{json.dumps(piece)}\n" for piece in pieces))


if __name__ == "__main__":
    write(learn(corpus.split(corpus.text())[0]))
