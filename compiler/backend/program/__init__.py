"""Instructions of a job under construction: tasks, rings of buffers, semaphores, copies, program order."""

from compiler.backend.program.copies import CopyLoop, Fields, contiguous, copy_fields
from compiler.backend.program.job import JobProgram
from compiler.backend.program.ring import Ring, StagingRing, lv0_slots
from compiler.backend.program.semaphores import Sem
from compiler.backend.program.task import BufferFill, Task

__all__ = [
    "BufferFill", "CopyLoop", "Fields", "JobProgram", "Ring", "Sem", "StagingRing", "Task", "contiguous", "copy_fields",
    "lv0_slots",
]  # fmt: skip
