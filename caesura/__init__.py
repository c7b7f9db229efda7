"""Caesura compiles an ONNX model, opens a device, and runs the model on it.

>>> import caesura
>>> image = caesura.compile("model.onnx", preset="base")
>>> with caesura.open("base") as device:
...     model = device.load(image)
...     result = model(x)

``caesura.run("model.onnx", x)`` does all of it at once. ``caesura.Runtime(device)`` serves requests of several models.
"""

from caesura.api import Device, Model, UsageError, compile, open, run
from caesura.lengths.open_dynamic import dynamic
from compiler.backend.options import Options
from compiler.ir import CompileError
from hw.contract.image import Image, ImageError
from hw.contract.params import PRESETS, ParamError, SocParams
from sim.bus import BusError, BusTimeout, HostCosts
from sw.driver import DeviceFault, DeviceTimeout, DriverError
from sw.runtime import (
    DeadlineMissed,
    InputError,
    LayerStats,
    Mechanism,
    Request,
    RequestCancelled,
    RunStats,
    Runtime,
    State,
)

__all__ = [
    "PRESETS",
    "BusError",
    "BusTimeout",
    "CompileError",
    "DeadlineMissed",
    "Device",
    "DeviceFault",
    "DeviceTimeout",
    "DriverError",
    "HostCosts",
    "Image",
    "ImageError",
    "InputError",
    "LayerStats",
    "Mechanism",
    "Model",
    "Options",
    "ParamError",
    "Request",
    "RequestCancelled",
    "RunStats",
    "Runtime",
    "SocParams",
    "State",
    "UsageError",
    "compile",
    "dynamic",
    "open",
    "run",
]
