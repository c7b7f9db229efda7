"""Float ONNX models to 8-bit QDQ models: what has no steps of its own inside is written out, then onnxruntime's
quantiser finds them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
