"""Orders whose prices learn from programs that are timed (**Order search**): a counted number of tries, reproducible.

A program tells how long each of its regions takes. From then on their prices are right, those of others are corrected
by the errors seen (:mod:`compiler.backend.order.region_knowledge`), and the search goes on from the best order. Its cut
into regions changes with the prices, too. So each program is the one that should take least for all that is known.
"""

from collections.abc import Callable, Sequence

from compiler import ir
from compiler.backend.lowered_model import LoweredModel
from compiler.backend.objects.desk import Desk
from compiler.backend.objects.object_store import ObjectStore
from compiler.backend.options import Options
from compiler.backend.order.regions import RunStudy
from compiler.backend.pipeline import settle
from compiler.measured_order import MeasuredBuild, Told
from compiler.order.annealing import annealed
from compiler.order.graph import Order
from compiler.order.orders import has_choice
from hw.contract.params import SocParams
from hw.image import Image

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
    model = LoweredModel.of(graph, params, options)
    study = model.study_for_programs()
    with Desk(jobs, store) as desk:
        orders, reports = model.search(study)
        built = settle(model, desk, study, orders, reports)
        took = time_layers(built.image)
        best = MeasuredBuild(built.image, built.report, sum(took), sum(took), 1)
        tell = told or (lambda tried, cycles: None)
        tell(1, best.cycles)
        if len(study.runs) != 1 or not has_choice(study.runs[0].operators):
            return best
        timing, (order,), tried = _Timing(study.runs[0], seed), orders, 1
        timing.learn(order, took)
        while tried < PROGRAMS and (candidate := timing.next(order)) is not None:
            built = settle(model, desk, study, (candidate,), reports)
            took = time_layers(built.image)
            timing.learn(candidate, took)
            tried += 1
            if sum(took) < best.cycles:
                best, order = best._replace(image=built.image, report=built.report, cycles=sum(took)), candidate
            tell(tried, best.cycles)
        return best._replace(tried=tried)


class _Timing:
    """Finds orders of ``run`` that have not been timed, by what those tell that have."""

    def __init__(self, run: RunStudy, seed: int) -> None:
        self._run, self._seed, self._searches = run, seed, 0
        self._programs: set[tuple[tuple[int, ...], ...]] = set()

    def learn(self, order: Order, took: Sequence[float]) -> None:
        """Learn that the program with its layers in ``order`` took so many cycles for each step."""
        self._programs.add(tuple(self._run.price.groups(order)))
        self._run.price.learn(order, took)

    def next(self, order: Order) -> Order | None:
        """Return the order whose program should take least, of those near ``order``; None if all found have been
        timed."""
        for hope in _HOPES:
            self._run.price.hope(hope)
            found = annealed(self._run.operators, self._run.price, order, _TRIES, self._seed + self._searches)
            self._searches += 1
            if tuple(self._run.price.groups(found)) not in self._programs:
                return found
        return None
