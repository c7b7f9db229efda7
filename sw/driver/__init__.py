"""The driver owns registers, rings, interrupts and memory of one SoC, above ``hw.contract.bus.Bus``."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
