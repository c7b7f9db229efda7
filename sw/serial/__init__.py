"""A machine on a board, at the other end of a serial line, behind ``hw.contract.bus.Bus``."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
