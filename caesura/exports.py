"""Gathers what users of Caesura need of the rooms below, and says which errors are theirs."""

from caesura.api import UsageError
from compiler import CompileError, Options
from hw.contract.bus import BusError, BusTimeout, HostCosts
from hw.contract.isa import IsaError
from hw.contract.params import PRESETS, ParamError, SocParams
from hw.image import Image, ImageError
from sim import ForeignCacheError, NoWaveforms
from sim.host import HostStepError
from sim.toolchain import BuildError
from sw.driver import DeviceFault, DeviceTimeout, DriverError
from sw.runtime import (
    DeadlineMissed,
    InputError,
    LayerStats,
    Mechanism,
    PolicyFailed,
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
    "user_errors",
]


def user_errors() -> tuple[type[Exception], ...]:
    """Return the classes of errors that are of a user's making, or the device's: commands tell them in one message,
    without a traceback."""
    asked = (CompileError, ImageError, InputError, IsaError, ParamError, UsageError, NoWaveforms, BuildError)
    return (*asked, BusError, BusTimeout, DriverError, ForeignCacheError, HostStepError, PolicyFailed, OSError)
