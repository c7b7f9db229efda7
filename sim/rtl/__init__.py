"""This folder holds the RTL backends: the same netlist compiled in two ways, and in Amaranth's simulator."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
