"""Knows boards, from amaranth-boards, and parts that stand alone."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from caesura import api
from caesura.fpga.tools import require
from hw.contract.params import KIB


class Pin(NamedTuple):
    """Is a pin of a package: its ``site``, and what it is set to, by nextpnr's names."""

    site: str
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Part:
    """Is one FPGA: its ``device`` as Lattice calls it, ``package`` and speed grade. On a board ``pins`` are those that
    are known by what a top calls them (``clk``; ``rx`` and ``tx`` of a serial line, ``sdram_clk``, ``sdram_a[0]`` and
    so on of an SDRAM chip, if it has them), and ``oscillator`` is its clock in MHz; elsewhere pins lie where the tools
    put them."""

    device: str
    package: str
    speed: str
    pins: Mapping[str, Pin] = field(default_factory=dict)
    oscillator: float = 0.0

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
    def block_ram(self) -> int:
        """Return how many bytes of block RAM it has, of words of 8, 16 or 32 bits."""
        return {"25F": 56, "45F": 108, "85F": 208}[self._size] * 2 * KIB

    @property
    def sdram(self) -> bool:
        """Return whether an SDRAM chip is known of the board."""
        return "sdram_clk" in self.pins

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
    clock = board.lookup(board.default_clk)
    pins = {"clk": _pin(board, clock.ios[0], clock.attrs)}
    if ("uart", 0) in board.resources:
        line = board.lookup("uart")
        pins |= {one.name: _pin(board, one.ios[0], line.attrs) for one in line.ios if one.name in ("rx", "tx")}
    if ("sdram", 0) in board.resources:
        chip = board.lookup("sdram")
        for one in chip.ios:
            pins |= _bus(board, f"sdram_{one.name}", one.ios[0], chip.attrs)
    return Part(board.device, _PACKAGES[board.package], str(board.speed), pins, float(clock.clock.frequency) / 1e6)


def _pin(board: Any, pins: Any, attributes: Mapping[str, Any]) -> Pin:
    """Return a pin as amaranth-boards knows it, of a differential pair the positive one."""
    return Pin(getattr(pins, "p", pins).names[0], _settings(board, attributes))


def _bus(board: Any, name: str, pins: Any, attributes: Mapping[str, Any]) -> dict[str, Pin]:
    """Return the pins of a port: several bits are called by their numbers."""
    sites, settings = pins.names, _settings(board, attributes)
    if len(sites) == 1:
        return {name: Pin(sites[0], settings)}
    return {f"{name}[{bit}]": Pin(site, settings) for bit, site in enumerate(sites)}


def _settings(board: Any, attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value(board) if callable(value) else value for name, value in attributes.items()}


def cycles_per_bit(clock: float, baud: int) -> int:
    """Return the cycles of a bit at ``baud`` and a ``clock`` in MHz. Raises :class:`caesura.api.UsageError` where they
    are no whole number: bits may be 2 % longer or shorter."""
    divisor = round(clock * 1e6 / baud)
    if divisor < 2 or abs(clock * 1e6 / baud / divisor - 1) > 0.02:
        raise api.UsageError(f"{baud} baud are no whole number of cycles at {clock:g} MHz: try 1000000")
    return divisor


def serial_part(name: str) -> Part:
    """Return the part of a board that has a serial line. Errors as for :func:`part`, and
    :class:`caesura.api.UsageError` for a board that has none."""
    found = part(name)
    if not {"clk", "rx", "tx"} <= found.pins.keys():
        raise api.UsageError(f"no serial line is known of {name}; --serial needs one, as of ulx3s-85f or ecp5-evn")
    return found
