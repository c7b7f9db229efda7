"""Cuts instructions in pieces, so that what they do to the memories takes no more room than a piece, however much they
ask for."""

from collections.abc import Iterator, Sequence
from math import prod

Piece = tuple[slice, ...]  #: of the outer loops; the inner ones are whole

MOST = 1 << 20  #: elements of a piece


def pieces(loops: Sequence[int], inner: int, most: int = MOST) -> Iterator[Piece]:
    """Yield parts of nested ``loops`` in order. Counts are given outermost first, and each turn takes ``inner``
    elements. Each part has ``most`` elements at most, or is a single turn; there is one part, of no slices, if
    everything fits in it."""
    if not loops or prod(loops) * inner <= most:
        yield ()
        return
    turn = prod(loops[1:]) * inner
    step = max(1, most // turn)
    for begin in range(0, loops[0], step):
        here = slice(begin, min(begin + step, loops[0]))
        for rest in pieces(loops[1:], inner, most) if turn > most else [()]:
            yield (here, *rest)


def whole(piece: Piece, loops: Sequence[int]) -> list[slice]:
    """Return a slice for each of ``loops``."""
    return [*piece, *(slice(0, count) for count in loops[len(piece) :])]


def cut(here: slice, low: int, high: int) -> tuple[slice, slice]:
    """Return the part in ``here`` of what goes from ``low`` to before ``high``, counted from the beginning of ``here``,
    and from ``low``."""
    first, end = max(here.start, low), max(min(here.stop, high), max(here.start, low))
    return slice(first - here.start, end - here.start), slice(first - low, end - low)
