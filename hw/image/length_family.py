"""Writes numbers that depend on a length, and values that hold such numbers, down once for a run of lengths.

A number is a *curve* where it is c0 + c1*k + c2*k*(k-1)/2 for the k-th length: three integers, exact for sizes, strides
and products of two of them. A number that is none is a *column*: one value for each length.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Path = tuple[str | int, ...]
_WORD = np.dtype("<u4")


@dataclass(frozen=True)
class WordFamily:
    """Holds byte strings of a run of lengths as words of four bytes. ``base`` is the words of the first; of words
    numbered ``curved`` the rows of ``curves`` (3 x words, modulo 2^32), of words numbered ``listed`` the rows of
    ``columns`` (words x lengths) hold the values. ``sizes`` is the bytes of each string."""

    base: npt.NDArray[np.uint32]
    curved: npt.NDArray[np.uint32]
    curves: npt.NDArray[np.uint32]
    listed: npt.NDArray[np.uint32]
    columns: npt.NDArray[np.uint32]
    sizes: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, strings: Sequence[bytes]) -> "WordFamily":
        """Return the family of all ``strings``, of which there is at least one."""
        most = -(-max(map(len, strings)) // 4) * 4
        rows = [np.frombuffer(each + bytes(most - len(each)), _WORD) for each in strings]
        changed = np.zeros(most // 4, np.bool_)
        for row in rows[1:]:
            changed |= row != rows[0]
        where = np.flatnonzero(changed).astype(np.uint32)
        values = np.stack([row[where] for row in rows], axis=1)
        curves = _differences(values)
        fits = (_at_all(curves, len(rows)) == values).all(axis=1)
        sizes = np.array([len(each) for each in strings], np.uint32)
        return cls(rows[0].copy(), where[fits], curves[:, fits], where[~fits], values[~fits], sizes)

    def at(self, k: int) -> bytes:
        """Return the ``k``-th string."""
        words = self.base.copy()
        words[self.curved] = _at(self.curves, k)
        words[self.listed] = self.columns[:, k]
        return words.astype(_WORD, copy=False).tobytes()[: int(self.sizes[k])]

    def problem(self, count: int) -> str | None:
        """Return what is inconsistent, if anything, in a family of ``count`` strings."""
        words = len(self.base)
        shapes = (self.curves.shape, self.columns.shape, self.sizes.shape)
        if shapes != ((3, len(self.curved)), (len(self.listed), count), (count,)):
            return f"arrays of shapes {shapes} do not fit each other"
        if any(len(where) and int(where.max()) >= words for where in (self.curved, self.listed)):
            return f"words beyond the {words} there are"
        if int(self.sizes.max()) > 4 * words:
            return f"a string of {self.sizes.max()} bytes in {words} words"
        return None


def _differences(values: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Return the curves (3 x rows) through the first three values of each row, modulo 2^32."""
    first, second, third = (values[:, min(k, values.shape[1] - 1)] for k in range(3))
    bend = third - second - (second - first) if values.shape[1] > 2 else np.zeros_like(first)
    return np.stack([first, second - first, bend])


def _at(curves: npt.NDArray[np.uint32], k: int) -> npt.NDArray[np.uint32]:
    half = k * (k - 1) // 2
    found: npt.NDArray[np.uint32] = curves[0] + curves[1] * np.uint32(k) + curves[2] * np.uint32(half % (1 << 32))
    return found


def _at_all(curves: npt.NDArray[np.uint32], count: int) -> npt.NDArray[np.uint32]:
    return np.stack([_at(curves, k) for k in range(count)], axis=1)


@dataclass(frozen=True)
class ValueFamily:
    """Holds values of JSON for a run of lengths. ``base`` is the first; ``changes`` says where others differ: the path
    there, and a curve (three numbers) or the values, one for each length."""

    base: Any
    curves: list[tuple[Path, tuple[int, int, int]]]
    columns: list[tuple[Path, list[Any]]]

    @classmethod
    def of(cls, values: Sequence[Any]) -> "ValueFamily":
        """Return the family of all ``values``, of which there is at least one."""
        curves, columns = list[tuple[Path, tuple[int, int, int]]](), list[tuple[Path, list[Any]]]()
        for path, found in _changes((), values):
            curve = _curve(found) if path else None
            if curve:
                curves.append((path, curve))
            else:
                columns.append((path, found))
        return cls(values[0], curves, columns)

    def set_in(self, value: Any, k: int) -> Any:
        """Return the ``k``-th value, made of ``value``, a copy of the base. Raises ``LookupError`` or ``TypeError`` for
        paths that lead nowhere."""
        for path, (first, slope, bend) in self.curves:
            _set(value, path, first + slope * k + bend * (k * (k - 1) // 2))
        for path, column in self.columns:
            if not path:
                return column[k]
            _set(value, path, column[k])
        return value


def _changes(path: Path, values: Sequence[Any]) -> Iterator[tuple[Path, list[Any]]]:
    """Yield the paths of the smallest parts in which ``values`` differ, with these parts."""
    first = values[0]
    if all(value == first and type(value) is type(first) for value in values):
        return
    if all(isinstance(value, dict) and value.keys() == first.keys() for value in values):
        for key in first:
            yield from _changes((*path, key), [value[key] for value in values])
    elif all(isinstance(value, list) and len(value) == len(first) for value in values):
        for number in range(len(first)):
            yield from _changes((*path, number), [value[number] for value in values])
    else:
        yield path, list(values)


def _curve(values: Sequence[Any]) -> tuple[int, int, int] | None:
    if len(values) < 2 or any(type(value) is not int for value in values):
        return None
    slope = values[1] - values[0]
    bend = values[2] - values[1] - slope if len(values) > 2 else 0
    fits = all(value == values[0] + slope * k + bend * (k * (k - 1) // 2) for k, value in enumerate(values))
    return (values[0], slope, bend) if fits else None


def _set(value: Any, path: Path, leaf: Any) -> None:
    for step in path[:-1]:
        value = value[step]
    value[path[-1]] = leaf
