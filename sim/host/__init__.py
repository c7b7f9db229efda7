"""This folder holds what the CPU does: onnxruntime runs steps of an image, which take it a number of cycles."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
