"""The passes of the back end in order."""

from compiler import ir
from compiler.backend.budget import Budget, divide
from compiler.backend.fuse import fuse
from compiler.backend.generate import Generated, generate
from compiler.backend.homes import LV2, Homes, place
from compiler.backend.layers import ConvLayer, Layer
from compiler.backend.link import Linker, Scheduled, macs
from compiler.backend.lower import lower
from compiler.backend.options import LayerReport, Options, Report
from compiler.backend.order import defer
from compiler.backend.schedule import schedule
from hw.image import Image
from hw.params import SocParams


def build(graph: ir.Graph, params: SocParams, options: Options | None = None) -> tuple[Image, Report]:
    """Compile ``graph`` for hardware with ``params``; returns the image and a report.

    Raises :class:`compiler.ir.CompileError` naming the operator, size and limit where the model cannot fit.
    """
    options = options or Options()
    if not 1 <= options.engines <= params.engines:
        raise ir.CompileError(
            f"model {graph.name!r}: engines must be 1 to {params.engines} on preset {params.name!r}, "
            f"not {options.engines}"
        )
    layers = lower(graph, params)
    if not options.observe:  # an observer looks at every operator's own result
        layers = fuse(graph, layers)
    layers = defer(graph, layers)
    budget, homes = _divide(graph, layers, params, options)
    linker = Linker(params, budget, homes)
    report, cycles = Report(graph.name), []
    for number, layer in enumerate(layers):
        made = generate(layer, number, homes, budget, params)
        scheduled = [Scheduled(job, schedule(job.tasks, params, engines=budget.engines)) for job in made.jobs]
        # Cancellation points go in here: after the program order is known, before addresses of code are.
        for entry in scheduled:
            linker.add(entry)
        loaded = sum(len(job.blob) for job in made.jobs)
        compute = max((_busy(scheduled, engine) for engine in range(budget.engines)), default=0)
        load = loaded // params.dram_word + params.dram_latency if loaded else 0
        cycles.append((load, compute))
        report.layers.append(_layer_report(graph, layer, made, homes, compute))
    image = linker.image(graph, layers, cycles)
    report.segment_sizes = image.meta.segment_sizes
    report.dram_bytes, report.lv2_bytes = sum(report.segment_sizes[:6]), sum(report.segment_sizes[6:])
    return image, report


def _divide(graph: ir.Graph, layers: list[Layer], params: SocParams, options: Options) -> tuple[Budget, Homes]:
    """The division of LV2 with the least traffic to tensors that did not fit, the first of equals."""
    best: tuple[Budget, Homes] | None = None
    for budget in divide(graph, layers, params, options.engines):
        homes = place(graph, layers, params, budget.staging_end, budget.homes_end, options.observe)
        if best is None or homes.moved < best[1].moved:
            best = budget, homes
    assert best is not None
    return best[0].extended(best[1].sizes[LV2], params), best[1]


def _busy(scheduled: list[Scheduled], engine: int) -> int:
    """Estimated cycles of one engine."""
    return sum(entry.schedule.cycles for entry in scheduled if entry.job.engine == engine)


def compile_graph(graph: ir.Graph, params: SocParams, options: Options | None = None) -> Image:
    """The image of ``graph``; see :func:`build`."""
    return build(graph, params, options)[0]


def _layer_report(graph: ir.Graph, layer: Layer, made: Generated, homes: Homes, cycles: int) -> LayerReport:
    names = [*layer.inputs, layer.output]
    places = ["LV2" if made.jobs and homes.view(name).on_chip else "DRAM" for name in names if name in graph.tensors]
    return LayerReport(
        layer.name,
        layer.kind,
        len(made.jobs),
        made.tile,
        ", ".join(places[:-1]) + " -> " + places[-1] if places else "",
        macs(graph, layer),
        sum(len(job.tasks) for job in made.jobs),
        int(layer.weights.size) if isinstance(layer, ConvLayer) else 0,
        cycles,
    )
