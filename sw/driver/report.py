"""What errors tell about a device: the job behind a fault, and what every engine is doing."""

from typing import TYPE_CHECKING

from sw.driver.engine import EngineQueue
from sw.driver.errors import DeviceTimeout, FaultRecord

if TYPE_CHECKING:
    from sw.driver.device import Device


def explain(device: "Device", record: FaultRecord) -> FaultRecord:
    """The record with what the driver knows about the job."""
    own = device.preemption.supervisor.jobs.get(record.job_id)
    if own is not None:
        record.job = f"a {own.operation.purpose} job of the driver"
    known = device.books.outstanding.get(record.job_id)
    if known is not None:
        record.job = known.model.describe_job(known.job)
        record.instruction = known.model.disassemble(record.pc)
    return record


def timed_out(device: "Device", limit: int) -> DeviceTimeout:
    """The error for "nothing happened within ``limit`` cycles", which says what every engine is doing."""
    doing = "\n  ".join(_describe(device, queue) for queue in device.engines)
    return DeviceTimeout(f"no result within {limit} cycles; raise the limit or look at:\n  {doing}")


def _describe(device: "Device", queue: EngineQueue) -> str:
    text = queue.describe(device.params.semaphores)
    known = device.books.outstanding.get(queue.register("CURRENT_JOB"))
    return text if known is None else f"{text}; {known.model.describe_job(known.job)}"
