"""The driver: registers, rings, interrupts and memory of one SoC, above ``sim.bus.Bus``."""

from sw.driver.device import Device, JobResult
from sw.driver.errors import (
    DeviceFault,
    DeviceMismatch,
    DeviceTimeout,
    DriverError,
    FaultRecord,
    OutOfMemory,
)
from sw.driver.loaded import LoadedModel

__all__ = [
    "Device",
    "DeviceFault",
    "DeviceMismatch",
    "DeviceTimeout",
    "DriverError",
    "FaultRecord",
    "JobResult",
    "LoadedModel",
    "OutOfMemory",
]
