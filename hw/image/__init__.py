"""An image is what the compiler and the driver exchange: files, their checks, and the tables in them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
