"""The driver owns registers, rings, interrupts and memory of one SoC, above ``sim.bus.Bus``."""

from sw.driver.device import Device
from sw.driver.errors import (
    DeviceFault,
    DeviceMismatch,
    DeviceTimeout,
    DriverError,
    FaultRecord,
    NotSuspendable,
    OutOfMemory,
    SupervisorFault,
)
from sw.driver.models.loaded_model import LoadedModel
from sw.driver.models.model_job import JobResult, ModelJob
from sw.driver.models.traffic import DmaTraffic, DramTraffic
from sw.driver.preempt.halting import HaltRecord
from sw.driver.preempt.suspension import Suspension
from sw.driver.queues.interrupt_wait import HandledInterrupt

__all__ = [
    "Device",
    "DeviceFault",
    "DeviceMismatch",
    "DeviceTimeout",
    "DmaTraffic",
    "DramTraffic",
    "DriverError",
    "FaultRecord",
    "HaltRecord",
    "HandledInterrupt",
    "JobResult",
    "LoadedModel",
    "ModelJob",
    "NotSuspendable",
    "OutOfMemory",
    "SupervisorFault",
    "Suspension",
]
