"""Describes a job as the parts of an engine pass it on, and what makes it fail."""

from dataclasses import dataclass, field
from functools import cached_property

from hw.contract.formats import PARAMETERS
from hw.contract.isa import INSN_BYTES, LV2_SEGMENTS, SEGMENTS
from hw.contract.job import JOB, JOB_MAGIC, SEMAPHORES, Fault, FaultUnit, JobFlag
from hw.contract.params import SocParams

_ADDRESSES = 1 << 32
_PCS = 1 << 24
_KNOWN_FLAGS = sum(JobFlag)
_SEGMENTS = tuple(
    (f"base{i}", f"limit{i}", i in LV2_SEGMENTS) for i in range(SEGMENTS)
)  #: members, and which is in LV2
_PARAMETERS = tuple(f"param{i}" for i in range(PARAMETERS))
_SEMAPHORES = tuple(f"sem{i}" for i in range(SEMAPHORES))


@dataclass(frozen=True)
class JobFault:
    """Says why a job failed, as its completion tells it."""

    code: int
    unit: int
    pc: int = 0
    address: int = 0


def executor_fault(code: Fault, pc: int) -> JobFault:
    """Return the fault of the executor itself at instruction ``pc``."""
    return JobFault(code, FaultUnit.EXECUTOR, pc, pc * INSN_BYTES)


@dataclass
class Job:
    """Holds a descriptor that was fetched. ``times`` is the members of its completion of that name, filled on the
    way."""

    index: int
    members: dict[str, int]
    times: dict[str, int] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)  #: of its prologue
    fault: JobFault | None = None

    @cached_property
    def segments(self) -> list[tuple[int, int]]:
        """Return base and limit of each segment."""
        return [(self.members[base], self.members[limit]) for base, limit, _ in _SEGMENTS]

    @property
    def parameters(self) -> tuple[int, ...]:
        """Return what instructions may name; nothing in a job without the flag."""
        return tuple(self.members[name] for name in _PARAMETERS) if self.has(JobFlag.PARAMS) else ()

    def has(self, flag: JobFlag) -> bool:
        """Return whether the descriptor has ``flag``."""
        return bool(self.members["flags"] & int(flag))


def read_job(index: int, raw: bytes, params: SocParams) -> Job | None:
    """Return the descriptor in ``raw``, or None if it does not pass the checks of ``hw/control/ring.py``."""
    m = JOB.unpack(raw)
    wrong = m["magic"] != JOB_MAGIC or m["flags"] & ~_KNOWN_FLAGS or m["base0"] % INSN_BYTES
    wrong |= any(m[name] >= _PCS for name in ("body_pc", "prologue_pc"))
    wrong |= any(m[name] >= params.events for name in ("wait0_id", "wait1_id", "signal_id"))
    for base, limit, in_lv2 in _SEGMENTS:
        size = params.lv2_bytes if in_lv2 else _ADDRESSES
        wrong |= m[base] >= _ADDRESSES or m[base] + m[limit] > size
    for i, name in enumerate(_SEMAPHORES):
        wrong |= m[name] > (params.semaphore_max if i < params.semaphores else 0)
    return None if wrong else Job(index, m)


def no_job(index: int = -1) -> Job:
    """Return what stands where there is no job, or no descriptor of it: a record of zeros."""
    return Job(index, JOB.unpack(bytes(JOB.size)))


BAD_DESCRIPTOR = JobFault(Fault.DESCRIPTOR, FaultUnit.RING)
BAD_READ = JobFault(Fault.BUS, FaultUnit.RING)
