"""Gathers what users of Caesura need of the rooms below, and says which errors are theirs."""

from caesura.api import UsageError
from compiler import CompileError as CompileError, Options as Options
from hw.contract.bus import BusError as BusError, BusTimeout as BusTimeout, HostCosts as HostCosts
from hw.contract.isa import IsaError
from hw.contract.params import PRESETS as PRESETS, ParamError as ParamError, SocParams as SocParams
from hw.image import Image as Image, ImageError as ImageError
from sim import ForeignCacheError, NoWaveforms
from sim.host import HostStepError
from sim.toolchain import BuildError
from sw.driver import DeviceFault as DeviceFault, DeviceTimeout as DeviceTimeout, DriverError as DriverError
from sw.kernels import NoKernelError as NoKernelError
from sw.runtime import (
    DeadlineMissed as DeadlineMissed,
    Fleet as Fleet,
    InputError as InputError,
    LayerStats as LayerStats,
    Mechanism as Mechanism,
    PolicyFailed,
    Request as Request,
    RequestCancelled as RequestCancelled,
    RunStats as RunStats,
    Runtime as Runtime,
    State as State,
)


def user_errors() -> tuple[type[Exception], ...]:
    """Return the classes of errors that are of a user's making, or the device's: commands tell them in one message,
    without a traceback."""
    asked = (
        CompileError,
        ImageError,
        InputError,
        IsaError,
        ParamError,
        UsageError,
        NoKernelError,
        NoWaveforms,
        BuildError,
    )
    return (*asked, BusError, BusTimeout, DriverError, ForeignCacheError, HostStepError, PolicyFailed, OSError)
