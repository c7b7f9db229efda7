"""This folder simulates what synthesis made: a netlist in cells of an ECP5, look-up table by look-up table."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
