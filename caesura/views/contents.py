"""Makes what ``caesura info`` and ``caesura disasm`` print: images, models and parameter sets."""

import dataclasses
from collections import Counter
from statistics import median
from typing import Any

from rich.console import Group
from rich.table import Table

from caesura.steps_on_cpu import cpu_steps
from caesura.views.tables import Column, ColumnTable, table_of
from caesura.views.terminal import line
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
    fields = [(name, value) for name, value in params.to_dict().items() if name != "name"]
    derived = [(name, f"{value:,g}" if isinstance(value, float) else value) for name, value in _derived(params)]
    return Group(head, table_of("", ("field", ">value"), fields, derived).rich())


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
    claims = line(claim_line(image))
    segments = [(str(number), _SEGMENTS[number], size) for number, size in enumerate(meta.segment_sizes)]
    tables = (table_of("segments", (">no.", "holds", ">bytes"), segments), _layers(image), _jobs(image))
    return Group(head, claims, _ports(image).rich(), *(table.rich() for table in tables))


def claim_line(image: Image, loss: float | None = None) -> str:
    """Return a sentence on the LV2 that ``image`` claims, and what it loses by that: the share of its cycles, if they
    were priced."""
    claimed, whole = image.meta.lv2_bytes, image.params.lv2_bytes
    told = f"claims {claimed:,} of {whole:,} bytes of LV2"
    if loss is not None:
        return f"{told}: by price {loss:.1%} more cycles than with --lv2-limit all"
    if 2 * claimed > whole:
        return f"{told}: another model that claims more than {whole - claimed:,} takes turns with it"
    return told


def _ports(image: Image) -> ColumnTable:
    stored = {port.tensor: image.tensor(port.tensor) for port in (*image.meta.inputs, *image.meta.outputs)}
    rows = [
        (port.name, what, port.dtype, str(port.shape), f"{stored[port.tensor].dtype}{stored[port.tensor].shape}")
        for what, ports in (("in", image.meta.inputs), ("out", image.meta.outputs))
        for port in ports
    ]
    return table_of("inputs and outputs", ("name", "", "dtype", "shape", "stored as"), rows)


def _layers(image: Image) -> ColumnTable:
    heads = ("layer", "kind", ">MACs", ">weights", ">load cycles", ">compute cycles", ">jobs")
    jobs = Counter(job.layer for job in image.meta.jobs)
    rows: list[tuple] = [
        (
            layer.name, layer.kind, layer.macs, layer.weight_bytes, _cycles(layer.measured_load, layer.estimated_load),
            _cycles(layer.measured_compute, layer.estimated_compute), str(jobs[number]),
        )
        for number, layer in enumerate(image.meta.layers)
    ]  # fmt: skip
    hosted = [
        (", ".join(s.outputs), f"on the CPU: {s.reason}", None, None, None, s.cycles, None) for s in cpu_steps(image)
    ]
    return table_of("layers", heads, rows + hosted)


def _jobs(image: Image) -> ColumnTable:
    heads = (">job", "layer", ">engine", ">body PC", ">prologue PC", ">window after", "waits", "signal")
    rows = [
        (
            str(number), image.meta.layers[job.layer].name, job.engine, str(job.body_pc), _text(job.prologue_pc),
            str(job.window_after or ""), [f"{event}≥{times}" for event, times in job.waits], _text(job.signal),
        )
        for number, job in enumerate(image.meta.jobs)
    ]  # fmt: skip
    return table_of("jobs", heads, rows)


def _text(number: int | None) -> str:
    """Return a number without separators, and nothing for None."""
    return "" if number is None else str(number)


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
    lines = []
    for row in code_fields(image)["code"]:
        lines += [f"# {entry}" for entry in row["enters"]]
        lines.append(row["text"])
    return "\n".join(lines)


def code_fields(image: Image) -> dict[str, Any]:
    """Return the code of an image for JSON: for each instruction its PC, its assembler text, and what enters there."""
    entries: dict[int, list[str]] = {}
    for i, job in enumerate(image.meta.jobs):
        layer = image.meta.layers[job.layer].name
        entries.setdefault(job.body_pc, []).append(f"job {i}, layer {layer!r}: body, engine {job.engine}")
        if job.prologue_pc is not None:
            entries.setdefault(job.prologue_pc, []).append(f"job {i}, layer {layer!r}: prologue")
    code = disassemble(image.code).splitlines()
    rows = [{"pc": pc, "text": text, "enters": entries.get(pc, [])} for pc, text in enumerate(code)]
    return {"model": image.meta.model, "code": rows}


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
    rows = [
        (name.replace("_", " "), *(f"{spread[which]:,.0f}" for which in ("median", "largest")))
        for name, spread in _spreads(image)
    ]
    return table_of(f"{len(image.meta.cancel_points)} cancellation points", ("", ">median", ">largest"), rows).rich()


def points_table(image: Image) -> Table:
    """Return a table of every point with its place, interval and live bytes."""
    heads = ("layer", ">point", ">job", ">PC", ">interval", ">dirty", ">clean", ">reloads", "dirty by memory")
    meta, rows = image.meta, []
    for point in meta.cancel_points:
        sizes = Counter[str]()
        for live in point.live:
            if live.dirty:
                sizes[live.space] += live.size
        rows.append(
            (
                meta.layers[meta.jobs[point.job].layer].name, str(point.point), str(point.job), str(point.pc),
                point.estimated_interval, image.live_bytes(point, dirty=True), image.live_bytes(point, dirty=False),
                str(len(point.reload)), [f"{space} {size:,}" for space, size in sizes.items()],
            )
        )  # fmt: skip
    return table_of("cancellation points", heads, rows).rich()


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
