"""This folder holds the way from the RTL to a bitstream for an ECP5: netlist, synthesis, place and route, bitstream, a
module each, and what is told of the result."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
