"""Gathers what users of Caesura need of the rooms below."""

from compiler import CompileError, Options
from hw.contract.bus import BusError, BusTimeout, HostCosts
from hw.contract.params import PRESETS, ParamError, SocParams
from hw.image import Image, ImageError
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
    "DeviceFault",
    "DeviceTimeout",
    "DriverError",
    "HostCosts",
    "Image",
    "ImageError",
    "InputError",
    "LayerStats",
    "Mechanism",
    "Options",
    "ParamError",
    "Request",
    "RequestCancelled",
    "RunStats",
    "Runtime",
    "SocParams",
    "State",
]
