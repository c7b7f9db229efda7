"""The accelerator SoC in Amaranth; ``hw.contract`` holds what software knows of it, table by table, and ``hw.image``
what it runs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
