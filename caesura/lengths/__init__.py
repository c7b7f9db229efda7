"""This folder serves models with a dynamic dimension: one model for the user, a kernel for each length."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
