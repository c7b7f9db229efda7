"""Layers to jobs: picks the generator, the plan, and how many jobs the weights need."""

import itertools
import math
from dataclasses import dataclass, replace

from compiler.backend.kernels.conv_emitter import Addend, ConvGenerator
from compiler.backend.kernels.move import Mover, export_job, pad_job
from compiler.backend.kernels.vector import eltwise_job, max_job
from compiler.backend.layers.layer import (
    ChannelTile,
    ConvLayer,
    EltwiseLayer,
    HostLayer,
    Layer,
    MaxLayer,
    MoveLayer,
    PadLayer,
)
from compiler.backend.memory.budget import Lv2Budget
from compiler.backend.memory.operand import TensorOperand
from compiler.backend.memory.tensor_placement import TensorPlacement
from compiler.backend.program.job import JobProgram
from compiler.backend.program.schedule import schedule
from compiler.backend.tiling.conv_geometry import PixelTile
from compiler.backend.tiling.conv_plan import (
    ConvPlan,
    TilingContext,
    params_bytes,
    pixel_tiles,
    plan_conv,
    sum_params_bytes,
)
from compiler.backend.tiling.end_tiles import ENDS
from compiler.backend.tiling.engine_share import EngineShare, imbalance
from compiler.ir import CompileError
from hw.contract.isa import TABLE_BYTES, Segment
from hw.contract.params import SocParams


@dataclass
class Generated:
    """Jobs of one layer, in order, and a word on its tiles for the report."""

    jobs: list[JobProgram]
    tile: str = ""


def generate(
    layer: Layer, number: int, homes: TensorPlacement, budget: Lv2Budget, params: SocParams, longest: int = 0
) -> Generated:
    """The jobs of ``layer``, number ``number`` of the layer table; raises :class:`CompileError`. ``longest``: cycles
    that instructions of MAC and VEC should not exceed where they can be cut (0: any)."""
    if isinstance(layer, HostLayer):
        return Generated([])
    inputs = [_operand(homes, name) for name in layer.inputs]
    output = _operand(homes, layer.output)
    if isinstance(layer, ConvLayer):
        made = _conv(layer, number, inputs, output, budget, homes, params, longest)
    elif isinstance(layer, EltwiseLayer | MaxLayer):
        made = _vector(layer, number, inputs, output, budget, params, longest)
    elif isinstance(layer, PadLayer):
        made = Generated([pad_job(params, number, layer, inputs[0], output, budget.staging(0))])
    elif isinstance(layer, MoveLayer):
        made = _moves(layer, number, homes, output, budget, params)
    else:
        raise CompileError(f"operator {layer.name!r}: no generator for {layer.kind}")
    if layer.output in homes.exports:
        made.jobs.append(export_job(params, number, output.view, homes.exports[layer.output], Segment.SHARED))
    return made


def _operand(homes: TensorPlacement, name: str) -> TensorOperand:
    tensor = homes.tensors[name]
    return TensorOperand(homes.view(name), tensor.dtype == "int8", tensor.zero_point)


def _vector(
    layer: EltwiseLayer | MaxLayer,
    number: int,
    inputs: list[TensorOperand],
    output: TensorOperand,
    budget: Lv2Budget,
    params: SocParams,
    longest: int,
) -> Generated:
    jobs = []
    for engine in range(budget.engines):
        share, staging = EngineShare(engine, budget.engines), budget.staging(engine)
        if isinstance(layer, MaxLayer):
            job = max_job(params, number, layer, inputs[0], output, staging, share, longest)
        else:
            b = inputs[1] if len(inputs) > 1 else None
            job = eltwise_job(params, number, layer, inputs[0], b, output, staging, share)
        if job:
            jobs.append(job)
    return Generated(jobs)


def _moves(
    layer: MoveLayer, number: int, homes: TensorPlacement, output: TensorOperand, budget: Lv2Budget, params: SocParams
) -> Generated:
    moves = [move for move in layer.moves if move.src not in homes.inside]
    if not moves:
        return Generated([], "in place")
    mover = Mover(params, number, budget.staging(0))
    for move in moves:
        mover.move(homes.view(move.src), output.view, move.offset, move.dims)
    return Generated([mover.job])


def _conv(
    layer: ConvLayer, number: int, inputs: list[TensorOperand], y: TensorOperand, budget: Lv2Budget,
    homes: TensorPlacement, params: SocParams,
    longest: int,
) -> Generated:  # fmt: skip
    layer, [y, x, *others] = _flattened(layer, [y, *inputs])
    addend = None
    if layer.addition:
        own = homes.tensors[layer.addition.own]
        addend = Addend(others[0], own.dtype == "int8", own.zero_point)
    load = TilingContext(
        x.view.shape[0], not x.view.on_chip, not y.view.on_chip, budget.job_weights, budget.engines, x.view.strides[2]
    )
    plan = plan_conv(layer, load, params)
    fixed = len(layer.regions) * params_bytes(params)
    table = (TABLE_BYTES if layer.requantise.table is not None else 0) + (sum_params_bytes(params) if addend else 0)
    sizes = [fixed + _weight_bytes(layer, plan, tile, params) for tile in layer.tiles]
    stream = max(sizes) + table > budget.windows
    if stream:
        sizes = [fixed] * len(layer.tiles)
    if max(sizes) + table > budget.windows:
        raise CompileError(
            f"operator {layer.name!r}: the requantisation of one tile takes {max(sizes) + table} bytes, a weight "
            f"window {budget.windows}: choose a preset with a larger lv2_bytes"
        )
    jobs = []
    for engine in range(budget.engines):
        channels, pixels = _shares(layer, plan, engine, load, math.prod(x.view.shape))
        generator = ConvGenerator(params, layer, plan, x, y, budget.staging(engine), stream, pixels, addend, longest)
        mine = channels.of(zip(layer.tiles, sizes, strict=True))
        if generator.pixel_tiles:
            first = number == 0 and not stream
            limit = _job_weights(layer, generator.pixel_tiles, budget, params) - table
            if first and sum(size for _, size in mine) + table <= budget.windows:
                limit = budget.windows - table
            batches = _batches(mine, limit)
            jobs += [
                _quickest(generator, number, engine, tiles, first and tiles is batches[0], budget) for tiles in batches
            ]
    order = "pixels" if plan.pixels_outer else "channels"
    tile = (
        f"{plan.rows}x{plan.cols} pixels, kernel {plan.chunk_rows}x{plan.chunk_cols}, "
        f"{plan.chunk_channels} channels, {order} outer" + ", folded" * plan.fold + ", streamed" * stream
    )
    return Generated(jobs, tile)


def _quickest(
    generator: ConvGenerator, number: int, engine: int, tiles: list[ChannelTile], own_loads: bool, budget: Lv2Budget
) -> JobProgram:  # fmt: skip
    """The job with the shortest schedule, over how its first and last tile are cut."""
    if not generator.tapers:
        return generator.job(number, engine, tiles, own_loads)
    jobs = [generator.job(number, engine, tiles, own_loads, ends) for ends in ENDS]
    return min(jobs, key=lambda job: schedule(job.tasks, generator.params, engines=budget.engines).cycles)


def _flattened(layer: ConvLayer, operands: list[TensorOperand]) -> tuple[ConvLayer, list[TensorOperand]]:
    """1x1 convolutions see all their pixels as one row, so that tiles need not follow image rows."""
    views = [view for operand in operands if (view := operand.view.flattened())]
    if not layer.flat or len(views) < len(operands):
        return layer, operands
    region = replace(layer.regions[0], y=0, rows=1, x=0, cols=views[0].shape[2])
    flat = [replace(operand, view=view) for operand, view in zip(operands, views, strict=True)]
    return replace(layer, regions=[region]), flat


def _weight_bytes(layer: ConvLayer, plan: ConvPlan, tile: ChannelTile, params: SocParams) -> int:
    return plan.weight_size * len(plan.chunks(layer, tile.channels))


def _job_weights(layer: ConvLayer, pixels: list[PixelTile], budget: Lv2Budget, params: SocParams) -> int:
    """Bytes of weights that a job of several channel tiles may have, on an engine that computes ``pixels``.

    Half of the ring, where weights take longer from DRAM than the MAC array needs for them: the next job's load fills
    all the time that this one takes, and each job more would begin with an idle array once more.
    """
    if layer.depthwise:
        return budget.job_weights
    block = params.rows * params.out_channels
    load = block * budget.engines / params.dram_bytes_per_cycle
    compute = sum(max(tile.pixels, params.rows) for tile in pixels)
    return budget.windows // 2 if load > compute else budget.job_weights


def _shares(
    layer: ConvLayer, plan: ConvPlan, engine: int, load: TilingContext, input_bytes: int
) -> tuple[EngineShare, EngineShare]:
    """Parts of an engine: of the channel tiles and of the pixel tiles. Channels are split where that balances as well:
    then no engine loads the weights of another; but pixels if the input comes from DRAM and is larger than those."""
    part, engines = EngineShare(engine, load.engines), load.engines
    by_channels = imbalance(len(layer.tiles), engines)
    by_pixels = imbalance(len(pixel_tiles(layer, plan.rows, plan.cols, load.images)), engines)
    if load.in_dram and input_bytes > layer.weights.size and by_pixels <= max(1.05, by_channels):
        return EngineShare(), part
    if by_channels <= max(1.05, by_pixels):
        return part, EngineShare()
    return EngineShare(), part


def _batches(tiles: list[tuple[ChannelTile, int]], limit: int) -> list[list[ChannelTile]]:
    """Consecutive tiles in batches of about equal length whose weights stay within ``limit`` bytes; a larger tile
    stands alone."""
    most = max(1, limit // max((size for _, size in tiles), default=1))
    count = max(1, -(-len(tiles) // most))
    bounds = [len(tiles) * i // count for i in range(count + 1)]
    batches = [[tile for tile, _ in tiles[low:high]] for low, high in itertools.pairwise(bounds)]
    return [batch for batch in batches if batch]
