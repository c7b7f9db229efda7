"""``caesura bench utilisation``: how near to the MAC peak, or to the roofline, layers and whole networks run.

Cycles of a run count from the start of its first prologue or body to the end of its last body, on the accelerator's
own counter, all engines together (``RunStats.cycles``): loading the first weights and storing the last outputs are in
it. Cycles of a layer inside a network count from the start of its first body to the end of its last
(``LayerStats.cycles``).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import Lab, Run
from benchmarks.scaling import scaled
from benchmarks.workloads import tables
from benchmarks.workloads.conv import ConvShape, of_layer
from benchmarks.workloads.networks import mobilenetv2
from caesura import LayerProfile
from compiler import Options

_WHOLE = "from the first prologue or body to the end of the last body, DRAM to DRAM"
_SHARE = "the layer's share of the run: its bodies and the gaps before them, mean over the engines"
_LAYER = "from the start of the layer's first body to the end of its last, inside the network"


def figures() -> list[Figure]:
    """Return all rows, in the order of the report."""
    convolutions = [case.conv for case in tables.resnet50_convolutions()]
    first = tables.first_layers()[0].conv.name
    return [
        *(Figure(gemm.name, Target(95, 98), partial(_of_peak, name=gemm.name)) for gemm in tables.GEMMS),
        *(Figure(conv.name, Target(80, 95), partial(_of_bound, name=conv.name)) for conv in convolutions),
        Figure("resnet50_convolutions", Target(80, 95), partial(_worst, convolutions=convolutions)),
        Figure("resnet50_layers", Target(80, 95), _worst_inside),
        Figure("first_layer", Target(60, 85), partial(_of_peak, name=first)),
        Figure("depthwise_stride1", Target(30, 37), partial(_depthwise, stride=1)),
        Figure("depthwise_stride2", Target(15, 30), partial(_depthwise, stride=2)),
        Figure("resnet50", Target(95, 96.5), partial(_of_peak, name="resnet50")),
        Figure("mobilenetv2", Target(72, 80), partial(_of_peak, name="mobilenetv2")),
        Figure("squeezenet", Target(83, 88), partial(_of_peak, name="squeezenet")),
        Figure("resnet50_speedup_4x", Target(3.4, 3.8, "x"), _speedup, optional=True),
    ]


def _of_peak(lab: Lab, name: str) -> Measured:
    run = lab.run(name)
    return Measured(run.utilisation, run.correct, run_detail(run))


def _of_bound(lab: Lab, name: str) -> Measured:
    run = lab.run(name)
    return Measured(_bound_percent(run), run.correct, run_detail(run))


def _bound_percent(run: Run) -> float:
    return 100 * run.profile.total.bound.cycles / run.stats.cycles


def _worst(lab: Lab, convolutions: Sequence[ConvShape]) -> Measured:
    """Return the smallest share of its bound among ``convolutions``."""
    runs = [lab.run(conv.name) for conv in convolutions]
    shares = {run.workload: round(_bound_percent(run), 3) for run in runs}
    detail = {"of": "the roofline bound", "counted": _WHOLE, "worst": min(shares, key=lambda name: shares[name])}
    return Measured(min(shares.values()), all(run.correct for run in runs), {**detail, "layers": shares})


def _worst_inside(lab: Lab) -> Measured:
    """Return the same for the occurrences of those convolutions inside the network, where the weights of one are loaded
    while another computes. What counts is its share of the run: its bodies and the gaps before them."""
    run = lab.run("resnet50")
    wanted = {name for case in tables.resnet50_convolutions() for name in case.layers}
    layers = {}
    for info, layer in zip(run.image.meta.layers, run.profile.every, strict=True):
        if layer.share and wanted.intersection(info.nodes):
            percent = round(100 * layer.bound.cycles / layer.share, 3)
            layers[layer.name] = {"percent": percent, "bound": layer.bound.to_dict(), **_parts(layer)}
    worst = min(layers, key=lambda name: layers[name]["percent"])
    detail = {"of": "the roofline bound", "counted": _SHARE, "worst": worst, "outputs": run.verdict, "layers": layers}
    return Measured(layers[worst]["percent"], run.correct, detail)


def _depthwise(lab: Lab, stride: int) -> Measured:
    """Return the smallest utilisation among MobileNetV2's depthwise layers of one stride. They are taken inside the
    network, where LV2 holds their activations: from DRAM to DRAM the bus would bound the first of them to 14 % of the
    peak. The network is compiled without regions, in which layers have no times of their own."""
    run = lab.run("mobilenetv2", Options(regions=False))
    layers = {}
    for layer, info, share in zip(run.stats.layers, run.image.meta.layers, run.profile.every, strict=True):
        if layer.cycles and _depthwise_nodes(stride).intersection(info.nodes):
            percent = 100 * layer.macs / (lab.params.macs * layer.cycles)
            layers[layer.name] = {"percent": round(percent, 3), "cycles": layer.cycles, **_parts(share)}
    worst = min(layers, key=lambda name: layers[name]["percent"])
    detail = {"of": "the MAC peak", "counted": _LAYER, "worst": worst, "outputs": run.verdict, "layers": layers}
    return Measured(layers[worst]["percent"], run.correct, detail)


def _depthwise_nodes(stride: int) -> set[str]:
    return {layer.name for layer in mobilenetv2().layers if layer.is_depthwise and of_layer(layer).stride == stride}


def _speedup(lab: Lab) -> Measured:
    params, how = scaled(lab.params)
    run = lab.run("resnet50")
    with Lab(params, lab.backend, lab.progress, check_layers=lab.check_layers) as larger:
        other = larger.run("resnet50")
    detail = {
        "scaling": how,
        "counted": _WHOLE,
        "cycles": run.stats.cycles,
        "scaled_cycles": other.stats.cycles,
        "scaled": run_detail(other),
    }
    return Measured(run.stats.cycles / other.stats.cycles, run.correct and other.correct, detail)


def run_detail(run: Run) -> dict[str, Any]:
    """Return what explains a run: cycles, bound, where the cycles went, counters, and the layers that lost most."""
    where = run.profile
    layers = where.by_loss()
    detail: dict[str, Any] = {
        "workload": run.workload,
        "cycles": run.stats.cycles,
        "macs": run.stats.macs,
        "counted": _WHOLE,
        "outputs": run.verdict,
        "bound": where.total.bound.to_dict(),
        **_parts(where.total),
    }
    if len(layers) > 1:
        detail["layers"] = [
            {"name": layer.name, "share": round(layer.share), "bound": layer.bound.to_dict(), **_parts(layer)}
            for layer in layers
        ]
    else:
        detail["counters"] = where.total.counters
    return detail


def _parts(layer: LayerProfile) -> dict[str, Any]:
    unit, share = layer.busiest
    parts = {name: round(value) for name, value in layer.parts.items()}
    return {"parts": parts, "busiest": f"{unit} {share:.0%}", "fetch_stalled": round(layer.fetch_stalled)}
