"""Orders of layers that are found by programs that run (**Order search**): each makes plans and images of a study.

:func:`build_timed` takes a counted number of programs, so it is reproducible. A program tells how long each of its
regions takes. From then on their prices are right, those of others are corrected by the errors seen
(:mod:`compiler.plan.regions.region_knowledge`), and the search goes on from the best order. Its cut into regions
changes with the prices, too. So each program is the one that should take least for all that is known.
:func:`build_measured` measures orders near the best one until its time is over.
"""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from compiler import ir
from compiler.emission.objects.desk import Desk
from compiler.pipeline import blank, emit_lowered, lowered, search, settle
from compiler.plan.options import Options
from compiler.plan.order.annealing import annealed, random_move
from compiler.plan.order.graph import Order, OrderGraph
from compiler.plan.order.greedy import greedy_order
from compiler.plan.order.orders import has_choice
from compiler.plan.order.report import OrderReport
from compiler.plan.plan import Plan
from compiler.plan.regions.regions import Orders, RunStudy, Study
from hw.contract.params import SocParams
from hw.image import Image

Measure = Callable[[Image], float]  #: cycles of an inference
TimeLayers = Callable[[Image], Sequence[float]]  #: cycles of each layer of an image, of one inference
Told = Callable[[int, float], None]  #: called with the number of programs measured and the fewest cycles
PROGRAMS = 10  #: that are compiled and timed, at most
_TRIES = 500  #: orders that are priced between two programs
#: By how many times their mean error regions are believed to be better that have not run yet: nothing at first, more
#: where a search finds no new program, until there is nothing more to find.
_HOPES = (0.0, 0.25, 0.5, 1.0)
_LONGEST_STEP = 3  #: moves from the best order to the next that is measured
_STALE = 100  #: steps to known orders after which there is nothing more to find


@dataclass(frozen=True)
class MeasuredBuild:
    """The program with the fewest cycles. ``priced``: cycles of the one that the search by price chose; ``tried``: how
    many were compiled and measured; ``orders``: what the search by price did."""

    image: Image
    plan: Plan
    cycles: float
    priced: float
    tried: int
    orders: tuple[OrderReport, ...]


class _Programs:
    """Makes the programs of ``graph``, the first in the orders found by price, and keeps the best. Raises
    :class:`compiler.ir.CompileError` if layers keep their order."""

    def __init__(self, graph: ir.Graph, params: SocParams, options: Options, desk: Desk, told: Told | None) -> None:
        if options.placed or options.observe or not options.regions:
            raise ir.CompileError(
                f"model {graph.name!r}: order {options.order!r} compares regions of programs: leave placed, observe "
                "and no-regions out"
            )
        self._plan, self._desk, self._told = blank(graph, params, options), desk, told
        self._model = lowered(graph, self._plan)
        self.study = self._model.study()
        self.first, self._reports = search(self.study, options)
        self.tried = 0
        self.best: MeasuredBuild | None = None

    def made(self, study: Study, orders: Orders) -> tuple[Plan, Image]:
        """Return the program of ``orders``, as ``study`` joins them."""
        plan = settle(self._plan, self._model, self._desk, study, orders).without_orders()
        return plan, emit_lowered(plan, self._model, self._desk)

    def took(self, program: tuple[Plan, Image], cycles: float) -> bool:
        """Note that ``program`` took so many cycles; return whether it is the best so far."""
        self.tried += 1
        better = self.best is None or cycles < self.best.cycles
        if better:
            priced = self.best.priced if self.best else cycles
            self.best = MeasuredBuild(program[1], program[0], cycles, priced, self.tried, self._reports)
        if self._told and self.best:
            self._told(self.tried, self.best.cycles)
        return better

    def found(self) -> MeasuredBuild:
        """Return the best program."""
        assert self.best is not None
        return replace(self.best, tried=self.tried)


def build_timed(
    graph: ir.Graph, params: SocParams, options: Options, desk: Desk, time_layers: TimeLayers,
    told: Told | None = None, *, seed: int = 0,
) -> MeasuredBuild:  # fmt: skip
    """``graph`` compiled in the order found by price, and then up to ``PROGRAMS`` in all, each by what those before it
    have told; the one wins whose layers take least together, by ``time_layers``. A model whose layers have but one
    order, or with steps on the CPU, is compiled once. Raises :class:`compiler.ir.CompileError`."""
    programs = _Programs(graph, params, options, desk, told)
    study, orders = programs.study, programs.first
    program = programs.made(study, orders)
    took = time_layers(program[1])
    programs.took(program, sum(took))
    if len(study.parts) != 1 or not study.runs or not has_choice(study.runs[0].operators):
        return programs.found()
    timing, (order,) = _Timing(study.runs[0], seed), orders
    timing.learn(order, took)
    while programs.tried < PROGRAMS and (candidate := timing.next(order)) is not None:
        program = programs.made(study, (candidate,))
        took = time_layers(program[1])
        timing.learn(candidate, took)
        order = candidate if programs.took(program, sum(took)) else order
    return programs.found()


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


def build_measured(
    graph: ir.Graph, params: SocParams, options: Options, desk: Desk, measure: Measure, seconds: float,
    told: Told | None = None, *, seed: int = 0,
) -> MeasuredBuild:  # fmt: skip
    """``graph`` compiled in the order found by price, in the greedy and in the source order, then in orders near the
    best of them, until ``seconds`` have passed; the one wins that ``measure`` says takes least. One compilation may
    end late. Raises :class:`compiler.ir.CompileError`."""
    ends, rng = time.monotonic() + seconds, random.Random(seed)
    programs = _Programs(graph, params, options, desk, told)
    study, orders = programs.study, programs.first
    runs, known = [run.operators for run in study.runs], {orders}
    program = programs.made(study, orders)
    programs.took(program, measure(program[1]))
    firsts = [tuple(map(greedy_order, runs)), tuple(one.source for one in runs)]
    stale = 0
    while time.monotonic() < ends and stale < _STALE:
        candidate = firsts.pop(0) if firsts else _near(runs, orders, rng)
        stale += 1
        if candidate in known:
            continue
        program = programs.made(study.afresh(), candidate)
        known.add(candidate)
        orders = candidate if programs.took(program, measure(program[1])) else orders
        stale = 0
    return programs.found()


def _near(runs: Sequence[OrderGraph], orders: Orders, rng: random.Random) -> Orders:
    """Return ``orders`` with a few operators moved."""
    moved = list(orders)
    for _ in range(rng.randint(1, _LONGEST_STEP)):
        run = rng.randrange(len(moved)) if moved else 0
        if moved:
            moved[run] = random_move(runs[run], moved[run], rng)
    return tuple(moved)
