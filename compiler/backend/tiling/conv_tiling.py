"""How a convolution is cut."""

from dataclasses import dataclass

from compiler.backend.layers.layer import ConvLayer
from compiler.backend.tiling.conv_geometry import KernelChunk
from hw.contract.params import SocParams

_LV0_SLOTS = 4  #: buffers of an LV0 memory, at most


@dataclass(frozen=True)
class ConvTiling:
    """How a convolution is cut. Sizes are bytes; ``*_slots`` are buffers of the LV1 rings. Those that are 0 in a plan
    follow from the other fields (:func:`compiler.backend.tiling.conv_search.sized_tiling`)."""

    rows: int
    cols: int
    chunk_rows: int
    chunk_cols: int
    chunk_channels: int
    fold: bool
    pixels_outer: bool  #: pixel tiles in the outer loop, channel tiles in the inner one; else the reverse
    act_size: int = 0
    weight_size: int = 0
    out_size: int = 0
    params_size: int = 0
    act_slots: int = 0
    weight_slots: int = 0
    group: int = 1  #: channel tiles whose weights and parameters come to LV1 by one load

    @property
    def weights_lv1(self) -> int:
        """Return the bytes of LV1 for weights, with groups for parameters too."""
        tile = self.weight_size + (self.params_size if self.group > 1 else 0)
        return self.weight_slots * self.group * tile

    def chunks(self, layer: ConvLayer, channels: int) -> list[KernelChunk]:
        """Return the parts of the kernel for a channel tile with ``channels`` input channels."""
        kh, kw = layer.kernel
        depth = 1 if layer.depthwise else channels
        parts = []
        for c in range(0, depth, self.chunk_channels):
            for i in range(0, kh, self.chunk_rows):
                for j in range(0, kw, self.chunk_cols):
                    parts.append(
                        KernelChunk(
                            i, min(self.chunk_rows, kh - i), j, min(self.chunk_cols, kw - j),
                            c, channels if layer.depthwise else min(self.chunk_channels, depth - c),
                        )
                    )  # fmt: skip
        return parts


@dataclass(frozen=True)
class TilingContext:
    """What the tiler needs to know about the data around a layer."""

    images: int
    in_dram: bool
    out_dram: bool
    window: int  #: bytes of weights one job may hold
    engines: int = 1  #: that share DRAM, and the tiles
    pitch: int = 0  #: bytes from an input pixel to the next, or 0 if unknown
    lv1_bytes: int = 0  #: of LV1 for buffers, or 0 for all
    staging: int = 0  #: bytes of LV2 through which an engine's data pass from and to DRAM

    def lv1(self, params: SocParams) -> int:
        """Return the bytes of LV1 for buffers."""
        return self.lv1_bytes or params.lv1_bytes


def lv0_slots(words: int, total: int) -> int:
    """Return how many buffers of ``words`` to use in an LV0 memory of ``total`` words: with more than two, LD0 need not
    wait for MAC to end before it loads the next but one."""
    return max(2, min(_LV0_SLOTS, total // words))
