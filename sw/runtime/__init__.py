"""The run time serves inferences of loaded models, above the driver."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
