"""Which engine computes which tile of a vector layer, and when.

Alone, a layer gives each engine a run of its tiles. In a region an engine takes the tiles whose input it makes itself,
and those first whose input is made first.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from compiler.emission.kernels.registry import KernelContext
from compiler.emission.program.region_order import RegionError
from compiler.plan.layers import EngineShare, Share, first_row
from compiler.plan.memory.tensor_view import PixelBox, TensorView

Source = tuple[TensorView, PixelBox]  #: what a tile reads of a tensor
Tile = TypeVar("Tile")


def most_channels(context: KernelContext, inputs: Sequence[TensorView]) -> int:
    """Return the channels of a tile, at most, so that one engine makes all that it reads, or all that is read of it; 0:
    any."""
    if context.made is None or context.budget.engines == 1 or context.share is Share.ROWS:
        return 0
    inside = any(context.made.engine(view, _whole(view)) != -1 for view in inputs if view.on_chip)
    return context.params.out_channels if inside or context.share is Share.CHANNELS else 0


def engine_tiles(
    tiles: Sequence[tuple[Tile, PixelBox, Sequence[Source]]], context: KernelContext, share: EngineShare, height: int
) -> list[Tile]:  # fmt: skip
    """Return the tiles of the engine of ``share``, in the order in which it should compute them. Each comes with its
    box of the result, which has ``height`` rows in all, and what it reads. Raises :class:`RegionError` where engines
    would have to read each other's results."""
    if context.made is None:
        return share.of(tile for tile, _, _ in tiles)
    blocks = 1 + max((box.c // context.params.out_channels for _, box, _ in tiles), default=0)
    own: list[list[tuple[int, Tile]]] = [[] for _ in range(share.count)]
    free: list[tuple[int, Tile]] = []
    for tile, box, sources in tiles:
        inside = [(view, part) for view, part in sources if view.on_chip]
        ready = max((context.made.ready(view, part) for view, part in inside), default=0)
        maker = _maker(context, inside) if share.count > 1 else -1
        if maker < 0 and context.share is Share.CHANNELS:
            maker = share.owner(box.c // context.params.out_channels, blocks)
        elif maker < 0 and context.share is Share.ROWS:
            maker = max(i for i in range(share.count) if first_row(height, i, share.count) <= box.y)
        (own[maker] if maker >= 0 else free).append((ready, tile))
    counts = _filled([len(some) for some in own], len(free))
    first = sum(counts[: share.index])
    mine = [*own[share.index], *free[first : first + counts[share.index]]]
    return [tile for _, tile in sorted(mine, key=lambda entry: entry[0])]


def _filled(held: Sequence[int], free: int) -> list[int]:
    """Return how many of ``free`` tiles each engine takes beside those it holds, so that all have as many as can be."""
    counts = [0] * len(held)
    for _ in range(free):
        least = min(range(len(held)), key=lambda engine: (held[engine] + counts[engine], engine))
        counts[least] += 1
    return counts


def row_parts(boxes: Iterable[PixelBox], context: KernelContext, height: int) -> Iterator[PixelBox]:
    """``boxes`` of a result of ``height`` rows, cut where the rows of another engine begin if they share it so."""
    engines = context.budget.engines if context.share is Share.ROWS else 1
    bounds = [first_row(height, engine, engines) for engine in range(engines + 1)]
    for box in boxes:
        for low, high in itertools.pairwise(bounds):
            begin, end = max(low, box.y), min(high, box.y + box.rows)
            if begin < end:
                yield replace(box, y=begin, rows=end - begin)


def parts_by_maker(box: PixelBox, view: TensorView, context: KernelContext) -> Iterator[PixelBox]:
    """``box`` in parts each of which one engine makes of the tensor at ``view``: halves of channels if those do, else
    of rows, then of columns."""
    made = context.made
    if made is None or not view.on_chip or made.engine(view, box) is not None:
        yield box
        return
    halves = _halves_of_channels(box, context.params.vec_lanes)
    if not halves or any(made.engine(view, half) is None for half in halves):
        halves = _halves_of_pixels(box) if box.rows * box.cols > 1 else halves
    if not halves:
        yield box
    for half in halves:
        yield from parts_by_maker(half, view, context)


def _halves_of_channels(box: PixelBox, lanes: int) -> tuple[PixelBox, ...]:
    """Return two halves in whole words of ``lanes`` channels; none if there is but one."""
    half = -(-box.channels // lanes) // 2 * lanes
    if not half:
        return ()
    return replace(box, channels=half), replace(box, c=box.c + half, channels=box.channels - half)


def _halves_of_pixels(box: PixelBox) -> tuple[PixelBox, ...]:
    if box.rows > 1:
        half = box.rows // 2
        return replace(box, rows=half), replace(box, y=box.y + half, rows=box.rows - half)
    half = box.cols // 2
    return replace(box, cols=half), replace(box, x=box.x + half, cols=box.cols - half)


def _maker(context: KernelContext, sources: Sequence[Source]) -> int:
    """Return the engine that makes all of ``sources`` in the region; -1 if all were there before."""
    assert context.made is not None
    makers = {context.made.engine(view, part) for view, part in sources} - {-1}
    if None in makers or len(makers) > 1:
        raise RegionError("several engines make what one tile reads")
    return next((maker for maker in makers if maker is not None), -1)


def _whole(view: TensorView) -> PixelBox:
    _, height, width, channels = view.shape
    return PixelBox(0, 0, height, 0, width, 0, channels)
