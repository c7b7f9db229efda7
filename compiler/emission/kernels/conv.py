"""Convolutions on the MAC arrays: grouped, depthwise and fully connected ones, average pools, with or without a sum."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

from compiler.emission.kernels.conv_emitter import ConvEmitter
from compiler.emission.kernels.conv_work import Addend, Bands, ConvWork, EngineSplit, of_band, row_bands
from compiler.emission.kernels.matrix_vector import MatrixVectorEmitter, job_weights, smaller_at_the_end
from compiler.emission.kernels.registry import Kernel, KernelContext, kernel
from compiler.emission.program import JobProgram
from compiler.emission.program.schedule import schedule
from compiler.emission.program.task import release
from compiler.ir import CompileError
from compiler.plan.layers import ChannelTile, ConvLayer, EngineShare, Share, conv_params_bytes, sum_params_bytes
from compiler.plan.memory.budget import Lv2Budget
from compiler.plan.memory.operand import TensorOperand
from compiler.plan.plan_error import PlanError
from compiler.plan.tiles import AnyTiles, ConvTiles, SharedBy
from compiler.plan.tiling.conv_search import best_tiling, sized_tiling
from compiler.plan.tiling.conv_tiling import (
    WHOLE,
    ConvTiling,
    Ends,
    PixelTile,
    TilingContext,
    pixel_tiles,
    unlike,
)
from hw.contract.isa import TABLE_BYTES
from hw.contract.params import KIB, SocParams
from sim.cost import moved

_MANY_WEIGHTS = 16 * KIB  #: bytes of a layer, beside whose loads the fetch of its instructions counts


@dataclass(frozen=True)
class _CutConv:
    """Is a convolution in tiles. ``layer`` and its operands may be flattened: all pixels as one row. ``sizes``: bytes
    of window that each channel tile takes, ``table``: that all share; ``streamed``: weights come chunk by chunk,
    because those of one tile exceed the window. Engines share rows by ``bands``: by engine the pixels that it makes."""

    layer: ConvLayer
    x: TensorOperand
    y: TensorOperand
    addend: Addend | None
    tiling: ConvTiling
    images: int
    sizes: tuple[int, ...]
    table: int
    streamed: bool
    by_channels: bool
    bands: Bands | None

    @classmethod
    def of(cls, layer: ConvLayer, tiles: ConvTiles, context: KernelContext) -> "_CutConv":
        """Return ``layer`` in ``tiles``; weights are streamed only where there is no other way. Raises
        :class:`CompileError` if its parameters exceed the window."""
        params, budget = context.params, context.budget
        bands = _bands(layer, context) if tiles.by is SharedBy.ROWS else None
        layer, [y, x, *others] = _flattened(layer, context)
        addend = _addend(layer, others, context)
        tiling = tiles.tiling_of(_most_pixels(of_band(layer, bands[-1]) if bands else layer))
        fixed = len(layer.areas) * conv_params_bytes(layer, params)
        table = (TABLE_BYTES if layer.table is not None else 0) + (sum_params_bytes(params) if addend else 0)
        chunks = {tile.channels: unlike(layer, tiling.chunks(layer, tile.channels)) for tile in layer.tiles}
        sizes = [fixed + tiling.weight_size * len(chunks[tile.channels]) for tile in layer.tiles]
        streamed = max(sizes) + table > budget.windows
        if streamed:
            sizes = [fixed] * len(layer.tiles)
        if max(sizes) + table > budget.windows:
            raise CompileError(
                f"operator {layer.name!r}: the requantisation of one tile takes {max(sizes) + table} bytes, a weight "
                f"window {budget.windows}: choose a preset with a larger lv2_bytes"
            )
        by_channels = tiles.by is SharedBy.CHANNELS
        images = x.view.shape[0]
        return cls(layer, x, y, addend, tiling, images, tuple(sizes), table, streamed, by_channels, bands)


@kernel
class ConvKernel(Kernel[ConvTiles]):
    """Sums of products; the engines share the channel tiles or the pixel tiles."""

    layers = ConvLayer

    def choose(self, layer: ConvLayer, context: KernelContext) -> ConvTiles:
        """Return the cheapest tiling by estimate, and for each job the ends that take least by its schedule."""
        tiles = _cheapest(layer, context)
        batches = _batches(_CutConv.of(layer, tiles, context), context)
        return replace(tiles, ends=tuple(_ends(batch, context) for batch in batches if batch.splits_ends))

    def given(self, layer: ConvLayer, tiles: AnyTiles, context: KernelContext) -> ConvTiles:
        """Return what the base class says, with the sizes that follow from pixels and chunks of the tiling."""
        found = super().given(layer, tiles, context)
        layer, around = _tiled(layer, context, banded=found.by is SharedBy.ROWS)
        sized, shape = sized_tiling(layer, around, context.params, found.tiling), _most_pixels(layer)
        if sized is None:
            raise PlanError(f"tiles.tiling does not fit in LV0 and LV1: {found.tiling}")
        for field in fields(sized):
            own, must = getattr(found.tiling, field.name), getattr(sized, field.name)
            if own != must and (own or field.default != 0):
                raise PlanError(f"tiles.tiling.{field.name} is {own}, and must be {must} beside the others")
        if any(whole < size for whole, size in zip(found.shape, shape, strict=True)):
            raise PlanError(f"tiles.shape is {found.shape}, and must be {shape}")
        return replace(found, tiling=sized)

    def emit(self, layer: ConvLayer, tiles: ConvTiles, context: KernelContext) -> list[JobProgram]:
        """Return the jobs of each engine, as many as it takes for their weights to fit. Raises :class:`PlanError` if
        ``tiles`` are of other jobs."""
        batches = _batches(_CutConv.of(layer, tiles, context), context)
        split = [batch.splits_ends for batch in batches]
        if sum(split) > len(tiles.ends):
            raise PlanError(f"operator {layer.name!r}: it has {sum(split)} jobs to cut, in the plan {len(tiles.ends)}")
        ends = iter(tiles.ends)
        return [
            batch.job(context.number, next(ends) if cut else WHOLE) for batch, cut in zip(batches, split, strict=True)
        ]


def _addend(layer: ConvLayer, others: Sequence[TensorOperand], context: KernelContext) -> Addend | None:
    """Return what ``layer`` adds to its result, if anything; ``others`` are its operands beside the input."""
    added = layer.addition
    if added is None:
        return None
    own, constant = context.placement.tensors[added.own], added.constant is not None
    other = context.operand(added.other) if constant else others[0]
    table_behind = added.op.requantise.table is not None
    return Addend(other, own.dtype == "int8", own.zero_point, added.broadcast, table_behind, constant)


def _bands(layer: ConvLayer, context: KernelContext) -> Bands:
    """Return the rows of each engine; all pixels of all images are one row in a layer that is flattened."""
    images, height, width, _ = context.operand(layer.output).view.shape
    _, [y, *_] = _flattened(layer, context)
    return row_bands(images, height, width, context.budget.engines, flat=y.view.shape[:2] != (images, height))


def _cheapest(layer: ConvLayer, context: KernelContext) -> ConvTiles:
    """Return the cheapest tiling and what engines share, with ends that are still to be chosen."""
    params, budget = context.params, context.budget
    bands, x = _bands(layer, context), context.first(layer)
    whole, (layer, around) = layer, _tiled(layer, context, banded=False)
    by_channels, banded = context.share is Share.CHANNELS, context.share is Share.ROWS
    if not banded:
        tiling = best_tiling(layer, around, params)
        if around.engines > 1 and context.share is Share.ANY:
            split = EngineSplit(layer, tiling, around, bands, params)
            loads_input = around.in_dram and math.prod(x.view.shape) > layer.weights.size
            by_channels = split.channels(loads_input)
            own_loads = (context.number == 0 or context.own_loads) and not budget.placed
            banded = split.rows(loads_input, params, own_loads)
    if banded:
        layer, around = _tiled(whole, context, banded=True)
        tiling = best_tiling(layer, around, params)
    by = SharedBy.ROWS if banded else SharedBy.CHANNELS if by_channels else SharedBy.PIXELS
    return ConvTiles(tiling, _most_pixels(layer), by)


def _tiled(layer: ConvLayer, context: KernelContext, *, banded: bool) -> tuple[ConvLayer, TilingContext]:
    """Return what is cut into tiles, ``layer`` or the rows of it that the last engine makes, and what is around."""
    bands, budget = _bands(layer, context) if banded else None, context.budget
    layer, [y, x, *_] = _flattened(layer, context)
    around = TilingContext(
        x.view.shape[0], not x.view.on_chip, not y.view.on_chip, budget.job_weights, 1 if bands else budget.engines,
        x.view.strides[2], context.lv1.size, budget.staging(0).size,
    )  # fmt: skip
    return (of_band(layer, bands[-1]) if bands else layer), around


def _most_pixels(layer: ConvLayer) -> tuple[int, int]:
    """Return the rows and columns of the largest area, each."""
    return max(area.rows for area in layer.areas), max(area.cols for area in layer.areas)


@dataclass(frozen=True)
class _Batch:
    """Holds the channel tiles of one job of an engine. Jobs of an engine share ``emitter``, and are emitted in
    order."""

    emitter: ConvEmitter | MatrixVectorEmitter
    engine: int
    tiles: tuple[ChannelTile, ...]
    own_loads: bool

    @property
    def splits_ends(self) -> bool:
        """Return whether tiles at the ends of the job may be cut."""
        return self.emitter.splits_ends(self.tiles)

    def job(self, number: int, ends: Ends) -> JobProgram:
        """Return the job, which belongs to layer ``number``."""
        return self.emitter.job(number, self.engine, list(self.tiles), self.own_loads, ends)


def _batches(cut: _CutConv, context: KernelContext) -> list[_Batch]:
    """Return what each job of all engines makes."""
    return [batch for engine in range(context.budget.engines) for batch in _engine_batches(cut, context, engine)]


def _engine_batches(cut: _CutConv, context: KernelContext, engine: int) -> Iterator[_Batch]:
    params, budget, layer, tiling = context.params, context.budget, cut.layer, cut.tiling
    channels, mine = _shares(cut, engine, budget.engines)
    if not mine:
        return
    work = ConvWork(
        params, layer, tiling, cut.x, cut.y, cut.addend, budget.staging(engine), cut.streamed, tuple(mine),
        context.longest, context.lv1.base,
    )  # fmt: skip
    tiles = channels.of(zip(layer.tiles, cut.sizes, strict=True))
    first = (context.starts or context.own_loads) and not cut.streamed and not budget.placed
    emitter = _emitter(work, context)
    limit = _job_weights(layer, mine, budget, params) - cut.table
    if isinstance(emitter, MatrixVectorEmitter):
        limit = job_weights(budget, int4=work.int4) - cut.table
        if work.int4:
            tiles = [(tile, emitter.sizes.tile) for tile, _ in tiles]
    if first and sum(size for _, size in tiles) + cut.table <= budget.windows:
        limit = budget.windows - cut.table
    batches = _even_batches(tiles, limit)
    longest = isinstance(emitter, MatrixVectorEmitter) or _loads_longest(layer, mine, budget, params)
    if batches and context.ends and longest:
        batches = smaller_at_the_end(batches, tiles[0][1])
    for number, batch in enumerate(batches):
        yield _Batch(emitter, engine, tuple(batch), first and number == 0)


def _ends(batch: _Batch, context: KernelContext) -> Ends:
    """Return into how many parts the first and the last tile of a job are cut so that it takes least by its
    schedule."""

    def cycles(ends: Ends) -> int:
        tasks = batch.job(context.number, ends).tasks
        found = schedule(tasks, context.params, engines=context.budget.engines).cycles
        release(tasks)
        return found

    return min(batch.emitter.possible_ends(batch.tiles), key=cycles)


def _flattened(layer: ConvLayer, context: KernelContext) -> tuple[ConvLayer, list[TensorOperand]]:
    """Return ``layer``, its output and its inputs; 1x1 convolutions see all their pixels as one row, so that tiles need
    not follow image rows."""
    others = [context.operand(name) for name in layer.inputs[layer.pieces :]]
    operands = [context.operand(layer.output), context.first(layer), *others]
    views = [view for operand in operands if (view := operand.view.flattened())]
    if layer.flat and len(views) == len(operands):
        area = replace(layer.areas[0], y=0, rows=1, x=0, cols=views[0].shape[2])
        layer = replace(layer, areas=[area])
        operands = [replace(operand, view=view) for operand, view in zip(operands, views, strict=True)]
    return layer, operands


def _job_weights(layer: ConvLayer, pixels: list[PixelTile], budget: Lv2Budget, params: SocParams) -> int:
    """Bytes of weights that a job of several channel tiles may have, on an engine that computes ``pixels``.

    Half of the ring, where weights take longer from DRAM than the MAC array needs for them: the next job's load fills
    all the time that this one takes, and each job more would begin with an idle array once more.
    """
    return budget.windows // 2 if _loads_longest(layer, pixels, budget, params) else budget.job_weights


def _loads_longest(layer: ConvLayer, pixels: list[PixelTile], budget: Lv2Budget, params: SocParams) -> bool:
    """Return whether weights take longer from DRAM than the MAC array needs for them, on an engine that computes
    ``pixels``."""
    if layer.depthwise:
        return False
    load = moved(params.rows * params.out_channels * budget.engines, params)
    return load > sum(max(tile.pixels, params.rows) for tile in pixels)


def _emitter(work: ConvWork, context: KernelContext) -> ConvEmitter | MatrixVectorEmitter:
    """Return who emits ``work``: a matrix times a few rows if the loads of weights take longest, in the model or for
    more of them than can have come before. Else, and where weights are few, the loads may be over when the layer
    begins, and it is the shorter instructions of other convolutions that let it end sooner."""
    found, size = None, work.layer.weights.size
    if (context.loads_longest and size >= _MANY_WEIGHTS) or size > 2 * work.params.lv2_bytes:
        found = MatrixVectorEmitter.of(work, context.lv1.size)
    return found or ConvEmitter(work)


def _shares(cut: _CutConv, engine: int, engines: int) -> tuple[EngineShare, list[PixelTile]]:
    """Return the parts of an engine: of the channel tiles and of the pixel tiles."""
    layer, tiling, part = cut.layer, cut.tiling, EngineShare(engine, engines)
    if cut.bands:
        return EngineShare(), pixel_tiles(layer, tiling.rows, tiling.cols, cut.images, cut.bands[engine])
    pixels = pixel_tiles(layer, tiling.rows, tiling.cols, cut.images)
    return (part, pixels) if cut.by_channels else (EngineShare(), part.of(pixels))


def _even_batches(tiles: list[tuple[ChannelTile, int]], limit: int) -> list[list[ChannelTile]]:
    """Return consecutive tiles in batches of about equal length whose weights stay within ``limit`` bytes; a larger
    tile stands alone."""
    most = max(1, limit // max((size for _, size in tiles), default=1))
    count = max(1, -(-len(tiles) // most))
    bounds = [len(tiles) * i // count for i in range(count + 1)]
    batches = [[tile for tile, _ in tiles[low:high]] for low, high in itertools.pairwise(bounds)]
    return [batch for batch in batches if batch]
