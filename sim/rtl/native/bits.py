"""Defines words of bits: how records of the netlist name their operands."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

CONSTANT = -1  #: in place of a node: ``low`` is the value


class Piece(NamedTuple):
    """Names ``width`` bits of one node from bit ``low``, or, with ``repeat``, ``width`` copies of bit ``low``.

    A constant has ``node == CONSTANT`` and its value in ``low``.
    """

    node: int
    low: int
    width: int
    repeat: bool = False


Word = tuple[Piece, ...]  #: pieces from the least significant on


def constant(value: int, width: int) -> Word:
    """Return ``value`` modulo 2^width as a word, which has no piece at all for no bits."""
    return (Piece(CONSTANT, value & ((1 << width) - 1), width),) if width else ()


def width_of(word: Word) -> int:
    """Return how many bits ``word`` has."""
    return sum(piece.width for piece in word)


def constant_of(word: Word) -> int | None:
    """Return the value of a constant word, or None for another."""
    if len(word) == 1:
        return word[0].low if word[0].node == CONSTANT else None
    return None if word else 0


def joined(pieces: Iterable[Piece]) -> Word:
    """Return the pieces one after the other, with neighbours that belong together made one."""
    result: list[Piece] = []
    for piece in pieces:
        if not piece.width:
            continue
        last = result[-1] if result else None
        merged = _merged(last, piece) if last is not None and last.node == piece.node else None
        if merged is None:
            result.append(piece)
        else:
            result[-1] = merged
    return tuple(result)


def _merged(a: Piece, b: Piece) -> Piece | None:
    width = a.width + b.width
    if a.node == CONSTANT:
        return Piece(CONSTANT, a.low | b.low << a.width, width)
    copies = a.low == b.low and (a.repeat or a.width == 1) and (b.repeat or b.width == 1)
    if copies or a.repeat or b.repeat:
        return Piece(a.node, a.low, width, True) if copies else None
    return Piece(a.node, a.low, width) if b.low == a.low + a.width else None


def sliced(word: Word, low: int, width: int) -> Word:
    """Return ``width`` bits of ``word`` from bit ``low``."""
    result: list[Piece] = []
    at = 0
    for piece in word:
        start, stop = max(low, at), min(low + width, at + piece.width)
        if start < stop:
            result.append(cut(piece, start - at, stop - start))
        at += piece.width
    return joined(result)


def cut(piece: Piece, skip: int, width: int) -> Piece:
    """Return ``width`` bits of ``piece`` after the first ``skip``."""
    if piece.node == CONSTANT:
        return Piece(CONSTANT, piece.low >> skip & ((1 << width) - 1), width)
    if piece.repeat:
        return Piece(piece.node, piece.low, width, width > 1)
    return Piece(piece.node, piece.low + skip, width)


def placed(word: Word) -> Iterator[tuple[int, Piece]]:
    """Yield every piece with the position of its least significant bit."""
    at = 0
    for piece in word:
        yield at, piece
        at += piece.width
