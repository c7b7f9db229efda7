"""This folder takes the netlist through Yosys to C++, for cross-checks of the native backend and for waveforms."""

from sim.rtl.cxxrtl.build import cxxrtl_bus

__all__ = ["cxxrtl_bus"]
