"""This folder runs scenarios: several models served under a policy, and the metrics of that."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
