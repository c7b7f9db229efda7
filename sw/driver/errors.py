"""Defines what can go wrong between driver and device."""

from collections.abc import Sequence
from dataclasses import dataclass

from hw.contract.job import Fault


class DriverError(RuntimeError):
    """Says that the driver cannot do what was asked; the message names the object, the limit and the way out."""


class DeviceMismatch(DriverError):
    """Says that the hardware behind the bus is not what the driver was opened for."""


class OutOfMemory(DriverError):
    """Says that a DRAM or LV2 allocation does not fit; names size and what is left."""


class OutOfEvents(DriverError):
    """Says that a model needs more hardware events than are free."""


class NotSuspendable(DriverError):
    """Says that the state of a task cannot be taken off its engines, to DRAM, or back: it stands where its image says
    nothing useful about it, or there is no way for its bytes. ``model``: whose image that is, a ``LoadedModel``."""

    def __init__(self, model: object, message: str) -> None:
        self.model = model
        super().__init__(message)


class DeviceTimeout(DriverError):
    """Says that the device did not finish within a limit in cycles; the message says what each engine was doing.
    ``model``: whose job it was that took too long, a ``LoadedModel``; None if that is not known, or it was the
    driver's."""

    def __init__(self, message: str, model: object = None) -> None:
        self.model = model
        super().__init__(message)


@dataclass(frozen=True)
class FaultRecord:
    """Describes one fault as the hardware reported it, with what the driver knows about the job."""

    engine: int
    code: Fault
    unit: str
    job_id: int
    pc: int
    address: int
    job: str = "an unknown job"  #: "job 3 of 'digits' (layer 'conv2')"
    instruction: str = ""  #: disassembled, empty if unknown


class DeviceFault(DriverError):
    """Says that a job stopped its engine. ``record`` holds engine, code, unit, job, PC, address and instruction."""

    def __init__(self, record: FaultRecord) -> None:
        self.record = record
        super().__init__(_describe(record))


class SupervisorFault(DeviceFault):
    """Says that a job of the driver failed: a dump, a restore, or one that clears memories between tenants. No
    suspended task has lost anything: call ``Device.recover``, then dump, resume or begin again.

    ``models``: whose state it moved, or for whom it cleared. ``own``: it ran loads of the model's own image, and what
    they did will happen again.
    """

    def __init__(self, record: FaultRecord, models: Sequence[object] = (), *, own: bool = False) -> None:
        self.models, self.own = tuple(models), own
        super().__init__(record)


class SupervisorTimeout(DeviceTimeout):
    """Says that a job of the driver did not end, otherwise as :class:`SupervisorFault`."""

    def __init__(self, message: str, models: Sequence[object] = (), *, own: bool = False) -> None:
        self.models, self.own = tuple(models), own
        super().__init__(message)


_MEANING = {
    Fault.ILLEGAL: "illegal instruction",
    Fault.LIMIT: "address beyond its segment or memory",
    Fault.SEMAPHORE_OVERFLOW: "a semaphore was signalled above its largest count",
    Fault.SEMAPHORE_UNDERFLOW: "a semaphore was taken below zero",
    Fault.SEMAPHORE_RESIDUE: "a semaphore was not zero at END",
    Fault.BUS: "memory answered with an AXI error",
    Fault.CYCLE_LIMIT: "the cycle limit of the job was reached",
    Fault.DESCRIPTOR: "invalid job descriptor",
}


_SEMAPHORE_FAULTS = (Fault.SEMAPHORE_OVERFLOW, Fault.SEMAPHORE_UNDERFLOW, Fault.SEMAPHORE_RESIDUE)


def _describe(record: FaultRecord) -> str:
    where = "semaphores (mask)" if record.code in _SEMAPHORE_FAULTS else "address"
    text = (
        f"engine {record.engine}: {record.code.name} fault in {record.job}: "
        f"{_MEANING.get(record.code, 'no cause given')}; "
        f"reported by {record.unit} at PC {record.pc}, {where} 0x{record.address:x}"
    )
    return f"{text}: {record.instruction}" if record.instruction else text
