"""This room tells before anything runs how long requests of several streams can take at the worst on one device: by
response-time analysis, and by a machine of the same costs on which the worst phases are searched for."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
