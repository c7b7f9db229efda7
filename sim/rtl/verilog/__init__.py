"""This folder writes the accelerator as Verilog, for other simulators and for synthesis: docs/verilog.md."""

from sim.rtl.verilog.conversion import converted
from sim.rtl.verilog.files import TOP, soc_modules, write_verilog

__all__ = ["TOP", "converted", "soc_modules", "write_verilog"]
