"""Maxima and sums over windows on the vector unit.

A maximum over a window is the maximum of those of its columns. Windows side by side share columns, so a tile takes
fewer steps if it makes maxima of columns first, then of those: 6 for 3x3 instead of 9, 10 for 5x5 instead of 25.
"""

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from compiler.emission.kernels.region_tiles import engine_tiles, most_channels, row_parts
from compiler.emission.kernels.registry import Kernel, KernelContext, kernel
from compiler.emission.kernels.vector_job import VectorJob, free_lv1, in_words
from compiler.emission.program import JobProgram, Sem, Task
from compiler.ir import CompileError, Requantisation
from compiler.plan.layers import EngineShare, WindowLayer, sum_params_bytes
from compiler.plan.memory.operand import TensorOperand
from compiler.plan.memory.tensor_view import PixelBox, boxes
from compiler.plan.tiles import PixelTiles
from compiler.plan.work import staged_together
from sim.cost import TILE_START, tile_load_cycles

_MAX_COUNT = (1 << 12) - 1
_ANOTHER = 64  #: cycles that an instruction more takes, about

_Shape = tuple[int, int, int]  #: rows, columns and channels of a tile


@kernel
class WindowKernel(Kernel[PixelTiles]):
    """Maxima and sums over windows; the engines share the tiles."""

    layers = WindowLayer

    def choose(self, layer: WindowLayer, context: KernelContext) -> PixelTiles:
        """Return the tile that loads least."""
        params, shape = context.params, context.operand(layer.output).view.shape
        free = free_lv1(params, context.lv1, layer.requantise) - 2 * params.lv1_word
        free -= sum_params_bytes(params) if _shares_columns(layer, shape) else 0
        staging, budget = context.budget.staging(0).size // 2, free // 2
        most = most_channels(context, [context.first(layer).view])
        fitting = list(_fitting(layer, shape, min(budget, staging // 2), params.vec_lanes, most))
        on_chip = context.first(layer).view.on_chip and context.operand(layer.output).view.on_chip
        if not fitting and on_chip:  # nothing is staged
            fitting = list(_fitting(layer, shape, budget, params.vec_lanes, most))
        if not fitting:
            budget = budget if on_chip else min(budget, staging // 2)
            (kh, kw), lanes = layer.kernel, params.vec_lanes
            raise CompileError(
                f"operator {layer.name!r}: a {kh}x{kw} window of {lanes} channels exceeds the {budget} bytes an LV1 "
                "tile may have: choose a preset with a larger lv1_bytes"
            )
        loads = _Loads(layer, shape, context)
        tile = min(fitting, key=loads.price)
        if context.made is not None:
            lower = [(rows // part, cols, channels) for rows, cols, channels in fitting for part in (1, 2, 4)]
            tile = _soonest(layer, [tile, *(shape for shape in lower if shape[0] and shape[2] == tile[2])], context)
        return PixelTiles(*tile)

    def job(self, layer: WindowLayer, tiles: PixelTiles, context: KernelContext, engine: int) -> JobProgram | None:
        """Return the tiles of an engine; None if it has none."""
        share = EngineShare(engine, context.budget.engines)
        rows, cols, channels = tile = tiles.rows, tiles.cols, tiles.channels
        x, y, longest = context.first(layer), context.operand(layer.output), context.longest
        staged = _Loads(layer, y.view.shape, context).staged(tile)
        dtype = "int8" if x.signed else "uint8"
        between = Requantisation.unchanged(dtype, x.zero_point) if _shares_columns(layer, y.view.shape) else None
        header = {"zp_a": x.zero_point, "bias": layer.bias}
        build = VectorJob(context, share.index, layer.requantise, header, between)
        lanes, (sh, sw), (high, wide) = context.params.vec_lanes, layer.strides, layer.span
        pitch, in_cols = -(-channels // lanes) * lanes, (cols - 1) * sw + wide
        in_size = ((rows - 1) * sh + high) * in_cols * pitch
        ring = build.ring(Sem.A_FULL, Sem.A_FREE, in_size)
        out = build.ring(Sem.OUT_FULL, Sem.OUT_FREE, rows * (in_cols if between else cols) * pitch)
        stage = build.stage(x, in_size // pitch * staged, Sem.STAGE_FULL, Sem.STAGE_FREE)
        spill = build.spill(y, rows * cols * pitch)
        lowest = 0x80 if x.signed else 0
        height = y.view.shape[1]
        found = list(row_parts(boxes(y.view.shape, rows, cols, channels), context, height))
        if staged > channels:
            found.sort(key=lambda box: (box.n, box.y, box.x, box.c))
        pairs = [(box, _window(layer, box)) for box in found]
        read = [(pair, pair[0], [part[1:] for part in x.view.parts_of(pair[1])]) for pair in pairs]
        for box, source in engine_tiles(read, context, share, height):
            line = -(-box.channels // lanes) * lanes
            fill, row = ring.fill(box), source.cols * line
            whole = _widened(source, staged, x.view.shape[3]) if staged > channels else source
            ring.filled_by(fill, build.job.load(x.view, source, fill.address, row, line, lowest, stage, whole, whole))
            result = out.fill(box)
            shape = box.rows, box.cols, line // lanes
            windows = _Pass(layer, "result", shape, fill.address, row, result.address)
            columns, along = windows.halves(source.cols)
            if between and columns.steps + along.steps + _ANOTHER < windows.steps:
                first = columns.emit(build, x, longest)
                vecs = [*first, *along.emit(build, x, longest, first[-1])]
            else:
                vecs = first = windows.emit(build, x, longest)
            ring.read_by(fill, *first)
            out.filled_by(result, vecs)
            out.read_by(result, build.job.store(y.view, box, result.address, box.cols * line, line, spill, box))
        return build.finished()


def _shares_columns(layer: WindowLayer, shape: tuple[int, int, int, int]) -> bool:
    """Return whether tiles of a result of ``shape`` may make maxima of columns first."""
    return layer.steps(shape[2]) < math.prod(layer.kernel)


@dataclass(frozen=True)
class _Pass:
    """Makes ``shape`` vectors (rows, columns, groups of channels) of one tile by windows of ``layer``, whose sizes and
    strides are taken from it, from those at ``source`` in LV1, ``row`` bytes a row, to ``target``, by the
    parameters ``block``."""

    layer: WindowLayer
    block: str
    shape: _Shape
    source: int
    row: int
    target: int

    @property
    def steps(self) -> int:
        """Return the vectors that it reads."""
        return math.prod(self.shape) * math.prod(self.layer.kernel)

    def halves(self, cols: int) -> tuple["_Pass", "_Pass"]:
        """Return maxima of columns, ``cols`` of them in each row, and maxima of those, which take their place: what a
        vector overwrites was read for it, or before."""
        layer, (rows, _, groups) = self.layer, self.shape
        (kh, kw), (sh, sw), (dh, dw) = layer.kernel, layer.strides, layer.dilations
        down = replace(layer, kernel=(kh, 1), strides=(sh, 1), dilations=(dh, 1))
        along = replace(layer, kernel=(1, kw), strides=(1, sw), dilations=(1, dw))
        return (
            replace(self, layer=down, block="between", shape=(rows, cols, groups)),
            replace(self, layer=along, source=self.target),
        )

    def emit(self, build: VectorJob, x: TensorOperand, longest: int, after: Task | None = None) -> list[Task]:
        """Emit the instructions, each of ``longest`` cycles at most if it is not 0; ``after``: the one before, if they
        read its result."""
        vecs, lanes, (rows, cols, groups) = list[Task](), build.params.vec_lanes, self.shape
        (kh, kw), (sh, sw), (dh, dw) = self.layer.kernel, self.layer.strides, self.layer.dilations
        line, row = groups * lanes, self.row
        cycles = kh * kw * cols * groups
        for first, count in _parts(rows, cycles, longest):
            for group, some in _parts(groups, count * cycles // groups, longest):
                fields = {
                    "op": self.layer.op_code, "a_signed": int(x.signed), "n2": count, "n1": cols, "n0": some,
                    "k1": kh, "k0": kw, "a": self.source + first * sh * row + group * lanes, "a_s2": sh * row,
                    "a_s1": sw * line, "a_s0": lanes, "a_k1": dh * row, "a_k0": dw * line,
                    "d": self.target + first * cols * line + group * lanes, "d_s2": cols * line, "d_s1": line,
                    "d_s0": lanes,
                }  # fmt: skip
                vecs.append(build.vec(self.block, fields, after))
                after = None
        return vecs


def _window(layer: WindowLayer, box: PixelBox) -> PixelBox:
    """Return the input of ``box`` of the output."""
    (high, wide), (sh, sw), (top, left) = layer.span, layer.strides, layer.pads
    return PixelBox(
        box.n, box.y * sh - top, (box.rows - 1) * sh + high, box.x * sw - left, (box.cols - 1) * sw + wide, box.c,
        box.channels,
    )  # fmt: skip


def _widened(source: PixelBox, channels: int, depth: int) -> PixelBox:
    """Return ``source`` with the ``channels`` channels, of ``depth``, among which are its own."""
    first = source.c // channels * channels
    return replace(source, c=first, channels=min(channels, depth - first))


def _parts(count: int, cycles: int, longest: int) -> list[tuple[int, int]]:
    """Return the first item and number of items of nearly equal parts of ``count`` items of ``cycles`` cycles each, so
    that a part takes ``longest`` at most if it has more than one item; 0: any."""
    pieces = min(count, -(-count * cycles // longest)) if longest else 1
    bounds = [count * i // pieces for i in range(pieces + 1)]
    return [(low, high - low) for low, high in itertools.pairwise(bounds)]


class _Loads:
    """What tiles load: all of it to LV1, and what lies in DRAM to LV2 before."""

    def __init__(self, layer: WindowLayer, shape: tuple[int, int, int, int], context: KernelContext) -> None:
        self._span, self._strides, self._shape = layer.span, layer.strides, shape
        self._params, self._staging = context.params, context.budget.staging(0).size
        self._on_chip = context.first(layer).view.on_chip
        self._beside = context.made is not None
        self._spills = not context.operand(layer.output).view.on_chip

    def price(self, tile: _Shape) -> float:
        """Return the bytes, and what other cycles are worth in bytes."""
        rows, cols, channels = tile
        _, height, width, depth = self._shape
        lanes, parts = self._params.vec_lanes, -(-depth // channels)
        tiles = -(-height // rows) * -(-width // cols)
        found = float(tiles * parts * (math.prod(self._window(tile)) * channels + TILE_START * lanes))
        if self._on_chip:
            return found
        loads = tile_load_cycles(*self._window(tile), self.staged(tile), depth, False, self._params)
        return found + tiles * loads * lanes

    def staged(self, tile: _Shape) -> int:
        """Return how many channels one load brings from DRAM to LV2 for ``tile`` and those behind it: all, if they
        leave half of the staging area to others; else as many as two buffers have room for, beside two of results that
        spill, as short runs take as long as longer ones. In a region others use the area, too."""
        rows, cols, channels = tile
        depth, pixels = self._shape[3], math.prod(self._window(tile))
        if self._on_chip or channels >= depth:
            return channels
        if staged_together(pixels, depth, self._staging):
            return depth
        if self._beside:
            return channels
        word, results = self._params.lv1_word, in_words(rows * cols * channels, self._params)
        room = self._staging // 2 - (results if self._spills else 0)
        most = room // word * word // pixels
        return min(depth, max(1, most // channels) * channels)

    def _window(self, tile: _Shape) -> tuple[int, int]:
        """Return the rows and columns that a tile reads."""
        (high, wide), (sh, sw) = self._span, self._strides
        return (tile[0] - 1) * sh + high, (tile[1] - 1) * sw + wide


def _soonest(layer: WindowLayer, plans: Iterable[_Shape], context: KernelContext) -> _Shape:
    """Return the tile with which the layer ends first behind the layers of a region that make its input, each tile of
    which can begin when that is ready: tiles should lie as those of the layer before do."""
    made, x, y = context.made, context.first(layer).view, context.operand(layer.output).view
    assert made is not None

    def ends(tile: _Shape) -> float:
        lanes = context.params.vec_lanes * context.budget.engines
        found = [(made.ready(x, _window(layer, box)), box) for box in boxes(y.shape, *tile)]
        now = 0.0
        for ready, box in sorted(found, key=lambda entry: entry[0]):
            now = max(now, ready) + TILE_START + box.rows * box.cols * box.channels * layer.steps(box.cols) / lanes
        return now

    return min(plans, key=ends)


def _fitting(
    layer: WindowLayer, shape: tuple[int, int, int, int], budget: int, lanes: int, most: int
) -> Iterator[_Shape]:  # fmt: skip
    """Yield the tallest tiles of each width whose input and output take at most ``budget`` bytes, of ``most`` channels,
    or any number if that is 0."""
    (high, wide), (sh, sw) = layer.span, layer.strides
    _, height, width, depth = shape
    channels = -(-(min(depth, most) if most else depth) // lanes) * lanes
    shared = _shares_columns(layer, shape)
    while True:
        for cols in dict.fromkeys(-(-width // parts) for parts in range(1, width + 1)):
            in_cols = (cols - 1) * sw + wide
            # channels * (((rows - 1) * sh + high) * in_cols + rows * out_cols) <= budget
            out_cols = in_cols if shared else cols
            rows = (budget // channels - (high - sh) * in_cols) // (sh * in_cols + out_cols)
            if rows > 0:
                yield min(rows, height, _MAX_COUNT), cols, min(channels, depth)
        if channels == lanes:
            return
        channels = max(lanes, channels // 2 // lanes * lanes)
