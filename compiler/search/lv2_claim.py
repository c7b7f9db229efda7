"""How much LV2 a model claims if nothing says it: the least that costs it little, by the price of plans.

What one model claims, another cannot have, and models whose windows overlap take turns. So a model is planned for parts
of LV2, and claims the smallest whose plan costs at most ``CLAIM_LOSS`` more than the plan for all. Nothing is linked or
run.

A plan has two prices. That of its order is had before anything is cut into tiles, and most parts that are too small are
refused by it. It knows what is spilled, but not what hides it, and so it refuses only what it makes much dearer. That
of its jobs as they are scheduled (:mod:`compiler.emission.link.job_schedule`) knows tiles, jobs and how far loads run
ahead, and decides.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from compiler import ir
from compiler.emission.objects.desk import Desk
from compiler.pipeline import blank, lowered, no_worse, planned_cycles, searched, settled
from compiler.plan.lowered_model import LoweredModel
from compiler.plan.options import ALL_LV2, ORDERS_BY_RUNS, Options
from compiler.plan.order.report import OrderReport
from compiler.plan.plan import Plan
from compiler.plan.regions.regions import Orders, Study
from compiler.plan.regions.state_loads import late_loads
from compiler.search.spill import LEAST_STEP, least_without_spill
from hw.contract.params import KIB, SocParams

#: Of the cycles with all of LV2, what a smaller part may cost more.
CLAIM_LOSS = 0.02
#: What it may cost by the price of its order, which takes no spill to be hidden: of ResNet-50 on ``base`` a part that
#: cost 1.1 % cost 5.7 % by it.
_ORDER_LOSS = 4 * CLAIM_LOSS
#: What it may cost by the schedule of jobs, which was seen to leave out up to two fifths of what a part costs.
_JOBS_LOSS = 0.6 * CLAIM_LOSS
#: Cycles that this schedule leaves out, too, where it says that a part costs anything: of DS-CNN, which takes 12,457 on
#: ``base``, a part that should have cost 122 cost 420. Larger models do not notice.
_UNSEEN = 300
_HIGHER = 64 * KIB  #: above the least LV2 of tensors, up to which it is tried whether tiles fit
#: Parts of LV2 that are tried.
_PARTS = tuple(Fraction(numerator, 64) for numerator in (56, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2))


@dataclass(frozen=True)
class Lv2Claim:
    """Says that a model claims ``size`` bytes of LV2, and the share of its cycles that this costs by the schedule of
    jobs, against all of LV2."""

    size: int
    loss: float


@dataclass(frozen=True)
class ClaimedPlan:
    """Holds a complete plan, what its searches for an order did, and what it claims."""

    plan: Plan
    orders: tuple[OrderReport, ...]
    claim: Lv2Claim


def claim_that_pays(graph: ir.Graph, params: SocParams, options: Options, desk: Desk) -> ClaimedPlan:
    """Return the plan of ``graph`` in the least LV2 that pays, with an order found by price if ``options`` leave that
    to programs that run. Raises :class:`compiler.ir.CompileError` if all of LV2 is too small."""
    if options.order in ORDERS_BY_RUNS:
        options = replace(options, order="search")
    if options.for_memory:
        return _least(graph, params, options, desk)
    parts = _Parts(graph, params, options, desk)
    last = _last_that_passes(len(_PARTS), parts.pays)
    return parts.found(last)


def with_claim(graph: ir.Graph, params: SocParams, options: Options, desk: Desk) -> tuple[Options, Lv2Claim | None]:
    """Return ``options`` that say how much LV2 ``graph`` may use, and the claim that was chosen if they left that open.
    Raises :class:`compiler.ir.CompileError`."""
    if options.lv2_limit is not None:
        return options, None
    found = claim_that_pays(graph, params, options, desk)
    return replace(options, lv2_limit=found.plan.options.lv2_limit), found.claim


def _least(graph: ir.Graph, params: SocParams, options: Options, desk: Desk) -> ClaimedPlan:
    """Return the plan of ``graph`` in the least LV2 in which nothing is spilled, or in all if there is no such. Tiles
    may need more than tensors do, so the next sizes are tried, too."""
    whole = blank(graph, params, replace(options, lv2_limit=ALL_LV2))
    model = lowered(graph, whole)
    study, orders, reports = searched(whole, model)
    known = settled(whole, model, desk, study, orders)
    steps = late_loads(model.graph, study.joined(orders))
    size = least_without_spill(model.graph, steps, params, whole.options) or params.lv2_bytes
    for limit in range(size, min(params.lv2_bytes, size + _HIGHER), LEAST_STEP):
        plan = blank(graph, params, replace(options, lv2_limit=limit))
        try:
            smaller = lowered(graph, plan)
            study, orders, reports = searched(plan, smaller)
            found = settled(plan, smaller, desk, study, orders)
        except ir.CompileError:  # tiles or weights do not fit
            continue
        if not found.moved:
            loss = _share(found.cycles, known.cycles)
            return ClaimedPlan(found.plan.without_orders(), reports, Lv2Claim(limit, loss))
    return ClaimedPlan(known.plan.without_orders(), reports, Lv2Claim(params.lv2_bytes, 0.0))


def _last_that_passes(count: int, passes: Callable[[int], bool]) -> int:
    """Return the last of so many numbers from 0 that ``passes``, as far as they do so in turn, or -1: most models that
    pass few take long, so the first steps are short."""
    low, high, step = -1, count, 1
    while high - low > 1:
        at = min(low + step, (low + high) // 2)
        if not passes(at):
            high = at
        else:
            low, step = at, 2 * step if low >= 0 else 1
    return low


class _Parts:
    """Holds the plans for parts of LV2 that pay, and that for all of it, -1."""

    def __init__(self, graph: ir.Graph, params: SocParams, options: Options, desk: Desk) -> None:
        self._graph, self._params, self._options, self._desk = graph, params, options, desk
        whole = self._ordered(ALL_LV2)
        self._order_price, (plan, self._cycles) = whole.price, whole.settled(desk)
        self._plans = {-1: ClaimedPlan(plan, whole.reports, Lv2Claim(params.lv2_bytes, 0.0))}

    def found(self, part: int) -> ClaimedPlan:
        """Return the plan for a part that pays."""
        return self._plans[part]

    def pays(self, part: int) -> bool:
        """Return whether the plan for a part costs little more than that for all."""
        size = int(_PARTS[part] * self._params.lv2_bytes) // self._params.lv1_word * self._params.lv1_word
        try:
            ordered = self._ordered(size)
            if ordered.price > (1 + _ORDER_LOSS) * self._order_price:
                return False
            plan, cycles = ordered.settled(self._desk)
        except ir.CompileError:  # tiles or weights do not fit
            return False
        loss = max(0.0, _share(cycles, self._cycles))
        self._plans[part] = ClaimedPlan(plan, ordered.reports, Lv2Claim(size, loss))
        return cycles <= self._cycles or cycles + _UNSEEN <= (1 + _JOBS_LOSS) * self._cycles

    def _ordered(self, limit: int | str) -> "_Ordered":
        plan = blank(self._graph, self._params, replace(self._options, lv2_limit=limit))
        model = lowered(self._graph, plan)
        return _Ordered(plan, model, *searched(plan, model))


@dataclass(frozen=True)
class _Ordered:
    """Is a model with the order of its layers, before anything is cut into tiles."""

    plan: Plan
    model: LoweredModel
    study: Study
    orders: Orders
    reports: tuple[OrderReport, ...]

    @property
    def price(self) -> float:
        """Return the cycles of the order, 0 if layers keep theirs; to settle it makes regions dearer that cannot be."""
        return self.study.price(self.orders)

    def settled(self, desk: Desk) -> tuple[Plan, float]:
        """Return the complete plan, and what its jobs take as they are scheduled."""
        found = no_worse(self.plan, self.model, desk, self.study, self.orders)
        plan = found.plan.without_orders()
        return plan, planned_cycles(plan, found.model, desk)


def _share(cycles: float, whole: float) -> float:
    return cycles / whole - 1 if whole else 0.0
