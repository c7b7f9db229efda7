"""Checks what engines say of jobs that have ended, which memory or bus may have damaged."""

from hw.contract.job import Fault, FaultUnit
from sw.driver.errors import FaultRecord
from sw.driver.queues.job import DeviceJob


def checked(entry: dict[str, int], job: DeviceJob, address: int) -> dict[str, int]:
    """Return the completion of ``job``; if it is not that, or says what none can, return a BUS fault of the job."""
    expected = job.id, job.place & 0xFFFFFFFF
    if (entry["job_id"], entry["index"]) == expected and entry["status"] in Fault.__members__.values():
        return entry
    damaged = {"status": int(Fault.BUS), "unit": int(FaultUnit.RING), "pc": 0, "address": address & 0xFFFFFFFF}
    return {**entry, **damaged, "job_id": expected[0], "index": expected[1]}


def fault_record(engine: int, *, status: int, unit: int, job_id: int, pc: int, address: int) -> FaultRecord:
    """Return a :class:`FaultRecord` of raw numbers; numbers without a name stay readable."""
    code = Fault(status) if status in Fault.__members__.values() else Fault.NONE
    name = FaultUnit(unit).name if unit in FaultUnit.__members__.values() else f"unit {unit}"
    return FaultRecord(engine, code, name, job_id, pc, address)
