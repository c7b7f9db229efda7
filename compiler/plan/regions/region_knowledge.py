"""What programs that were timed tell about regions: how long these take, and by how much prices of others are wrong.

The price of a region is right to a few percent, and a search for the lowest price ends where the errors are in its
favour. A region that ran takes as long as it took. The price of any other is corrected by a line through the errors of
those that ran (least squares, drawn to zero as long as few have run).
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

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
        self._rows: list[npt.NDArray[np.float64]] = []
        self._errors: list[float] = []
        self._line: npt.NDArray[np.float64] | None = None
        self._left = 0.0

    def learn(self, rules: RegionRules, members: Members, price: float, took: float) -> None:
        """A region, or a layer alone, whose price is ``price`` took ``took`` cycles."""
        if len(members) > 1 and members not in self._took:
            self._rows.append(_columns(rules, members, price))
            self._errors.append((took - price) / _UNIT)
            rows = np.array(self._rows)
            drawn = np.diag([_DRAWN[0], *[_DRAWN[1]] * (rows.shape[1] - 1)])
            errors = np.array(self._errors)
            self._line = np.linalg.solve(rows.T @ rows + drawn, rows.T @ errors)
            self._left = float(np.sqrt(np.mean((errors - rows @ self._line) ** 2)))
        self._took[members] = took

    def took(self, members: Members) -> float | None:
        """Return the cycles of a region that ran."""
        return self._took.get(members)

    def believed(self, rules: RegionRules, members: Members, price: float) -> float:
        """Return the cycles that a region with this price takes, for all that is known."""
        took = self._took.get(members)
        if took is not None:
            return took
        if self._line is None or len(members) == 1 or not 0 < price < np.inf:
            return price
        error = float(_columns(rules, members, price) @ self._line) - self.hope * self._left
        return max(_LEAST * price, price + _UNIT * error)


def _columns(rules: RegionRules, members: Sequence[int], price: float) -> npt.NDArray[np.float64]:
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
    work = np.array([price, sums, depthwise, dense, maxima]) / _UNIT
    return np.array([1.0, *work, len(members) / 4])
