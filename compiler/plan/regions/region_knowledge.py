"""What programs that were timed tell about regions: how long these take, and by how much prices of others are wrong.

The price of a region is right to a few percent, and a search for the lowest price ends where the errors are in its
favour. A region that ran takes as long as it took. The price of any other is corrected by a line through the errors of
those that ran (least squares, drawn to zero as long as few have run). Sums are those of :func:`math.fsum`, the same on
all processors, as those of a BLAS are not: what is compiled must not depend on where.
"""

import math
from collections.abc import Sequence

from compiler.plan.layers.layer import ConvLayer, EltwiseLayer, WindowLayer
from compiler.plan.regions.region_rules import RegionRules
from compiler.plan.regions.units import MAC, VEC

_UNIT = 10_000.0  #: cycles, so that all columns are of the order of one
_DRAWN = (0.01, 0.05)  #: to zero: the constant, and all other columns
_LEAST = 0.8  #: of its price that a region may be believed to take

Members = tuple[int, ...]  #: numbers of the layers of a region, in their order


class RegionKnowledge:
    """Cycles of regions that ran. ``forbidden``: layers that cannot be one region; ``only_shared``: that cannot unless
    all engines share each. ``hope``: how much better than expected a region is believed to be that has not run, in
    times of the mean error that is left."""

    def __init__(self) -> None:
        self.hope = 0.0
        self.forbidden: list[frozenset[int]] = []
        self.only_shared: list[frozenset[int]] = []
        self._took: dict[Members, float] = {}
        self._rows: list[list[float]] = []
        self._errors: list[float] = []
        self._line: list[float] | None = None
        self._left = 0.0

    def learn(self, rules: RegionRules, members: Members, price: float, took: float) -> None:
        """A region, or a layer alone, whose price is ``price`` took ``took`` cycles."""
        if len(members) > 1 and members not in self._took:
            self._rows.append(_columns(rules, members, price))
            self._errors.append((took - price) / _UNIT)
            columns, errors = list(zip(*self._rows, strict=True)), self._errors
            squares = [[_dot(a, b) for b in columns] for a in columns]
            for place, row in enumerate(squares):
                row[place] += _DRAWN[min(place, 1)]
            self._line = line = _solved(squares, [_dot(column, errors) for column in columns])
            left = [(error - _dot(row, line)) ** 2 for row, error in zip(self._rows, errors, strict=True)]
            self._left = math.sqrt(math.fsum(left) / len(left))
        self._took[members] = took

    def took(self, members: Members) -> float | None:
        """Return the cycles of a region that ran."""
        return self._took.get(members)

    def believed(self, rules: RegionRules, members: Members, price: float) -> float:
        """Return the cycles that a region with this price takes, for all that is known."""
        took = self._took.get(members)
        if took is not None:
            return took
        if self._line is None or len(members) == 1 or not 0 < price < math.inf:
            return price
        error = _dot(_columns(rules, members, price), self._line) - self.hope * self._left
        return max(_LEAST * price, price + _UNIT * error)


def _columns(rules: RegionRules, members: Sequence[int], price: float) -> list[float]:
    """Return what errors of prices are put down to: the price, the number of layers, and the work of each kind of
    them."""
    depthwise = dense = sums = maxima = 0.0
    for number in members:
        layer, busy = rules.layers[number], rules.times[number].busy
        if isinstance(layer, ConvLayer) and layer.depthwise:
            depthwise += busy[MAC]
        elif isinstance(layer, ConvLayer):
            dense += busy[MAC]
        elif isinstance(layer, EltwiseLayer):
            sums += busy[VEC]
        elif isinstance(layer, WindowLayer):
            maxima += busy[VEC]
    work = [cycles / _UNIT for cycles in (price, sums, depthwise, dense, maxima)]
    return [1.0, *work, len(members) / 4]


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def _solved(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Return what a positive definite ``matrix`` makes ``right`` of, by elimination, which needs no other pivots."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for place, pivot in enumerate(rows):
        for row in rows[place + 1 :]:
            factor = row[place] / pivot[place]
            row[place:] = [x - factor * y for x, y in zip(row[place:], pivot[place:], strict=True)]
    found: list[float] = []
    for place, row in reversed(list(enumerate(rows))):
        behind = math.fsum(x * y for x, y in zip(row[place + 1 : -1], found, strict=True))
        found.insert(0, (row[-1] - behind) / row[place])
    return found
