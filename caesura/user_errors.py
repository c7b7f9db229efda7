"""Tells which errors are of a user's making, or the device's: commands tell them in one message, without a
traceback."""


def user_errors() -> tuple[type[Exception], ...]:
    """Return the classes of these errors. They are imported late, as the code that raises them takes long to load."""
    from caesura.api import UsageError
    from compiler.ir import CompileError
    from hw.contract.image import ImageError
    from hw.contract.isa import IsaError
    from hw.contract.params import ParamError
    from sim.bus import BusError, BusTimeout
    from sim.cache_folder import ForeignCacheError
    from sim.host import HostStepError
    from sim.simulators import NoWaveforms
    from sim.toolchain.compilers import BuildError
    from sw.driver import DriverError
    from sw.runtime import InputError
    from sw.runtime.scheduler import PolicyFailed

    asked = (CompileError, ImageError, InputError, IsaError, ParamError, UsageError, NoWaveforms, BuildError)
    return (*asked, BusError, BusTimeout, DriverError, ForeignCacheError, HostStepError, PolicyFailed, OSError)
