"""How engines that share each layer of a region divide it, so that none reads in it what another makes there."""

from collections.abc import Collection, Sequence
from enum import Enum

from compiler.backend.layers.layer import ConvLayer, EltwiseLayer, Layer, MaxLayer, ProductLayer, SoftmaxLayer


class Share(Enum):
    """What of a member's result an engine makes."""

    ANY = "any"  #: whatever suits the layer: nobody in the region sees more of it than the engine itself made
    CHANNELS = "channels"  #: some channels of all pixels, for windows over them
    ROWS = "rows"  #: some rows of all channels, for sums over channels
    MATRICES = "matrices"  #: a stretch of the rows of all matrices, one after the other: see ``layers/row_share.py``


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
        if wanted is None and _masks(layers[edge[0]], layers[reader]):
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
    """Return whether each channel of the result comes from windows over one channel of the input."""
    return isinstance(layer, MaxLayer) or (isinstance(layer, ConvLayer) and layer.depthwise)


def _wanted(layer: Layer) -> Share | None:
    """Return how members that ``layer`` reads, and itself, must be shared; None: it may read none."""
    if _by_window(layer):
        return Share.CHANNELS
    if isinstance(layer, ProductLayer | SoftmaxLayer):
        return Share.MATRICES
    if isinstance(layer, ConvLayer):
        return Share.ROWS if layer.flat else None
    return Share.ANY if isinstance(layer, EltwiseLayer) and not layer.broadcast else None


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
