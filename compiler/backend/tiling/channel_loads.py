"""Loads from DRAM where tiles of channels have no input in common: depthwise convolutions, pools."""

from hw.contract.params import SocParams
from sim.timing.typical import load_cycles


def staged_together(pixels: int, depth: int, staging: int) -> bool:
    """Return whether ``pixels`` of a tensor of ``depth`` channels, what a tile reads, pass through LV2 by one load: two
    buffers of them leave half of the ``staging`` bytes to others."""
    return 4 * pixels * depth <= staging


def tile_load_cycles(rows: int, cols: int, channels: int, depth: int, together: bool, params: SocParams) -> float:
    """Return the cycles of DRAM for ``rows`` x ``cols`` pixels in all their ``depth`` channels: by one load, if they
    come ``together`` or a tile has all channels, else by one for each ``channels`` of them, in short runs."""
    if together or channels >= depth:
        return load_cycles(rows, cols * depth, params)
    return -(-depth // channels) * load_cycles(rows * cols, channels, params)
