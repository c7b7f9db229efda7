"""The back end, pass by pass: from a quantised graph to an image."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from compiler import ir
from compiler.backend.layers.layer import Layer
from compiler.backend.layers.verify import verify_layers
from compiler.backend.link.linker import link
from compiler.backend.memory.place import place
from compiler.backend.memory.verify import verify_placement
from compiler.backend.objects.compile_layers import LayerCompiler, NoRegions
from compiler.backend.objects.object_store import ObjectStore
from compiler.backend.objects.workers import Workers, cpus
from compiler.backend.options import Options
from compiler.backend.order.regions import ChooseOrder, order_and_join
from compiler.backend.preempt.points import PointLimits
from compiler.backend.prepare import prepared
from compiler.backend.report import CompileReport, compile_report
from compiler.backend.split.choose import split_where_it_pays
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
        return _build(graph, options or Options(), choose_order, LayerCompiler(params, workers, store))


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


def _build(
    graph: ir.Graph, options: Options, choose_order: ChooseOrder | None, compiler: LayerCompiler
) -> tuple[Image, CompileReport]:  # fmt: skip
    params = compiler.params
    options.check(graph.name, params)
    graph = split_where_it_pays(graph, params, options)
    graph, layers = prepared(graph, params, options)
    if not options.regions or options.observe or options.placed:
        return _compiled(graph, layers, options, [], compiler)
    lv2, limits = options.lv2_bytes(params), options.search_limits
    ordered = order_and_join(graph, layers, params, options.engines, limits, choose_order, lv2)
    while True:
        verify_layers(graph, ordered.layers)
        try:
            return _compiled(graph, ordered.layers, options, ordered.reports, compiler)
        except NoRegions as no:
            for region in no.regions:
                ordered.forbid(region)


def _compiled(
    graph: ir.Graph, layers: list[Layer], options: Options, orders: Sequence[OrderReport], compiler: LayerCompiler
) -> tuple[Image, CompileReport]:  # fmt: skip
    """The image of ``layers``. Raises :class:`NoRegions` if some of them should be several."""
    params = compiler.params
    budget, placement = place(graph, layers, params, options)
    verify_placement(graph.name, placement, budget)
    limits = PointLimits.of(options)
    codes = compiler.compile(layers, placement, budget, limits)
    image = link(graph, codes, placement, budget, params, _LONGEST_LOAD * params.dram_word if limits else 0)
    return image, compile_report(graph, codes, placement, image.meta, orders)
