"""Packs what an engine reads of a job."""

from dataclasses import dataclass

from hw.contract.job import JOB, JOB_MAGIC

EventCount = tuple[int, int]  #: a hardware event, and the count that it has to reach


@dataclass(frozen=True, slots=True)
class Descriptor:
    """Is a job as its engine reads it, see ``hw.contract.job.JOB``. What is not known before the job is put in a ring
    comes last.

    ``segments``: the first byte and the size of each; ``waits``: events that its body waits for; ``signal``: the event
    that it signals; ``tag``: a number of the driver's that its completion repeats; ``parameters``: what instructions of
    its body may name.
    """

    segments: tuple[tuple[int, int], ...]
    cycle_limit: int
    tag: int
    body_pc: int = 0
    prologue_pc: int | None = None
    waits: tuple[EventCount, ...] = ()
    signal: int | None = None
    parameters: tuple[int, ...] = ()
    job_id: int = 0
    flags: int = 0
    window_after: int = 0
    semaphores: tuple[tuple[int, int], ...] = ()

    def pack(self) -> bytes:
        """Return the bytes in the ring."""
        members = {
            "magic": JOB_MAGIC,
            "flags": self.flags,
            "job_id": self.job_id,
            "body_pc": self.body_pc,
            "prologue_pc": self.prologue_pc or 0,
            "cycle_limit": self.cycle_limit,
            "window_after": self.window_after,
            "signal_id": self.signal or 0,
            "tag": self.tag,
        }
        for i, (event, count) in enumerate(self.waits):
            members[f"wait{i}_id"], members[f"wait{i}_value"] = event, count
        for number, count in self.semaphores:
            members[f"sem{number}"] = count
        for number, value in enumerate(self.parameters):
            members[f"param{number}"] = value
        for i, (base, size) in enumerate(self.segments):
            members[f"base{i}"], members[f"limit{i}"] = base, size
        return JOB.pack(**members)
