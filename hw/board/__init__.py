"""What stands round the machine where it has a host and memory: on a board, and in a simulation."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
