"""The driver: registers, rings, interrupts and memory of one SoC, above ``sim.bus.Bus``."""

from sw.driver.device import Device, JobResult
from sw.driver.errors import (
    DeviceFault,
    DeviceMismatch,
    DeviceTimeout,
    DriverError,
    FaultRecord,
    OutOfMemory,
    SupervisorFault,
)
from sw.driver.loaded import LoadedModel
from sw.driver.suspension import HaltRecord, Suspension

__all__ = [
    "Device",
    "DeviceFault",
    "DeviceMismatch",
    "DeviceTimeout",
    "DriverError",
    "FaultRecord",
    "HaltRecord",
    "JobResult",
    "LoadedModel",
    "OutOfMemory",
    "SupervisorFault",
    "Suspension",
]
