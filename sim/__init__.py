"""Simulators of the SoC, and what all of them share: how a backend is opened, recordings and traces, and the cache
folder."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
