"""Keeps one account of time: what instructions, programs, regions and inferences take, typically and at the worst."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
