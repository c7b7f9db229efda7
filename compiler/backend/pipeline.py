"""The back end, pass by pass: from a quantised graph to an image."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from compiler import ir
from compiler.backend.layers.layer import Layer
from compiler.backend.layers.verify import verify_layers
from compiler.backend.length_plan import LengthPlan
from compiler.backend.link.linker import link
from compiler.backend.memory.budget import Lv2Budget
from compiler.backend.memory.place import place, place_alike
from compiler.backend.memory.place_planned import memory_plan, place_planned
from compiler.backend.memory.tensor_placement import TensorPlacement
from compiler.backend.memory.verify import verify_placement
from compiler.backend.objects.desk import Desk, NoRegions
from compiler.backend.objects.layer_code import LayerCode
from compiler.backend.objects.object_store import ObjectStore
from compiler.backend.options import Options
from compiler.backend.order.region_beam import QUICK, WIDE
from compiler.backend.order.regions import ChooseOrder, order_and_join
from compiler.backend.preempt.points import PointLimits
from compiler.backend.prepare import prepared
from compiler.backend.report import CompileReport, compile_report
from compiler.backend.split.choose import cuts_that_pay, with_cuts
from compiler.order.report import OrderReport
from compiler.plan.plan import VERSION, Plan, StepPlan
from compiler.plan.plan_error import OtherJobsError, PlanError
from compiler.plan.rewrites import ImageCut, Rewrite
from compiler.plan.steps import joined, layer_names, step_plans, without_orders
from compiler.plan.structure import structure_of
from hw.contract.image import Image
from hw.contract.params import SocParams

#: DRAM words of one load of a prologue. A pause that is withdrawn repeats what has not landed of up to four of them;
#: shorter ones cost ResNet-50 more than all its points do (256 words: 0.13 %, 1024 words: 0.02 %).
_LONGEST_LOAD = 1024


def build(
    graph: ir.Graph, params: SocParams, options: Options | None = None, *, choose_order: ChooseOrder | None = None,
    desk: Desk | None = None, jobs: int | None = None, store: ObjectStore | None = None,
) -> tuple[Image, CompileReport]:  # fmt: skip
    """Compile ``graph`` for hardware with ``params``; return the image and a report. ``choose_order`` gives another
    order of layers than the search has found, to measure orders. Layers are compiled at ``desk`` (None: at one with
    ``jobs`` and ``store``, which ends with the compilation, see :class:`compiler.backend.objects.desk.Desk`).

    Raises :class:`compiler.ir.CompileError` naming the operator, size and limit where the model cannot fit.
    """
    with _uncollected(), nullcontext(desk) if desk else Desk(jobs, store) as at:
        made = _build(graph, params, options or Options(), choose_order, at, None)
        return made.image, made.report


def build_planned(
    graph: ir.Graph, params: SocParams, options: Options, plan: LengthPlan | None, desk: Desk
) -> tuple[Image, LengthPlan]:  # fmt: skip
    """As :func:`build`, but with the decisions that were made, or by those of ``plan``. Raises :class:`PlanError` if
    the plan is for another model, or a length for which it does not do."""
    if options.observe or options.placed:
        raise ir.CompileError(f"model {graph.name!r}: observed and placed models have no plan for other lengths")
    with _uncollected():
        made = _build(graph, params, options, None, desk, plan)
        return made.image, made.plan


def emit(graph: ir.Graph, plan: Plan, desk: Desk) -> Image:
    """Return the image of ``graph`` by ``plan``: nothing else is decided. Raises :class:`PlanError` if the plan is for
    another model, or cannot be carried out."""
    if plan.structure != structure_of(graph):
        raise PlanError(f"model {graph.name!r}: the plan is for another model, {plan.model!r}")
    plan.options.check(graph.name, plan.params)
    with _uncollected():
        try:
            return _emitted(graph, plan, desk)
        except PlanError:
            raise
        except ir.CompileError as error:
            raise PlanError(f"model {graph.name!r}: the plan cannot be carried out: {error}") from error


def _emitted(graph: ir.Graph, plan: Plan, desk: Desk) -> Image:
    params, options = plan.params, plan.options
    graph = with_cuts(graph, [one for one in plan.rewrites if isinstance(one, ImageCut)])
    made = prepared(graph, params, options, plan.rewrites)
    graph, names = made.graph, layer_names(made.layers)
    if names != plan.layers:
        raise PlanError(f"model {graph.name!r}: its layers are not those of the plan")
    steps = joined(graph, made.layers, plan.steps)
    verify_layers(graph, steps)
    budget, placement = place_planned(graph, steps, params, options, plan.memory)
    return _linked(graph, steps, budget, placement, params, options, desk, plan.steps)[0]


@contextmanager
def _uncollected() -> Iterator[None]:
    """No search for cycles of objects: a compilation keeps nearly all that it makes until its end, and to look through
    it again and again takes a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@dataclass(frozen=True)
class _Built:
    image: Image
    report: CompileReport
    plan: LengthPlan


def _build(
    graph: ir.Graph, params: SocParams, options: Options, choose_order: ChooseOrder | None, desk: Desk,
    plan: LengthPlan | None,
) -> _Built:  # fmt: skip
    options.check(graph.name, params)
    structure, cuts = structure_of(graph), cuts_that_pay(graph, params, options)
    made = prepared(with_cuts(graph, cuts), params, options)
    graph, layers = made.graph, made.layers
    blank = _Blank(structure, params, options, (*cuts, *made.rewrites))
    if plan is not None:
        try:
            steps = plan.joined(graph, layers)
            verify_layers(graph, steps)
            return _compiled(graph, layers, steps, blank, [], desk, plan)
        except OtherJobsError:
            raise
        except (NoRegions, ir.CompileError) as error:
            raise PlanError(f"model {graph.name!r}: {error}") from error
    if not options.regions or options.observe or options.placed:
        return _compiled(graph, layers, layers, blank, [], desk)
    lv2, limits = options.lv2_bytes(params), options.search_limits
    width = WIDE if options.order == "timed" else QUICK
    ordered = order_and_join(graph, layers, params, options.engines, limits, choose_order, lv2, width)
    while True:
        verify_layers(graph, ordered.layers)
        try:
            return _compiled(graph, layers, ordered.layers, blank, ordered.reports, desk)
        except NoRegions as no:
            for region in no.regions:
                ordered.forbid(region)


@dataclass(frozen=True)
class _Blank:
    """Holds what is known of a plan before layers are ordered."""

    structure: str
    params: SocParams
    options: Options
    rewrites: tuple[Rewrite, ...]


def _compiled(
    graph: ir.Graph, layers: Sequence[Layer], steps: list[Layer], blank: _Blank, orders: Sequence[OrderReport],
    desk: Desk, plan: LengthPlan | None = None,
) -> _Built:  # fmt: skip
    """Return the image of ``layers``, which have become ``steps``. Raises :class:`NoRegions` if some of these should be
    several, :class:`PlanError` if ``plan`` does not do."""
    params, options = blank.params, blank.options
    if plan is None:
        budget, placement = place(graph, steps, params, options)
    else:
        budget, placement = plan.budget, place_alike(graph, steps, params, plan.placement)
    given = plan.steps if plan else None
    image, codes = _linked(graph, steps, budget, placement, params, options, desk, given)
    made = Plan(
        VERSION, graph.name, blank.structure, params, options, blank.rewrites, layer_names(layers),
        without_orders(step_plans(layers, codes)), memory_plan(budget, placement),
    )  # fmt: skip
    report = compile_report(graph, codes, placement, image.meta, orders, made)
    return _Built(image, report, LengthPlan.of(layers, codes, budget, placement))


def _linked(
    graph: ir.Graph, steps: Sequence[Layer], budget: Lv2Budget, placement: TensorPlacement, params: SocParams,
    options: Options, desk: Desk, given: Sequence[StepPlan] | None,
) -> tuple[Image, list[LayerCode]]:  # fmt: skip
    """Return the image of ``steps``, and their codes; ``given`` is what is decided about each already."""
    verify_placement(graph.name, placement, budget)
    limits = PointLimits.of(options)
    codes = desk.compile(steps, placement, budget, params, limits, given)
    longest_load = _LONGEST_LOAD * params.dram_word if limits else 0
    return link(graph, codes, placement, budget, params, longest_load), codes
