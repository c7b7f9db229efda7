"""Makes a SoC of LiteX with an accelerator: ``python -m examples.litex.soc VERILOG_FOLDER -o out/litex``.

A UART bridge is the host (``--uart-name=crossover`` of LiteX would do as well); main memory is block RAM, in the place
where a board has litedram. It generates Verilog and the register map, and builds no bitstream.
"""

import argparse
from pathlib import Path

from migen import ClockDomain, ClockSignal, ResetSignal

from examples.litex.core import REGISTERS, Caesura
from litex.build.generic_platform import IOStandard, Pins, Subsignal
from litex.build.lattice import LatticePlatform
from litex.soc.integration.builder import Builder
from litex.soc.integration.soc import SoCRegion
from litex.soc.integration.soc_core import SoCCore

CLOCK = 25_000_000
#: Of a ULX3S: oscillator, a button, and the lines of its USB chip.
_IO = [
    ("clk", 0, Pins("G2"), IOStandard("LVCMOS33")),
    ("rst", 0, Pins("R1"), IOStandard("LVCMOS33")),
    ("serial", 0, Subsignal("tx", Pins("L4")), Subsignal("rx", Pins("M1")), IOStandard("LVCMOS33")),
]


class Soc(SoCCore):
    """Has an accelerator on its bus, which reads and writes main memory itself."""

    def __init__(self, folder: Path, memory_bytes: int) -> None:
        platform = LatticePlatform("LFE5U-85F-6BG381C", _IO, toolchain="trellis")
        self.cd_sys = ClockDomain()
        self.comb += [
            ClockSignal("sys").eq(platform.request("clk")),
            ResetSignal("sys").eq(platform.request("rst")),
        ]
        super().__init__(
            platform, CLOCK, cpu_type=None, bus_standard="axi-lite", ident="LiteX with Caesura",
            uart_name="uartbone", integrated_main_ram_size=memory_bytes,
        )  # fmt: skip
        self.caesura = Caesura(platform, sorted(folder.glob("*.v")))
        self.bus.add_slave("caesura", self.caesura.registers, SoCRegion(0x3000_0000, REGISTERS, cached=False))
        # Addresses of the accelerator count from the start of its memory.
        self.bus.add_master("caesura", self.caesura.memory, region=SoCRegion(self.mem_map["main_ram"], memory_bytes))


def written(soc: Soc, folder: Path) -> Path:
    """Write the files of ``soc``, its constraints and its map of registers; return that of the Verilog."""
    made = Builder(soc, output_dir=str(folder), compile_software=False, csr_csv=str(folder / "csr.csv"))
    made.build(build_name="caesura_litex", run=False)
    return folder / "gateware" / "caesura_litex.v"


def main() -> None:
    """Write the SoC that the command line asks for."""
    parser = argparse.ArgumentParser(description="a SoC of LiteX with an accelerator")
    parser.add_argument("folder", type=Path, help="what caesura verilog wrote")
    parser.add_argument("-o", "--output", type=Path, default=Path("out/litex"), help="folder for the SoC")
    parser.add_argument("--memory", type=int, default=256 * 1024, help="bytes of main memory")
    options = parser.parse_args()
    soc = Soc(options.folder, options.memory)
    print(written(soc, options.output))


if __name__ == "__main__":
    main()
