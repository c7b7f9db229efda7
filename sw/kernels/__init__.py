"""**Run-time kernel matching** has a library of kernels, and the choice among them for each operation of each
inference.

A *kernel* is compiled code with attributes (``hw.image.kernel_attributes``). A *demand* is what an operation asks
for; with the current class-2 value it is matched against the library.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
