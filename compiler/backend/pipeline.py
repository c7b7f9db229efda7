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
from compiler.backend.objects.desk import Desk
from compiler.backend.objects.layer_code import LayerCode
from compiler.backend.objects.object_store import ObjectStore
from compiler.backend.options import Options
from compiler.backend.order.region_beam import QUICK, WIDE
from compiler.backend.order.regions import Orders, Study
from compiler.backend.preempt.points import PointLimits
from compiler.backend.prepare import prepared
from compiler.backend.report import CompileReport, compile_report
from compiler.backend.split.choose import cuts_that_pay, with_cuts
from compiler.order.report import OrderReport
from compiler.plan.plan import VERSION, Plan
from compiler.plan.plan_error import OtherJobsError, PlanError
from compiler.plan.rewrites import ImageCut, Rewrite
from compiler.plan.steps import joined, layer_names, step_plans, without_orders
from compiler.plan.structure import structure_of
from hw.contract.image import Image
from hw.contract.params import SocParams

#: DRAM words of one load of a prologue. A pause that is withdrawn repeats what has not landed of up to four of them;
#: shorter ones cost ResNet-50 more than all its points do (256 words: 0.13 %, 1024 words: 0.02 %).
_LONGEST_LOAD = 1024


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
class Net:
    """Holds what a model is compiled from: ``layers`` of a ``graph`` that ``rewrites`` have made of one with this
    ``structure``, before any is joined to others."""

    graph: ir.Graph
    layers: list[Layer]
    structure: str
    params: SocParams
    options: Options
    rewrites: tuple[Rewrite, ...]

    @classmethod
    @_uncollected()
    def of(cls, graph: ir.Graph, params: SocParams, options: Options) -> "Net":
        """Return the layers of ``graph``, rewritten where that pays. Raises :class:`compiler.ir.CompileError`."""
        options.check(graph.name, params)
        structure, cuts = structure_of(graph), cuts_that_pay(graph, params, options)
        made = prepared(with_cuts(graph, cuts), params, options)
        return cls(made.graph, made.layers, structure, params, options, (*cuts, *made.rewrites))

    @_uncollected()
    def study(self) -> Study | None:
        """Return a study of the layers; None if they keep their order and stand alone."""
        if not self.options.regions or self.options.observe or self.options.placed:
            return None
        lv2 = self.options.lv2_bytes(self.params)
        return Study.of(self.graph, self.layers, self.params, self.options.engines, lv2)

    def study_for_programs(self) -> Study:
        """Return a study of the layers for orders that are compared by programs. Raises
        :class:`compiler.ir.CompileError` if they keep their order."""
        study = self.study()
        if study is None:
            raise ir.CompileError(
                f"model {self.graph.name!r}: order {self.options.order!r} compares regions of programs: leave placed, "
                "observe and no-regions out"
            )
        return study

    @_uncollected()
    def search(self, study: Study) -> tuple[Orders, tuple[OrderReport, ...]]:
        """Return the orders that ``study`` finds by price, and what the searches did."""
        return study.search(self.options.search_limits, WIDE if self.options.order == "timed" else QUICK)


@dataclass(frozen=True)
class Built:
    """Holds the image of a model, its report, and what was decided so that other lengths can be compiled alike."""

    image: Image
    report: CompileReport
    plan: LengthPlan


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
        made = _built(Net.of(graph, params, options or Options()), at)
        return made.image, made.report


def _built(net: Net, desk: Desk) -> Built:
    study = net.study()
    return settle(net, desk, study, *(net.search(study) if study else ()))


@_uncollected()
def settle(
    net: Net, desk: Desk, study: Study | None = None, orders: Orders = (), reports: Sequence[OrderReport] = ()
) -> Built:  # fmt: skip
    """Return the image of ``net`` with its layers in ``orders``, joined as ``study`` says, which learns what cannot be
    joined (None: each alone, as they come). ``reports`` say how the orders were found. Raises
    :class:`compiler.ir.CompileError`."""
    graph, params, options = net.graph, net.params, net.options
    while True:
        steps = study.joined(orders) if study else net.layers
        verify_layers(graph, steps)
        budget, placement = place(graph, steps, params, options)
        verify_placement(graph.name, placement, budget)
        codes, refused = desk.compile(steps, placement, budget, params, PointLimits.of(options))
        if not refused:
            return _linked(net, codes, budget, placement, reports)
        assert study is not None  # it has joined them
        for region in refused:
            study.forbid(region)


def build_planned(
    graph: ir.Graph, params: SocParams, options: Options, plan: LengthPlan | None, desk: Desk
) -> tuple[Image, LengthPlan]:  # fmt: skip
    """As :func:`build`, but with the decisions that were made, or by those of ``plan``. Raises :class:`PlanError` if
    the plan is for another model, or a length for which it does not do."""
    if options.observe or options.placed:
        raise ir.CompileError(f"model {graph.name!r}: observed and placed models have no plan for other lengths")
    net = Net.of(graph, params, options)
    made = _built(net, desk) if plan is None else _planned(net, plan, desk)
    return made.image, made.plan


@_uncollected()
def _planned(net: Net, plan: LengthPlan, desk: Desk) -> Built:
    try:
        steps = plan.joined(net.graph, net.layers)
        verify_layers(net.graph, steps)
        placement = place_alike(net.graph, steps, net.params, plan.placement)
        verify_placement(net.graph.name, placement, plan.budget)
        limits = PointLimits.of(net.options)
        codes, _ = desk.compile(steps, placement, plan.budget, net.params, limits, plan.steps)
        return _linked(net, codes, plan.budget, placement)
    except OtherJobsError:
        raise
    except ir.CompileError as error:
        raise PlanError(f"model {net.graph.name!r}: {error}") from error


def emit(graph: ir.Graph, plan: Plan, desk: Desk) -> Image:
    """Return the image of ``graph`` by ``plan``: nothing else is decided. Raises :class:`PlanError` if the plan is for
    another model, or cannot be carried out."""
    if plan.structure != structure_of(graph):
        raise PlanError(f"model {graph.name!r}: the plan is for another model, {plan.model!r}")
    plan.options.check(graph.name, plan.params)
    try:
        return _emitted(graph, plan, desk)
    except PlanError:
        raise
    except ir.CompileError as error:
        raise PlanError(f"model {graph.name!r}: the plan cannot be carried out: {error}") from error


@_uncollected()
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
    verify_placement(graph.name, placement, budget)
    codes, _ = desk.compile(steps, placement, budget, params, PointLimits.of(options), plan.steps)
    return _image(graph, codes, placement, budget, params, options)


def _linked(
    net: Net, codes: Sequence[LayerCode], budget: Lv2Budget, placement: TensorPlacement,
    reports: Sequence[OrderReport] = (),
) -> Built:  # fmt: skip
    """Return the image of ``net``, whose layers have become ``codes``."""
    graph, params, options = net.graph, net.params, net.options
    image = _image(graph, codes, placement, budget, params, options)
    made = Plan(
        VERSION, graph.name, net.structure, params, options, net.rewrites, layer_names(net.layers),
        without_orders(step_plans(net.layers, codes)), memory_plan(budget, placement),
    )  # fmt: skip
    report = compile_report(graph, codes, placement, image.meta, reports, made)
    return Built(image, report, LengthPlan.of(net.layers, codes, budget, placement))


def _image(
    graph: ir.Graph, codes: Sequence[LayerCode], placement: TensorPlacement, budget: Lv2Budget, params: SocParams,
    options: Options,
) -> Image:  # fmt: skip
    longest_load = _LONGEST_LOAD * params.dram_word if PointLimits.of(options) else 0
    return link(graph, codes, placement, budget, params, longest_load)
