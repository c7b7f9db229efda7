"""The back end, pass by pass: from a quantised graph to a plan, and to an image."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from compiler import ir
from compiler.backend.layers.verify import verify_layers
from compiler.backend.link.linker import link
from compiler.backend.lowered_model import LoweredModel, uncollected
from compiler.backend.memory.budget import Lv2Budget
from compiler.backend.memory.place import place
from compiler.backend.memory.place_planned import memory_plan, place_planned
from compiler.backend.memory.tensor_placement import TensorPlacement
from compiler.backend.memory.verify import verify_placement
from compiler.backend.objects.desk import Desk
from compiler.backend.objects.layer_code import LayerCode
from compiler.backend.objects.object_store import ObjectStore
from compiler.backend.options import RUN, Options
from compiler.backend.order.regions import Orders, Study
from compiler.backend.preempt.points import PointLimits
from compiler.backend.report import CompileReport, compile_report
from compiler.order.report import OrderReport
from compiler.plan.plan import VERSION, Plan
from compiler.plan.plan_error import PlanError
from compiler.plan.steps import joined, layer_names, step_plans, without_orders
from hw.contract.params import SocParams
from hw.image import Image

#: DRAM words of one load of a prologue. A pause that is withdrawn repeats what has not landed of up to four of them;
#: shorter ones cost ResNet-50 more than all its points do (256 words: 0.13 %, 1024 words: 0.02 %).
_LONGEST_LOAD = 1024


@dataclass(frozen=True)
class Build:
    """Holds the image of ``model`` and a report, and what other lengths are compiled by: ``codes`` and
    ``placement``."""

    image: Image
    report: CompileReport
    model: LoweredModel
    codes: list[LayerCode]
    placement: TensorPlacement


def build(
    graph: ir.Graph, params: SocParams, options: Options | None = None, *, desk: Desk | None = None,
    jobs: int | None = None, store: ObjectStore | None = None,
) -> tuple[Image, CompileReport]:  # fmt: skip
    """Compile ``graph`` for hardware with ``params``; return the image and a report. Layers are compiled at ``desk``
    (None: at one with ``jobs`` and ``store``, which ends with the compilation, see
    :class:`compiler.backend.objects.desk.Desk`).

    Raises :class:`compiler.ir.CompileError` naming the operator, size and limit where the model cannot fit.
    """
    with nullcontext(desk) if desk else Desk(jobs, store) as at:
        made = build_lowered(LoweredModel.of(graph, params, options or Options()), at)
        return made.image, made.report


def build_lowered(model: LoweredModel, desk: Desk) -> Build:
    """Return the image of ``model`` with its layers in the order found by price. Raises
    :class:`compiler.ir.CompileError`."""
    if model.options.order in RUN:
        raise ir.CompileError(
            f"model {model.graph.name!r}: order {model.options.order!r} is found by programs that run, and nothing "
            "runs them here: choose another order"
        )
    study = model.study()
    return settle(model, desk, study, *model.search(study))


@uncollected()
def settle(
    model: LoweredModel, desk: Desk, study: Study, orders: Orders, reports: Sequence[OrderReport] = ()
) -> Build:  # fmt: skip
    """Return the image of ``model`` with its layers in ``orders``, joined as ``study`` says, which learns what cannot
    be joined. ``reports`` say how the orders were found. Raises
    :class:`compiler.ir.CompileError`."""
    graph, params, options = model.graph, model.params, model.options
    while True:
        steps = study.joined(orders)
        verify_layers(graph, steps)
        budget, placement = place(graph, steps, params, options)
        verify_placement(graph.name, placement, budget)
        codes, refused = desk.compile(steps, placement, budget, params, PointLimits.of(options))
        if not refused:
            break
        for region in refused:
            study.forbid(region)
    image = _linked(model, codes, placement, budget)
    plan = Plan(
        VERSION, graph.name, model.structure, params, options, model.rewrites, layer_names(model.layers),
        without_orders(step_plans(model.layers, codes)), memory_plan(budget, placement),
    )  # fmt: skip
    report = compile_report(graph, codes, placement, image.meta, reports, plan)
    return Build(image, report, model, codes, placement)


def emit(graph: ir.Graph, plan: Plan, desk: Desk) -> Image:
    """Return the image of ``graph`` by ``plan``: nothing else is decided. Raises :class:`PlanError` if the plan is for
    another model, or cannot be carried out."""
    try:
        return emit_lowered(LoweredModel.planned(graph, plan), plan, desk)
    except PlanError:
        raise
    except ir.CompileError as error:
        raise PlanError(f"model {graph.name!r}: the plan cannot be carried out: {error}") from error


@uncollected()
def emit_lowered(model: LoweredModel, plan: Plan, desk: Desk, beneath: bytes = b"") -> Image:
    """Return the image of ``model`` by ``plan``, in which constants are written over those of ``beneath``. Raises
    :class:`compiler.ir.CompileError` if the plan cannot be carried out."""
    graph, params, options = model.graph, model.params, model.options
    steps = joined(graph, model.layers, plan.steps)
    verify_layers(graph, steps)
    budget, placement = place_planned(graph, steps, params, options, plan.memory, beneath)
    verify_placement(graph.name, placement, budget)
    codes, _ = desk.compile(steps, placement, budget, params, PointLimits.of(options), plan.steps)
    return _linked(model, codes, placement, budget)


def _linked(model: LoweredModel, codes: Sequence[LayerCode], placement: TensorPlacement, budget: Lv2Budget) -> Image:
    longest_load = _LONGEST_LOAD * model.params.dram_word if PointLimits.of(model.options) else 0
    return link(model.graph, codes, placement, budget, model.params, longest_load)
