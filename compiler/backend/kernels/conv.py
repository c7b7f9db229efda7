"""Convolutions on the MAC arrays: grouped, depthwise and fully connected ones, average pools, with or without a sum."""

import itertools
import math
from dataclasses import dataclass, replace

from compiler.backend.kernels.conv_emitter import ConvEmitter
from compiler.backend.kernels.conv_share import Bands, EngineSplit, of_band, row_bands
from compiler.backend.kernels.conv_work import Addend, ConvWork
from compiler.backend.kernels.registry import Kernel, KernelContext, Plan, kernel
from compiler.backend.layers.engine_share import EngineShare
from compiler.backend.layers.layer import ChannelTile, ConvLayer, Layer
from compiler.backend.layers.region_share import Share
from compiler.backend.layers.vec_params import conv_params_bytes, sum_params_bytes
from compiler.backend.memory.budget import Lv2Budget
from compiler.backend.memory.operand import TensorOperand
from compiler.backend.program.job import JobProgram
from compiler.backend.program.schedule import schedule
from compiler.backend.tiling.conv_geometry import PixelTile, pixel_tiles
from compiler.backend.tiling.conv_search import best_tiling
from compiler.backend.tiling.conv_tiling import ConvTiling, TilingContext
from compiler.backend.tiling.end_tiles import ENDS, Ends
from compiler.ir import CompileError
from hw.contract.isa import TABLE_BYTES
from hw.contract.params import SocParams
from sim.cost import moved


@dataclass(frozen=True)
class ConvPlan(Plan):
    """The tiling of a convolution. ``layer`` and its operands may be flattened: all pixels as one row. ``sizes``: bytes
    of window that each channel tile takes, ``table``: that all share; ``streamed``: weights come chunk by chunk,
    because those of one tile exceed the window. Engines share channel tiles (``by_channels``), pixel tiles, or rows
    (``bands``: by engine the pixels that it makes)."""

    layer: ConvLayer
    x: TensorOperand
    y: TensorOperand
    addend: Addend | None
    context: TilingContext
    tiling: ConvTiling
    sizes: tuple[int, ...]
    table: int
    streamed: bool
    by_channels: bool = True
    bands: Bands | None = None


@dataclass(frozen=True)
class ConvChoice:
    """The tiling of an output of ``shape`` rows and columns, and how engines share it."""

    tiling: ConvTiling
    shape: tuple[int, int]
    by_channels: bool
    banded: bool

    def tiling_of(self, shape: tuple[int, int]) -> ConvTiling:
        """Return the tiling of a smaller output, as many tiles of about equal size."""
        rows, cols = (
            most if size == whole else -(-size // -(-whole // most))
            for most, size, whole in zip((self.tiling.rows, self.tiling.cols), shape, self.shape, strict=True)
        )
        return replace(self.tiling, rows=rows, cols=cols)


@kernel
class ConvKernel(Kernel[ConvPlan]):
    """Sums of products; the engines share the channel tiles or the pixel tiles."""

    def match(self, layer: Layer, context: KernelContext) -> bool:
        """Any convolution."""
        return isinstance(layer, ConvLayer)

    def plan(self, layer: ConvLayer, context: KernelContext) -> ConvPlan:
        """Return the cheapest tiling by estimate; streamed weights only where there is no other way."""
        params, budget = context.params, context.budget
        operands = [context.operand(name) for name in (layer.output, *layer.inputs)]
        images, height, width, _ = operands[0].view.shape
        layer, [y, x, *others] = _flattened(layer, operands)
        addend = None
        if layer.addition:
            own, added = context.placement.tensors[layer.addition.own], layer.addition
            table_behind = added.op.requantise.table is not None
            constant = added.constant is not None
            other = context.operand(added.other) if constant else others[0]
            addend = Addend(other, own.dtype == "int8", own.zero_point, added.broadcast, table_behind, constant)
        around = TilingContext(
            x.view.shape[0], not x.view.on_chip, not y.view.on_chip, budget.job_weights, budget.engines,
            x.view.strides[2], context.lv1.size, budget.staging(0).size,
        )  # fmt: skip
        bands = row_bands(images, height, width, budget.engines, flat=y.view.shape[1] < height)
        choice = context.choose(lambda: _choice(layer, x, around, bands, context))
        by_channels, found = choice.by_channels, bands if choice.banded else None
        around = replace(around, engines=1) if found else around
        tiling = choice.tiling_of(_most_pixels(of_band(layer, bands[-1]) if found else layer))
        fixed = len(layer.areas) * conv_params_bytes(layer, params)
        table = (TABLE_BYTES if layer.table is not None else 0) + (sum_params_bytes(params) if addend else 0)
        sizes = [fixed + tiling.weight_size * len(tiling.chunks(layer, tile.channels)) for tile in layer.tiles]
        streamed = max(sizes) + table > budget.windows
        if streamed:
            sizes = [fixed] * len(layer.tiles)
        if max(sizes) + table > budget.windows:
            raise CompileError(
                f"operator {layer.name!r}: the requantisation of one tile takes {max(sizes) + table} bytes, a weight "
                f"window {budget.windows}: choose a preset with a larger lv2_bytes"
            )
        summary = tiling.summary + ", streamed" * streamed
        return ConvPlan(summary, layer, x, y, addend, around, tiling, tuple(sizes), table, streamed, by_channels, found)

    def emit(self, plan: ConvPlan, context: KernelContext) -> list[JobProgram]:
        """Return the jobs of each engine, as many as it takes for their weights to fit."""
        return [job for engine in range(context.budget.engines) for job in _engine_jobs(plan, context, engine)]


def _choice(
    layer: ConvLayer, x: TensorOperand, around: TilingContext, bands: Bands, context: KernelContext
) -> ConvChoice:
    """Return the cheapest tiling, and whether engines share channels or rows."""
    params = context.params
    by_channels, banded = context.share is Share.CHANNELS, context.share is Share.ROWS
    if not banded:
        tiling = best_tiling(layer, around, params)
        if around.engines > 1 and context.share is Share.ANY:
            split = EngineSplit(layer, tiling, around, bands)
            loads_input = around.in_dram and math.prod(x.view.shape) > layer.weights.size
            by_channels = split.channels(loads_input)
            own_loads = (context.number == 0 or context.own_loads) and not context.budget.placed
            banded = split.rows(loads_input, params, own_loads)
    if banded:
        layer = of_band(layer, bands[-1])
        tiling = best_tiling(layer, replace(around, engines=1), params)
    return ConvChoice(tiling, _most_pixels(layer), by_channels, banded)


def _most_pixels(layer: ConvLayer) -> tuple[int, int]:
    """Return the rows and columns of the largest area, each."""
    return max(area.rows for area in layer.areas), max(area.cols for area in layer.areas)


def _engine_jobs(plan: ConvPlan, context: KernelContext, engine: int) -> list[JobProgram]:
    params, budget, layer, tiling = context.params, context.budget, plan.layer, plan.tiling
    channels, mine = _shares(plan, engine, budget.engines)
    if not mine:
        return []
    work = ConvWork(
        params, layer, tiling, plan.x, plan.y, plan.addend, budget.staging(engine), plan.streamed, tuple(mine),
        context.longest, context.lv1.base,
    )  # fmt: skip
    tiles = channels.of(zip(layer.tiles, plan.sizes, strict=True))
    first = (context.starts or context.own_loads) and not plan.streamed and not budget.placed
    limit = _job_weights(layer, mine, budget, params) - plan.table
    if first and sum(size for _, size in tiles) + plan.table <= budget.windows:
        limit = budget.windows - plan.table
    batches, emitter = _batches(tiles, limit), ConvEmitter(work)
    return [_quickest(emitter, context, engine, batch, first and batch is batches[0]) for batch in batches]


def _quickest(
    emitter: ConvEmitter, context: KernelContext, engine: int, tiles: list[ChannelTile], own_loads: bool
) -> JobProgram:
    """Return the job with the shortest schedule, over how its first and last tile are cut."""
    number, made = context.number, dict[Ends, JobProgram]()
    if not emitter.splits_ends:
        return emitter.job(number, engine, tiles, own_loads)

    def cycles(ends: Ends) -> int:
        made[ends] = emitter.job(number, engine, tiles, own_loads, ends)
        return schedule(made[ends].tasks, context.params, engines=context.budget.engines).cycles

    ends = context.choose(lambda: min(ENDS, key=cycles))
    return made[ends] if ends in made else emitter.job(number, engine, tiles, own_loads, ends)


def _flattened(layer: ConvLayer, operands: list[TensorOperand]) -> tuple[ConvLayer, list[TensorOperand]]:
    """1x1 convolutions see all their pixels as one row, so that tiles need not follow image rows."""
    views = [view for operand in operands if (view := operand.view.flattened())]
    if not layer.flat or len(views) < len(operands):
        return layer, operands
    area = replace(layer.areas[0], y=0, rows=1, x=0, cols=views[0].shape[2])
    flat = [replace(operand, view=view) for operand, view in zip(operands, views, strict=True)]
    return replace(layer, areas=[area]), flat


def _job_weights(layer: ConvLayer, pixels: list[PixelTile], budget: Lv2Budget, params: SocParams) -> int:
    """Bytes of weights that a job of several channel tiles may have, on an engine that computes ``pixels``.

    Half of the ring, where weights take longer from DRAM than the MAC array needs for them: the next job's load fills
    all the time that this one takes, and each job more would begin with an idle array once more.
    """
    if layer.depthwise:
        return budget.job_weights
    block = params.rows * params.out_channels
    load = moved(block * budget.engines, params)
    compute = sum(max(tile.pixels, params.rows) for tile in pixels)
    return budget.windows // 2 if load > compute else budget.job_weights


def _shares(plan: ConvPlan, engine: int, engines: int) -> tuple[EngineShare, list[PixelTile]]:
    """Return the parts of an engine: of the channel tiles and of the pixel tiles."""
    layer, tiling, part = plan.layer, plan.tiling, EngineShare(engine, engines)
    if plan.bands:
        return EngineShare(), pixel_tiles(layer, tiling.rows, tiling.cols, plan.context.images, plan.bands[engine])
    pixels = pixel_tiles(layer, tiling.rows, tiling.cols, plan.context.images)
    return (part, pixels) if plan.by_channels else (EngineShare(), part.of(pixels))


def _batches(tiles: list[tuple[ChannelTile, int]], limit: int) -> list[list[ChannelTile]]:
    """Return consecutive tiles in batches of about equal length whose weights stay within ``limit`` bytes; a larger
    tile stands alone."""
    most = max(1, limit // max((size for _, size in tiles), default=1))
    count = max(1, -(-len(tiles) // most))
    bounds = [len(tiles) * i // count for i in range(count + 1)]
    batches = [[tile for tile, _ in tiles[low:high]] for low, high in itertools.pairwise(bounds)]
    return [batch for batch in batches if batch]
