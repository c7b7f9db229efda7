"""Orders of layers that are compiled and measured, instead of priced (**Order search**)."""

import random
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from compiler import ir
from compiler.backend.lowered_model import LoweredModel
from compiler.backend.objects.desk import Desk
from compiler.backend.objects.object_store import ObjectStore
from compiler.backend.options import Options
from compiler.backend.order.regions import Orders
from compiler.backend.pipeline import settle
from compiler.backend.report import CompileReport
from compiler.order.annealing import random_move
from compiler.order.graph import OrderGraph
from compiler.order.greedy import greedy_order
from hw.contract.params import SocParams
from hw.image import Image

Measure = Callable[[Image], float]  #: cycles of an inference
Told = Callable[[int, float], None]  #: called with the number of programs measured and the fewest cycles
_LONGEST_STEP = 3  #: moves from the best order to the next that is tried
_STALE = 100  #: steps to known orders after which there is nothing more to find


class MeasuredBuild(NamedTuple):
    """The program with the fewest cycles. ``priced``: cycles of the one that the search by price chose; ``tried``: how
    many were compiled and measured."""

    image: Image
    report: CompileReport
    cycles: float
    priced: float
    tried: int


def build_measured(
    graph: ir.Graph, params: SocParams, options: Options, measure: Measure, seconds: float, told: Told | None = None,
    *, seed: int = 0, jobs: int | None = None, store: ObjectStore | None = None,
) -> MeasuredBuild:  # fmt: skip
    """``graph`` compiled in the order found by price, in the greedy and in the source order, then in orders near the
    best of them, until ``seconds`` have passed; the one wins that ``measure`` says takes least. One compilation may
    end late. ``jobs``, ``store``: see :class:`Desk`. Raises
    :class:`compiler.ir.CompileError`."""
    ends, rng = time.monotonic() + seconds, random.Random(seed)
    model = LoweredModel.of(graph, params, options)
    study = model.study_for_programs()
    runs = [run.operators for run in study.runs]
    with Desk(jobs, store) as desk:
        orders, reports = model.search(study)
        built = settle(model, desk, study, orders, reports)
        priced = measure(built.image)
        best, known = MeasuredBuild(built.image, built.report, priced, priced, 1), {orders}
        tell = told or (lambda tried, cycles: None)
        tell(1, priced)
        firsts = [tuple(map(greedy_order, runs)), tuple(one.source for one in runs)]
        stale = 0
        while time.monotonic() < ends and stale < _STALE:
            candidate = firsts.pop(0) if firsts else _near(runs, orders, rng)
            stale += 1
            if candidate in known:
                continue
            built = settle(model, desk, study.afresh(), candidate, reports)
            cycles = measure(built.image)
            known.add(candidate)
            if cycles < best.cycles:
                best, orders = best._replace(image=built.image, report=built.report, cycles=cycles), candidate
            stale = 0
            tell(len(known), best.cycles)
        return best._replace(tried=len(known))


def _near(runs: Sequence[OrderGraph], orders: Orders, rng: random.Random) -> Orders:
    """Return ``orders`` with a few operators moved."""
    moved = list(orders)
    for _ in range(rng.randint(1, _LONGEST_STEP)):
        run = rng.randrange(len(moved)) if moved else 0
        if moved:
            moved[run] = random_move(runs[run], moved[run], rng)
    return tuple(moved)
