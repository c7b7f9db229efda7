"""Orders whose prices learn from programs that are timed (**Order search**): a counted number of tries, reproducible.

A program tells how long each of its regions takes. From then on their prices are right, those of others are corrected
by the errors seen (:mod:`compiler.backend.order.region_knowledge`), and the search goes on from the best order. Its cut
into regions changes with the prices, too. So each program is the one that should take least for all that is known.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from compiler import ir
from compiler.backend.objects.desk import Desk
from compiler.backend.objects.object_store import ObjectStore
from compiler.backend.options import Options
from compiler.backend.order.region_price import RegionPrice
from compiler.backend.pipeline import build
from compiler.backend.report import CompileReport
from compiler.measured_order import MeasuredBuild, Told
from compiler.order.annealing import annealed
from compiler.order.graph import Order, OrderGraph
from compiler.order.orders import has_choice
from hw.contract.image import Image
from hw.contract.params import SocParams

TimeLayers = Callable[[Image], Sequence[float]]  #: cycles of each layer of an image, of one inference
PROGRAMS = 10  #: that are compiled and timed, at most
_TRIES = 500  #: orders that are priced between two programs
#: By how many times their mean error regions are believed to be better that have not run yet: nothing at first, more
#: where a search finds no new program, until there is nothing more to find.
_HOPES = (0.0, 0.25, 0.5, 1.0)


def build_timed(
    graph: ir.Graph, params: SocParams, options: Options, time_layers: TimeLayers, told: Told | None = None,
    *, seed: int = 0, jobs: int | None = None, store: ObjectStore | None = None,
) -> MeasuredBuild:  # fmt: skip
    """``graph`` compiled in the order found by price, and then up to ``PROGRAMS`` in all, each by what those before it
    have told; the one wins whose layers take least together, by ``time_layers``. A model whose layers have but one
    order, or with steps on the CPU, is compiled once. ``jobs``, ``store``: see :class:`Desk`.
    Raises :class:`compiler.ir.CompileError`."""
    with Desk(jobs, store) as desk:
        return _Timing(partial(build, graph, params, desk=desk), options, time_layers, told, seed).run()


class _Timing:
    """Programs of one model, of which the best is kept."""

    def __init__(
        self, compile_in: Callable[..., tuple[Image, CompileReport]], options: Options, time_layers: TimeLayers,
        told: Told | None, seed: int,
    ) -> None:  # fmt: skip
        self._compile_in, self._options, self._time_layers = compile_in, options, time_layers
        self._told, self._seed, self._searches = told, seed, 0
        self._made: list[tuple[OrderGraph, RegionPrice, Order]] = []
        self._programs: set[tuple[tuple[int, ...], ...]] = set()

    def run(self) -> MeasuredBuild:
        """See :func:`build_timed`."""

        def note(operators: OrderGraph, price: RegionPrice, order: Order) -> Order:
            self._made.append((operators, price, order))
            return order

        image, report = self._compile_in(self._options, choose_order=note)
        took = self._time_layers(image)
        best = MeasuredBuild(image, report, sum(took), sum(took), 1)
        self._tell(best)
        if len(self._made) != 1 or not has_choice(self._made[0][0]):
            return best
        operators, price, order = self._made[0]
        self._learn(price, order, took)
        reports, tried = report.orders, 1
        while tried < PROGRAMS and (candidate := self._next(operators, price, order)) is not None:
            image, report = self._compiled(candidate, price)
            _, known, _ = self._made[-1]
            took = self._time_layers(image)
            self._learn(known, candidate, took)
            price.know(known)
            tried += 1
            if sum(took) < best.cycles:
                best, order = best._replace(image=image, report=report, cycles=sum(took)), candidate
            self._tell(best._replace(tried=tried))
        return best._replace(tried=tried, report=replace(best.report, orders=reports))

    def _learn(self, price: RegionPrice, order: Order, took: Sequence[float]) -> None:
        self._programs.add(tuple(price.groups(order)))
        price.learn(order, took)

    def _next(self, operators: OrderGraph, price: RegionPrice, order: Order) -> Order | None:
        """Return the order whose program should take least, of those near ``order``; None if all found have been
        timed."""
        for hope in _HOPES:
            price.hope(hope)
            found = annealed(operators, price, order, _TRIES, self._seed + self._searches)
            self._searches += 1
            if tuple(price.groups(found)) not in self._programs:
                return found
        return None

    def _compiled(self, order: Order, price: RegionPrice) -> tuple[Image, CompileReport]:
        def choose(operators: OrderGraph, new: RegionPrice, _: Order) -> Order:
            new.know(price)
            self._made.append((operators, new, order))
            return order

        return self._compile_in(replace(self._options, order="source"), choose_order=choose)

    def _tell(self, best: MeasuredBuild) -> None:
        if self._told:
            self._told(best.tried, best.cycles)
