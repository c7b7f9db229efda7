"""How engines share layers: parts of a list of tiles, rows of matrices, and in a region so that no engine reads what
another makes there."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from compiler.plan.layers.layer import ConvLayer, EltwiseLayer, Layer, ProductLayer, SoftmaxLayer, WindowLayer

Item = TypeVar("Item")


@dataclass(frozen=True)
class EngineShare:
    """Part ``index`` of ``count`` nearly equal, contiguous parts of a list of tiles."""

    index: int = 0
    count: int = 1

    def of(self, items: Iterable[Item]) -> list[Item]:
        """Return the items of this part; may be empty."""
        whole = list(items)
        low, high = (len(whole) * i // self.count for i in (self.index, self.index + 1))
        return whole[low:high]

    def owner(self, item: int, items: int) -> int:
        """Return the part that item number ``item`` of ``items`` is in."""
        return next(i for i in range(self.count) if item < items * (i + 1) // self.count)


def imbalance(items: int, parts: int) -> float:
    """Return how much longer the largest of ``parts`` parts of ``items`` equal items is than a perfect part."""
    return -(-items // parts) * parts / items


class Share(Enum):
    """What of a member's result an engine makes."""

    ANY = "any"  #: whatever suits the layer: nobody in the region sees more of it than the engine itself made
    CHANNELS = "channels"  #: some channels of all pixels, for windows over them
    ROWS = "rows"  #: some rows of all channels, for sums over channels
    MATRICES = "matrices"  #: a stretch of the rows of all matrices, one after the other: see :func:`own_rows`


Edge = tuple[int, int]  #: a member that reads another: the number of that, and its own


def region_shares(
    layers: Sequence[Layer], edges: Collection[Edge], idle: Collection[int] = (), either: Share = Share.CHANNELS
) -> list[Share] | None:  # fmt: skip
    """By member of a region how engines share it; None if an engine would have to see what another makes. ``idle``:
    members that nobody computes, as a concatenation in place; ``either``: how they share what joins two members, where
    nothing else says so."""
    shares = [Share.MATRICES if isinstance(layer, ProductLayer | SoftmaxLayer) else Share.ANY for layer in layers]
    for edge in edges:
        reader = edge[1]
        wanted = Share.ANY if reader in idle else _wanted(layers[reader])
        if _masks(layers[edge[0]], layers[reader]):
            wanted = Share.MATRICES
        if wanted is None:
            return None
        if wanted is not Share.ANY:
            for member in edge:
                if shares[member] not in (Share.ANY, wanted):
                    return None
                shares[member] = wanted
    if not _spread(shares, edges):
        return None
    for reader, layer in enumerate(layers):
        makers = [maker for maker, other in edges if other == reader]
        if isinstance(layer, EltwiseLayer) and len(makers) > 1 and shares[reader] is Share.ANY:
            shares[reader] = either  # both operands of a tile must come from one engine
            _spread(shares, edges)
    return shares


def _by_window(layer: Layer) -> bool:
    """Return whether each tile of channels of the result comes from windows over the same channels of the input."""
    if isinstance(layer, ConvLayer):
        return layer.by_channels and all((tile.first, tile.channels) == (tile.out, tile.outs) for tile in layer.tiles)
    return isinstance(layer, WindowLayer)


def _wanted(layer: Layer) -> Share | None:
    """Return how members that ``layer`` reads, and itself, must be shared; None: it may read none."""
    if _by_window(layer):
        return Share.CHANNELS
    if isinstance(layer, ProductLayer | SoftmaxLayer):
        return Share.MATRICES
    if isinstance(layer, ConvLayer):
        row_by_row = layer.kernel[0] == layer.strides[0] == 1 and not layer.pads[0]
        return Share.ROWS if layer.flat or row_by_row else None
    if isinstance(layer, EltwiseLayer):
        # One pixel for all: whoever makes channels of it needs no other's.
        return {"": Share.ANY, "pixels": Share.CHANNELS}.get(layer.broadcast)
    return None


def _masks(maker: Layer, reader: Layer) -> bool:
    """Return whether ``reader`` adds one row to all rows of the scores that ``maker`` makes."""
    return isinstance(maker, ProductLayer) and isinstance(reader, EltwiseLayer) and reader.broadcast == "pixels"


def _spread(shares: list[Share], edges: Collection[Edge]) -> bool:
    """Whoever reads a member has the same share; False if two are wanted."""
    changed = True
    while changed:
        changed = False
        for edge in edges:
            maker, reader = (shares[member] for member in edge)
            if maker is not reader:
                if Share.ANY not in (maker, reader):
                    return False
                both = reader if maker is Share.ANY else maker
                for member in edge:
                    shares[member] = both
                changed = True
    return True


def first_row(height: int, engine: int, engines: int) -> int:
    """Return the first of ``height`` rows that ``engine`` of ``engines`` makes, of an image that they share by rows."""
    return height * engine // engines


@dataclass(frozen=True)
class MatrixRows:
    """``count`` rows of matrix number ``matrix`` from ``first`` on."""

    matrix: int
    first: int
    count: int


def own_rows(matrices: int, rows: int, engine: int, engines: int, most: int) -> Iterator[MatrixRows]:
    """Yield the rows of ``engine`` of ``engines``, of ``matrices`` with ``rows`` each, in nearly equal parts of
    ``most`` rows at most."""
    low, high = (first_row(matrices * rows, number, engines) for number in (engine, engine + 1))
    while low < high:
        matrix, first = divmod(low, rows)
        here = min(high - low, rows - first)
        parts = -(-here // most)
        for part in range(parts):
            begin, end = here * part // parts, here * (part + 1) // parts
            yield MatrixRows(matrix, first + begin, end - begin)
        low += here
