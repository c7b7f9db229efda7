"""This folder holds models of the accelerator that execute the same images as the RTL."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
