"""Makes what ``caesura info`` and ``caesura disasm`` print: images, models and parameter sets."""

import dataclasses
from statistics import median
from typing import Any

from rich.console import Group
from rich.table import Table

from caesura.views.tables import Column, ColumnTable
from caesura.views.terminal import line, table
from compiler import Conv, Graph, Operation, Tensor
from hw.contract.assembly import disassemble
from hw.contract.isa import INSN_BYTES
from hw.contract.params import SocParams
from hw.image import Image

_SEGMENTS = ("code", "weights", "inputs", "outputs", "scratch", "scratch", "LV2", "LV2")
_OPERATOR_COLUMNS = (
    Column("name", "operator"),
    Column("kind"),
    Column("nodes"),
    Column("inputs"),
    Column("output"),
    Column("macs", "MACs", number=True),
)


def show_params(params: SocParams) -> Group:
    """Return a parameter set and what follows from it."""
    head = line(f"parameters {params.name!r} (digest {params.digest()})")
    fields = table("", "field", ">value")
    for name, value in params.to_dict().items():
        if name != "name":
            fields.add_row(name, f"{value:,}")
    fields.add_section()
    for name, value in _derived(params):
        fields.add_row(name, f"{value:,g}" if isinstance(value, float) else f"{value:,}")
    return Group(head, fields)


def _derived(params: SocParams) -> list[tuple[str, int | float]]:
    """Return what follows from parameters: sizes, peak, and where the DRAM bounds it."""
    bandwidth = params.dram_bytes_per_cycle
    return [
        ("MACs per cycle", params.macs),
        ("TOPS at 1 GHz", 2 * params.macs / 1000),
        ("LV1 and LV2 word, bytes", params.lv1_word),
        ("on-chip memory, bytes", params.onchip_bytes),
        ("of it LV0, bytes", params.lv0_bytes),
        ("of it LV1, bytes", params.engines * params.lv1_bytes),
        ("DRAM bytes per cycle, at most", bandwidth),
        ("MACs per DRAM byte from which on compute bounds", params.macs / bandwidth),
    ]


def show_image(image: Image) -> Group:
    """Return the sizes, ports, layers and jobs of an image."""
    meta = image.meta
    head = line(
        f"model {meta.model!r} for {meta.params['name']!r} (digest {image.params.digest()}): "
        f"{len(image.code) // INSN_BYTES} instructions, {len(image.weights):,} bytes of weights, "
        f"{len(meta.jobs)} jobs, {len(image.host_models)} host models, {len(meta.cancel_points)} cancellation points"
    )
    segments = table("segments", ">no.", "holds", ">bytes")
    for i, size in enumerate(meta.segment_sizes):
        segments.add_row(str(i), _SEGMENTS[i], f"{size:,}")
    return Group(head, _ports(image), segments, _layers(image), _jobs(image))


def _ports(image: Image) -> Table:
    ports = table("inputs and outputs", "name", "", "dtype", "shape", "stored as")
    for what, port in [("in", p) for p in image.meta.inputs] + [("out", p) for p in image.meta.outputs]:
        tensor = image.tensor(port.tensor)
        ports.add_row(port.name, what, port.dtype, str(port.shape), f"{tensor.dtype}{tensor.shape}")
    return ports


def _layers(image: Image) -> Table:
    layers = table("layers", "layer", "kind", ">MACs", ">weights", ">load cycles", ">compute cycles", ">jobs")
    for i, layer in enumerate(image.meta.layers):
        jobs = sum(job.layer == i for job in image.meta.jobs)
        cycles = [
            _cycles(layer.measured_load, layer.estimated_load),
            _cycles(layer.measured_compute, layer.estimated_compute),
        ]
        layers.add_row(layer.name, layer.kind, f"{layer.macs:,}", f"{layer.weight_bytes:,}", *cycles, str(jobs))
    for step in image.meta.steps:
        if step.kind == "host":
            layers.add_row(", ".join(step.outputs), f"on the CPU: {step.reason}")
    return layers


def _jobs(image: Image) -> Table:
    jobs = table("jobs", ">job", "layer", ">engine", ">body PC", ">prologue PC", ">window after", "waits", "signal")
    for i, job in enumerate(image.meta.jobs):
        waits = ", ".join(f"{event}≥{times}" for event, times in job.waits)
        jobs.add_row(
            str(i),
            image.meta.layers[job.layer].name,
            str(job.engine),
            str(job.body_pc),
            "" if job.prologue_pc is None else str(job.prologue_pc),
            str(job.window_after or ""),
            waits,
            "" if job.signal is None else str(job.signal),
        )
    return jobs


def show_graph(graph: Graph) -> Group:
    """Return the operators of a model after import, before it is compiled for any hardware."""
    head = line(f"model {graph.name!r}: {len(graph.ops)} operators")
    return Group(head, _operators(graph).without("nodes").rich())


def _operators(graph: Graph) -> ColumnTable:
    rows = [
        {
            "name": op.name,
            "kind": op.kind,
            "nodes": op.nodes,
            "inputs": [_shape(graph.tensors[name]) for name in op.inputs],
            "output": _shape(graph.tensors[op.output]),
            "macs": _macs(graph, op),
        }
        for op in graph.ops
    ]
    return ColumnTable("operators", _OPERATOR_COLUMNS, rows)


def _shape(tensor: Tensor) -> str:
    return f"{tensor.dtype}{list(tensor.shape)}"


def _macs(graph: Graph, op: Operation) -> int:
    if not isinstance(op, Conv):
        return 0
    pixels = graph.tensors[op.output].size // op.weights.shape[0]
    return int(pixels * op.weights.size)


def listing(image: Image) -> str:
    """Return the assembler text of an image's code, with a comment where a job enters. ``assembly.assemble`` reads
    it."""
    entries: dict[int, list[str]] = {}
    for i, job in enumerate(image.meta.jobs):
        layer = image.meta.layers[job.layer].name
        entries.setdefault(job.body_pc, []).append(f"# job {i}, layer {layer!r}: body, engine {job.engine}")
        if job.prologue_pc is not None:
            entries.setdefault(job.prologue_pc, []).append(f"# job {i}, layer {layer!r}: prologue")
    lines = []
    for pc, instruction in enumerate(disassemble(image.code).splitlines()):
        lines += entries.get(pc, [])
        lines.append(instruction)
    return "\n".join(lines)


def params_fields(params: SocParams) -> dict[str, Any]:
    """Return the fields, the digest and what follows from them, for JSON."""
    return {**params.to_dict(), "digest": params.digest(), "derived": dict(_derived(params))}


def image_fields(image: Image) -> dict[str, Any]:
    """Return the metadata and the section sizes, for JSON."""
    sizes = {"instructions": len(image.code) // INSN_BYTES, "weight_bytes": len(image.weights)}
    return {**dataclasses.asdict(image.meta), **sizes}


def graph_fields(graph: Graph) -> dict[str, Any]:
    """Return the operators with shapes and MACs, for JSON."""
    return {"model": graph.name, "operators": _operators(graph).fields()}


def _cycles(measured: int | None, estimated: int) -> str:
    """Return a reference duration as text, which says so where it is an estimate."""
    return f"{estimated:,} (est.)" if measured is None else f"{measured:,}"


def point_fields(image: Image) -> dict[str, Any]:
    """Return the number of points, and median and largest of their figures (empty without points), for JSON."""
    return {"points": len(image.meta.cancel_points), **{name: spread for name, spread in _spreads(image)}}


def _spreads(image: Image) -> list[tuple[str, dict[str, float]]]:
    points = image.meta.cancel_points
    figures = {
        "interval": [point.estimated_interval for point in points],
        "worst_interval": [point.worst_interval for point in points],
        "dirty_bytes": [image.live_bytes(point, dirty=True) for point in points],
        "clean_bytes": [image.live_bytes(point, dirty=False) for point in points],
        "reloads": [len(point.reload) for point in points],
    }
    return [(name, {"median": median(values), "largest": max(values)}) for name, values in figures.items() if values]


def points_summary(image: Image) -> Table:
    """Return the median and largest interval (estimated cycles from passing a point to halting at the next) and live
    bytes."""
    summary = table(f"{len(image.meta.cancel_points)} cancellation points", "", ">median", ">largest")
    for name, spread in _spreads(image):
        summary.add_row(name.replace("_", " "), f"{spread['median']:,.0f}", f"{spread['largest']:,.0f}")
    return summary


def points_table(image: Image) -> Table:
    """Return a table of every point with its place, interval and live bytes."""
    columns = ("layer", ">point", ">job", ">PC", ">interval", ">dirty", ">clean", ">reloads", "dirty by memory")
    points = table("cancellation points", *columns)
    for point in image.meta.cancel_points:
        sizes: dict[str, int] = {}
        for r in point.live:
            if r.dirty:
                sizes[r.space] = sizes.get(r.space, 0) + r.size
        points.add_row(
            image.meta.layers[image.meta.jobs[point.job].layer].name,
            str(point.point),
            str(point.job),
            str(point.pc),
            f"{point.estimated_interval:,}",
            f"{image.live_bytes(point, dirty=True):,}",
            f"{image.live_bytes(point, dirty=False):,}",
            str(len(point.reload)),
            ", ".join(f"{space} {size:,}" for space, size in sizes.items()),
        )
    return points


def points_over(image: Image, cap: int) -> str | None:
    """Return a sentence on the points that have more dirty bytes than ``cap`` (0: any), or None if there are none."""
    sizes = [image.live_bytes(point, dirty=True) for point in image.meta.cancel_points]
    over = [size for size in sizes if cap and size > cap]
    if not over:
        return None
    return (
        f"{len(over)} of {len(sizes)} cancellation points have more than {cap:,} dirty bytes, {max(over):,} at most: a "
        "longer --cancel-interval or a smaller --lv2-limit leaves less to move"
    )
