"""Caesura compiles an ONNX model, opens a device, and runs the model on it.

>>> import caesura
>>> image = caesura.compile("model.onnx", preset="base")
>>> with caesura.open("base") as device:
...     model = device.load(image)
...     result = model(x)

``caesura.run("model.onnx", x)`` does all of it at once. ``caesura.Runtime(device)`` serves requests of several models.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
