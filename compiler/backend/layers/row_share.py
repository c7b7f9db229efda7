"""How engines share the rows of matrices: one matrix after the other, each engine takes a stretch of all rows.

Products, softmax and whatever reads rows one by one share alike, so an engine reads what it has made itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from compiler.backend.layers.region_share import first_row


@dataclass(frozen=True)
class MatrixRows:
    """``count`` rows of matrix number ``matrix`` from ``first`` on."""

    matrix: int
    first: int
    count: int


def own_rows(matrices: int, rows: int, engine: int, engines: int, most: int) -> Iterator[MatrixRows]:
    """Yield the rows of ``engine`` of ``engines``, of ``matrices`` with ``rows`` each, in nearly equal parts of
    ``most`` rows at most."""
    low, high = (first_row(matrices * rows, number, engines) for number in (engine, engine + 1))
    while low < high:
        matrix, first = divmod(low, rows)
        here = min(high - low, rows - first)
        parts = -(-here // most)
        for part in range(parts):
            begin, end = here * part // parts, here * (part + 1) // parts
            yield MatrixRows(matrix, first + begin, end - begin)
        low += here
