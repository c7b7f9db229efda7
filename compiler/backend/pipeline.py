"""The back end, pass by pass: from a quantised graph to an image."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from compiler import ir
from compiler.backend.layers.fold import fold_tables
from compiler.backend.layers.fuse import fuse
from compiler.backend.layers.heads import split_heads
from compiler.backend.layers.layer import Layer
from compiler.backend.layers.lower import lower
from compiler.backend.layers.verify import verify_layers
from compiler.backend.length_plan import LengthPlan, PlanError
from compiler.backend.link.linker import link
from compiler.backend.memory.place import place, place_alike
from compiler.backend.memory.verify import verify_placement
from compiler.backend.objects.compile_layers import LayerCompiler, NoRegions
from compiler.backend.objects.object_store import ObjectStore
from compiler.backend.objects.workers import Workers, cpus
from compiler.backend.options import Options
from compiler.backend.order.defer import defer
from compiler.backend.order.regions import ChooseOrder, order_and_join
from compiler.backend.order.side_by_side import side_by_side
from compiler.backend.preempt.points import PointLimits
from compiler.backend.report import CompileReport, compile_report
from compiler.order.report import OrderReport
from hw.contract.image import Image
from hw.contract.params import SocParams

#: DRAM words of one load of a prologue. A pause that is withdrawn repeats what has not landed of up to four of them;
#: shorter ones cost ResNet-50 more than all its points do (256 words: 0.13 %, 1024 words: 0.02 %).
_LONGEST_LOAD = 1024


def build(
    graph: ir.Graph, params: SocParams, options: Options | None = None, *, choose_order: ChooseOrder | None = None,
    jobs: int | None = None, store: ObjectStore | None = None,
) -> tuple[Image, CompileReport]:  # fmt: skip
    """Compile ``graph`` for hardware with ``params``; returns the image and a report. ``choose_order``: gives another
    order of layers than the search has found, to measure orders. ``jobs``: processes that share the work where there is
    much of it (None: as many as there are CPUs); the image does not depend on it. ``store``: where layers are found
    that were compiled before, and others kept (None: nowhere).

    Raises :class:`compiler.ir.CompileError` naming the operator, size and limit where the model cannot fit.
    """
    if jobs is not None and jobs < 1:
        raise ir.CompileError(f"model {graph.name!r}: jobs must be at least 1, not {jobs}")
    with _uncollected(), Workers(jobs or cpus()) as workers:
        made = _build(graph, options or Options(), choose_order, LayerCompiler(params, workers, store), None)
        return made.image, made.report


def build_planned(
    graph: ir.Graph, params: SocParams, options: Options, plan: LengthPlan | None = None, *,
    jobs: int | None = None, store: ObjectStore | None = None,
) -> tuple[Image, LengthPlan]:  # fmt: skip
    """As :func:`build`, but with the decisions that were made, or by those of ``plan``. Raises :class:`PlanError` if
    the plan is for another model, or a length for which it does not do."""
    if options.observe or options.placed:
        raise ir.CompileError(f"model {graph.name!r}: observed and placed models have no plan for other lengths")
    with _uncollected(), Workers(jobs or cpus()) as workers:
        made = _build(graph, options, None, LayerCompiler(params, workers, store), plan)
        return made.image, made.plan


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
    graph: ir.Graph, options: Options, choose_order: ChooseOrder | None, compiler: LayerCompiler,
    plan: LengthPlan | None,
) -> _Built:  # fmt: skip
    params = compiler.params
    options.check(graph.name, params)
    graph = replace(graph, tensors=dict(graph.tensors))  # lowering adds some

    if not options.observe:
        graph = split_heads(graph, params)
    layers = lower(graph, params)
    verify_layers(graph, layers)
    if not options.observe:  # an observer looks at every operator's own result
        layers = fold_tables(graph, fuse(graph, layers, placed=options.placed))
        verify_layers(graph, layers)
    # Layers that wait for their reader save memory and cost what could run side by side.
    layers = side_by_side(graph, layers, params, options.engines) if options.placed else defer(graph, layers)
    verify_layers(graph, layers)
    if plan is not None:
        try:
            steps = plan.joined(graph, layers)
            verify_layers(graph, steps)
            return _compiled(graph, layers, steps, options, [], compiler, plan)
        except (NoRegions, ir.CompileError) as error:
            raise PlanError(f"model {graph.name!r}: {error}") from error
    if not options.regions or options.observe or options.placed:
        return _compiled(graph, layers, layers, options, [], compiler)
    ordered = order_and_join(graph, layers, params, options.engines, options.search_limits, choose_order)
    while True:
        verify_layers(graph, ordered.layers)
        try:
            return _compiled(graph, layers, ordered.layers, options, ordered.reports, compiler)
        except NoRegions as no:
            for region in no.regions:
                ordered.forbid(region)


def _compiled(
    graph: ir.Graph, layers: Sequence[Layer], steps: list[Layer], options: Options, orders: Sequence[OrderReport],
    compiler: LayerCompiler, plan: LengthPlan | None = None,
) -> _Built:  # fmt: skip
    """The image of ``layers``, which have become ``steps``. Raises :class:`NoRegions` if some of these should be
    several, :class:`PlanError` if ``plan`` does not do."""
    params = compiler.params
    if plan is None:
        budget, placement = place(graph, steps, params, options)
    else:
        budget, placement = plan.budget, place_alike(graph, steps, params, plan.placement)
    verify_placement(graph.name, placement, budget)
    limits = PointLimits.of(options)
    codes = compiler.compile(steps, placement, budget, limits, plan.decisions if plan else None)
    image = link(graph, codes, placement, budget, params, _LONGEST_LOAD * params.dram_word if limits else 0)
    report = compile_report(graph, codes, placement, image.meta, orders)
    return _Built(image, report, LengthPlan.of(layers, steps, budget, placement, codes))
