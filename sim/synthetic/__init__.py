"""The synthetic machine has queues, memory access and compute with given durations, without instructions or data."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
