"""Writes a Vivado project of a whole board: Verilog, constraints, and Tcl that makes a bitstream of them."""

import importlib
from dataclasses import dataclass
from pathlib import Path

from caesura import api
from caesura.fpga.boards import cycles_per_bit
from caesura.fpga.tools import require
from hw.board import BoardTop
from hw.contract.params import KIB, SocParams
from sim.rtl import converted, to_rtlil

#: Module and class in amaranth-boards, and block RAMs of 36 Kbit that the part has.
_PLATFORMS = {"arty-a7-100": ("arty_a7", "ArtyA7_100Platform", 135)}
NAMES = (*_PLATFORMS,)
_BLOCK_RAM = 36 * KIB // 8  #: bytes of one
_OSCILLATOR = 100.0  #: MHz
_VCO = 800  #: MHz inside of the PLL, which the machine's clock divides
_SLOWEST = 6.25  #: MHz: the PLL divides by 128 at most
#: Pins of the top by their names: resource, and subsignal of it, in amaranth-boards.
_PINS = {"clk100": ("clk100", ""), "rst_n": ("rst", ""), "uart_rx": ("uart", "rx"), "uart_tx": ("uart", "tx")}

_TOP = """// The machine's clock of {clock:g} MHz, its reset, and the pins of the board.
module top(input wire clk100, input wire rst_n, input wire uart_rx, output wire uart_tx);
  wire made, feedback, locked, clk;
  PLLE2_BASE #(.CLKIN1_PERIOD({period:g}), .CLKFBOUT_MULT({multiplier}), .DIVCLK_DIVIDE(1), .CLKOUT0_DIVIDE({divider}))
    pll(.CLKIN1(clk100), .CLKFBIN(feedback), .CLKFBOUT(feedback), .CLKOUT0(made), .LOCKED(locked),
        .PWRDWN(1'b0), .RST(1'b0));
  BUFG buffer(.I(made), .O(clk));
  (* ASYNC_REG = "TRUE" *) reg [1:0] reset = 2'b11;
  always @(posedge clk or negedge locked)
    if (!locked) reset <= 2'b11;
    else reset <= {{reset[0], !rst_n}};
  board board(.clk(clk), .rst(reset[1]), .rx(uart_rx), .tx(uart_tx));
endmodule
"""
_TCL = """# vivado -mode batch -source project.tcl
set folder [file dirname [file normalize [info script]]]
read_verilog [list [file join $folder board.v] [file join $folder top.v]]
read_xdc [file join $folder top.xdc]
synth_design -top top -part {part}
opt_design
place_design
phys_opt_design
route_design
report_timing_summary -file [file join $folder timing.txt]
report_utilization -hierarchical -file [file join $folder utilization.txt]
write_bitstream -force [file join $folder top.bit]
"""


@dataclass(frozen=True)
class VivadoBoard:
    """Is a board: ``part`` as Vivado names it, its bytes of ``block_ram``, and the site and the standard of each pin of
    the top."""

    part: str
    block_ram: int
    sites: dict[str, str]
    standards: dict[str, str]


def board(name: str) -> VivadoBoard:
    """Return the board ``name``. Raises :class:`caesura.api.UsageError` for another, and
    :class:`sim.toolchain.BuildError` without amaranth-boards."""
    if name not in _PLATFORMS:
        raise api.UsageError(f"no board of Vivado named {name!r}; known are {', '.join(NAMES)}")
    require("boards")
    module, platform, block_rams = _PLATFORMS[name]
    known = getattr(importlib.import_module(f"amaranth_boards.{module}"), platform)()
    sites, standards = {}, {}
    for pin, (resource, signal) in _PINS.items():
        found = known.resources[resource, 0]
        part = next((part for part in found.ios if getattr(part, "name", "") == signal), found) if signal else found
        sites[pin], standards[pin] = part.ios[0].names[0], found.attrs["IOSTANDARD"]
    return VivadoBoard(f"{known.device}{known.package}-{known.speed}", block_rams * _BLOCK_RAM, sites, standards)


def divided(clock: float, baud: int) -> tuple[int, int]:
    """Return by what the PLL divides for ``clock`` MHz, and the cycles of a bit at ``baud``. Raises
    :class:`caesura.api.UsageError` where one is no whole number, see
    :func:`caesura.fpga.boards.cycles_per_bit`."""
    divider = _VCO / clock
    if clock < _SLOWEST or not divider.is_integer():
        raise api.UsageError(f"a clock of {clock:g} MHz does not divide {_VCO} MHz by 1 to 128: try 25 or 50")
    return int(divider), cycles_per_bit(clock, baud)


def project(params: SocParams, about: VivadoBoard, clock: float, baud: int) -> dict[str, str]:
    """Return the files of the project by name, for a machine at ``clock`` MHz behind a line of ``baud``; errors as for
    :func:`divided` and for more memory than the part has, and :class:`hw.contract.params.ParamError` for words that are
    no line's."""
    if params.dram_bytes > about.block_ram:
        raise api.UsageError(
            f"the memory of this board is block RAM, and {about.part} has {about.block_ram:,} bytes: dram_bytes is "
            f"{params.dram_bytes:,}; choose less, such as --set dram_bytes=256KiB"
        )
    divider, divisor = divided(clock, baud)
    modules = converted(to_rtlil(BoardTop(params, divisor), name="board", separator="_"))
    period = 1000 / _OSCILLATOR
    pins = [
        f"set_property -dict {{PACKAGE_PIN {site} IOSTANDARD {about.standards[pin]}}} [get_ports {pin}]"
        for pin, site in about.sites.items()
    ]
    free = [
        "set_false_path -from [get_ports {rst_n uart_rx}]",
        "set_false_path -to [get_ports uart_tx]",
    ]
    return {
        "board.v": "\n".join(modules.values()),
        "top.v": _TOP.format(clock=clock, period=period, multiplier=int(_VCO // _OSCILLATOR), divider=divider),
        "top.xdc": "\n".join([*pins, f"create_clock -name clk100 -period {period:g} [get_ports clk100]", *free, ""]),
        "project.tcl": _TCL.format(part=about.part),
    }


def write_project(folder: Path, files: dict[str, str]) -> None:
    """Write the files of :func:`project`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
