"""This folder takes the netlist through Yosys to C++, for cross-checks of the native backend and for waveforms."""

from sim.rtl.cxxrtl.bus import CxxrtlBus

__all__ = ["CxxrtlBus"]
