"""Makes libraries of C and C++: the compilers, what is built once and kept, and what the user sees meanwhile."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
