"""The passes of the back end in order."""

from compiler import ir
from compiler.backend.kernels.generate import Generated, generate
from compiler.backend.layers.fuse import fuse
from compiler.backend.layers.layer import ConvLayer, Layer
from compiler.backend.layers.lower import lower
from compiler.backend.link.linker import Linker, Scheduled, macs
from compiler.backend.memory.budget import Lv2Budget, divide
from compiler.backend.memory.tensor_placement import TensorPlacement, place
from compiler.backend.options import CompileReport, LayerReport, Options
from compiler.backend.order.defer import defer
from compiler.backend.preempt.job_body import bodies
from compiler.backend.preempt.points import PointLimits
from compiler.backend.program.schedule import schedule
from hw.contract.image import Image
from hw.contract.isa import Segment
from hw.contract.params import SocParams

#: DRAM words of one load of a prologue. A pause that is withdrawn repeats what has not landed of up to four of them;
#: shorter ones cost ResNet-50 more than all its points do (256 words: 0.13 %, 1024 words: 0.02 %).
_LONGEST_LOAD = 1024


def build(graph: ir.Graph, params: SocParams, options: Options | None = None) -> tuple[Image, CompileReport]:
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
    wanted = None
    if options.cancel_interval:
        wanted = PointLimits(options.cancel_interval, options.cancel_max_live, options.cancel_spill_bound)
    linker = Linker(params, budget, homes, _LONGEST_LOAD * params.dram_word if wanted else 0)
    layers_made = []
    for number, layer in enumerate(layers):
        made = generate(layer, number, homes, budget, params, wanted.longest if wanted else 0)
        orders = [schedule(job.tasks, params, engines=budget.engines) for job in made.jobs]
        layers_made.append((layer, made, list(zip(made.jobs, orders, strict=True))))
    if wanted:
        wanted = wanted.limited(sum(order.cycles for _, _, jobs in layers_made for _, order in jobs))
    report, cycles = CompileReport(graph.name), []
    for number, (layer, made, jobs) in enumerate(layers_made):
        programs = bodies(homes, number, jobs, params, budget.engines, wanted)
        scheduled = [Scheduled(*pair, body) for pair, body in zip(jobs, programs, strict=True)]
        for entry in scheduled:
            linker.add(entry)
        loaded = sum(len(job.blob) for job in made.jobs)
        compute = max((_busy(scheduled, engine) for engine in range(budget.engines)), default=0)
        load = int(loaded / params.dram_bytes_per_cycle) + params.dram_latency if loaded else 0
        cycles.append((load, compute))
        report.layers.append(_layer_report(graph, layer, made, homes, compute))
    image = linker.image(graph, layers, cycles)
    report.segment_sizes = image.meta.segment_sizes
    report.dram_bytes, report.lv2_bytes = sum(report.segment_sizes[:6]), sum(report.segment_sizes[6:])
    return image, report


def _divide(
    graph: ir.Graph, layers: list[Layer], params: SocParams, options: Options
) -> tuple[Lv2Budget, TensorPlacement]:
    """The division of LV2 with the least traffic to tensors that did not fit, the first of equals."""
    best: tuple[Lv2Budget, TensorPlacement] | None = None
    lv2 = options.lv2_limit // params.lv1_word * params.lv1_word or params.lv2_bytes
    if not 0 < lv2 <= params.lv2_bytes:
        raise ir.CompileError(
            f"model {graph.name!r}: lv2_limit must be {params.lv1_word} to {params.lv2_bytes} bytes on preset "
            f"{params.name!r}, not {options.lv2_limit}"
        )
    for budget in divide(graph, layers, params, options.engines, lv2):
        homes = place(graph, layers, params, budget.staging_end, budget.homes_end, options.observe)
        if best is None or homes.moved < best[1].moved:
            best = budget, homes
    assert best is not None
    budget = best[0].extended(best[1].sizes[Segment.LV2], lv2, params)
    used = max(best[1].sizes[Segment.LV2], budget.staging_end) + budget.windows * budget.engines
    if used > lv2:
        raise ir.CompileError(
            f"model {graph.name!r} needs {used} bytes of LV2 for its tiles and weights, {lv2} are allowed: choose a "
            "larger lv2_limit or a preset with a larger lv2_bytes"
        )
    return budget, best[1]


def _busy(scheduled: list[Scheduled], engine: int) -> int:
    """Estimated cycles of one engine."""
    return sum(entry.schedule.cycles for entry in scheduled if entry.job.engine == engine)


def compile_graph(graph: ir.Graph, params: SocParams, options: Options | None = None) -> Image:
    """The image of ``graph``; see :func:`build`."""
    return build(graph, params, options)[0]


def _layer_report(graph: ir.Graph, layer: Layer, made: Generated, homes: TensorPlacement, cycles: int) -> LayerReport:
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
