"""Tells which errors are of a user's making, or the device's: commands tell them in one message, without a
traceback."""


def user_errors() -> tuple[type[Exception], ...]:
    """Return the classes of these errors. They are imported late, as the code that raises them takes long to load."""
    from caesura.api import UsageError
    from compiler import CompileError
    from hw.contract.bus import BusError, BusTimeout
    from hw.contract.isa import IsaError
    from hw.contract.params import ParamError
    from hw.image import ImageError
    from sim import ForeignCacheError, NoWaveforms
    from sim.host import HostStepError
    from sim.toolchain import BuildError
    from sw.driver import DriverError
    from sw.runtime import InputError, PolicyFailed

    asked = (CompileError, ImageError, InputError, IsaError, ParamError, UsageError, NoWaveforms, BuildError)
    return (*asked, BusError, BusTimeout, DriverError, ForeignCacheError, HostStepError, PolicyFailed, OSError)
