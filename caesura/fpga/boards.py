"""Knows boards, from amaranth-boards, and parts that stand alone."""

import importlib
from dataclasses import dataclass

from caesura import api
from caesura.fpga.tools import require


@dataclass(frozen=True)
class Part:
    """Is one FPGA: its ``device`` as Lattice calls it, ``package`` and speed grade. On a board ``clock`` is the site
    of the oscillator; elsewhere pins lie where the tools put them."""

    device: str
    package: str
    speed: str
    clock: str = ""

    @property
    def option(self) -> str:
        """Return what nextpnr calls the device: LFE5UM5G-85F is ``--um5g-85k``."""
        family, _, size = self.device.removeprefix("LFE5").partition("-")
        prefix = {"U": "", "UM": "um-", "UM5G": "um5g-"}[family]
        return f"--{prefix}{size.removesuffix('F')}k"

    @property
    def multipliers(self) -> int:
        """Return how many multipliers of 18 × 18 bits it has."""
        return {"25F": 28, "45F": 72, "85F": 156}[self._size]

    @property
    def luts(self) -> int:
        """Return how many look-up tables of four inputs it has."""
        return {"25F": 24_288, "45F": 43_848, "85F": 83_640}[self._size]

    @property
    def _size(self) -> str:
        return self.device.rpartition("-")[2]


#: Parts of which no board is asked for: the blocks are placed on the smallest.
PARTS = {
    "lfe5um5g-25f": Part("LFE5UM5G-25F", "CABGA381", "8"),
    "lfe5um5g-85f": Part("LFE5UM5G-85F", "CABGA381", "8"),
}
#: Module and class in amaranth-boards.
_PLATFORMS = {
    "ecp5-evn": ("ecp5_5g_evn", "ECP55GEVNPlatform"),
    "versa-5g": ("versa_ecp5_5g", "VersaECP55GPlatform"),
    "ulx3s-25f": ("ulx3s", "ULX3S_25F_Platform"),
    "ulx3s-45f": ("ulx3s", "ULX3S_45F_Platform"),
    "ulx3s-85f": ("ulx3s", "ULX3S_85F_Platform"),
    "orangecrab-25f": ("orangecrab_r0_2", "OrangeCrabR0_2_25FPlatform"),
    "orangecrab-85f": ("orangecrab_r0_2", "OrangeCrabR0_2_85FPlatform"),
}
#: Packages by the letters in a part's number.
_PACKAGES = {"BG256": "CABGA256", "MG285": "CSFBGA285", "BG381": "CABGA381", "BG554": "CABGA554", "BG756": "CABGA756"}
NAMES = (*_PLATFORMS, *PARTS)


def part(name: str) -> Part:
    """Return the part of a board, or a part by its own name. Raises :class:`caesura.api.UsageError` for neither, and
    :class:`sim.toolchain.BuildError` without amaranth-boards."""
    if name in PARTS:
        return PARTS[name]
    if name not in _PLATFORMS:
        raise api.UsageError(f"no board named {name!r}; known are {', '.join(NAMES)}")
    require("boards")
    module, platform = _PLATFORMS[name]
    board = getattr(importlib.import_module(f"amaranth_boards.{module}"), platform)()
    pins = board.lookup(board.default_clk).ios[0]
    site = getattr(pins, "p", pins).names[0]  # of a differential pair the positive one
    return Part(board.device, _PACKAGES[board.package], str(board.speed), site)
