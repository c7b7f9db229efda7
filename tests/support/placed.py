"""Branchy graphs, and placed images on the functional model: jobs on random engines, in any order that edges allow."""

import numpy as np

from compiler import ir, reference
from compiler.pipeline import build
from compiler.plan.options import Options
from hw.contract.isa import Segment
from hw.contract.params import SocParams
from hw.image.image import Image, JobInfo
from sim.functional.machine import Machine
from sim.functional.state import Segments
from tests.support.graphs import GraphBuilder, random_inputs
from tests.support.image_runner import get, load, place_segments


def branchy(seed: int, operators: int = 10, channels: int | None = None) -> ir.Graph:
    """Convolutions, sums, tables, pools and concatenations of earlier results of one size, all of which reach an
    output: what nobody reads is added up at the end."""
    make = GraphBuilder(seed)
    rng = make.rng
    size, few = int(rng.integers(4, 9)), int(rng.integers(3, 20))
    channels = channels or few
    known = [make.input((1, size, size, channels))]
    for _ in range(operators):
        kind = rng.choice(["conv", "conv", "conv", "add", "mul", "table", "pool", "concat"])
        x, z = (known[int(rng.integers(len(known)))] for _ in range(2))
        if kind == "conv":
            kernel = int(rng.choice([1, 3]))
            y = make.conv(x, channels, (kernel, kernel), pads=(kernel // 2,) * 4, table=bool(rng.integers(2)))
        elif kind in ("add", "mul"):
            y = make.eltwise(str(kind), x, z)
        elif kind == "table":
            y = make.table(x)
        elif kind == "pool":
            y = make.pool("max", x, (3, 3), (1, 1), (1, 1, 1, 1))
        else:
            y = make.conv(make.concat([x, z], 3), channels, (1, 1))
        known.append(y)
    read = {name for op in make.graph.ops for name in op.inputs}
    ends = [name for name in known[1:] if name not in read]
    total = ends[0]
    for other in ends[1:]:
        total = make.eltwise("add", total, other)
    make.output(total if len(ends) > 1 else make.table(total))
    return make.graph


def two_branches(seed: int, depth: int, size: int = 6, channels: int = 8) -> ir.Graph:
    """A convolution, two branches of ``depth`` convolutions that read it, and the sum of both."""
    make = GraphBuilder(seed)
    stem = make.conv(make.input((1, size, size, channels)), channels, (1, 1))
    ends = [stem, stem]
    for _ in range(depth):
        ends = [make.conv(x, channels, pads=(1, 1, 1, 1)) for x in ends]
    make.output(make.eltwise("add", *ends))
    return make.graph


def branches(seed: int, count: int = 2, channels: int = 32, size: int = 12) -> ir.Graph:
    """Branches of a 1×1 and a 3×3 convolution that read one tensor and meet in a concatenation."""
    make = GraphBuilder(seed)
    x = make.conv(make.input((1, size, size, 8)), 64, (1, 1))
    ends = [make.conv(make.conv(x, channels, (1, 1)), channels, pads=(1, 1, 1, 1)) for _ in range(count)]
    make.output(make.conv(make.concat(ends, 3), 16, (1, 1)))
    return make.graph


def compiled(graph: ir.Graph, params: SocParams, **options) -> Image:
    """A placed image over all engines, as it is read from its file."""
    image, _ = build(graph, params, Options(engines=params.engines, placed=True, **options))
    return Image.from_bytes(image.to_bytes())


def run_placed(image: Image, inputs: dict[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """All tensors of the image after its jobs have run in a random order: next comes any job whose edges are satisfied,
    on an engine that is chosen at random for its layer; an engine ends a layer before it begins another. Memories start
    as garbage, and whenever no layer is half done, all of LV2 becomes garbage that is not live before some job that
    could begin."""
    rng = np.random.default_rng(seed)
    machine, segments, jobs = Machine(image.params), place_segments(image), image.meta.jobs
    machine.lv2[:] = rng.integers(0, 256, machine.lv2.size)
    for engine in machine.engines:
        engine.lv1[:] = rng.integers(0, 256, engine.lv1.size)
    load(machine, image, segments, inputs)
    size = image.meta.segment_sizes[Segment.WINDOWS]
    base = image.params.lv2_bytes - size  # the end of LV2: images may need all of it
    part = size // image.meta.parts
    engine_of = {layer: int(rng.integers(image.meta.parts)) for layer in {job.layer for job in jobs}}
    left, ended = list(range(len(jobs))), set[int]()
    begun: dict[int, int] = {}  # by engine, the layer that it has begun and not ended
    while left:
        firsts = [i for i in left if not any(jobs[k].layer == jobs[i].layer for k in left if k < i)]
        free = [i for i in firsts if begun.get(engine_of[jobs[i].layer], jobs[i].layer) == jobs[i].layer]
        ready = [i for i in free if ended.issuperset(jobs[i].after)]
        if not begun:
            _spoil(machine, rng, segments, jobs[int(rng.choice(ready))])
        job = int(rng.choice(ready))
        engine = engine_of[jobs[job].layer]
        mine = [*segments[: Segment.WINDOWS], (base + engine * part, part)]
        if (prologue := jobs[job].prologue_pc) is not None:
            machine.run_prologue(image.code, prologue, mine, engine)
        machine.run_program(image.code, jobs[job].body_pc, mine, engine)
        left.remove(job)
        ended.add(job)
        begun[engine] = jobs[job].layer
        if not any(jobs[i].layer == jobs[job].layer for i in left):
            del begun[engine]
    return {info.name: get(machine, segments, info) for info in image.meta.tensors}


def _spoil(machine: Machine, rng: np.random.Generator, segments: Segments, job: JobInfo) -> None:
    """Make all of LV2 garbage but what is live before ``job`` begins."""
    kept = machine.lv2.copy()
    machine.lv2[:] = rng.integers(0, 256, machine.lv2.size)
    for live in job.live:
        start = segments[live.segment][0] + live.offset
        machine.lv2[start : start + live.size] = kept[start : start + live.size]


def check_placed(graph: ir.Graph, params: SocParams, orders: int, **options) -> Image:
    """Compare every tensor of ``orders`` random runs with the reference."""
    image = compiled(graph, params, **options)
    inputs = random_inputs(graph, 7)
    expected = reference.run_all(graph, inputs)
    for seed in range(orders):
        for name, value in run_placed(image, inputs, seed).items():
            assert np.array_equal(value, expected[name]), f"tensor {name} of {graph.name}, order {seed}"
    return image
