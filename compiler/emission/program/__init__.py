"""Instructions of a job under construction: tasks, rings of buffers, semaphores, copies, program order."""

from compiler.emission.program.copies import CopyLoop, Fields, contiguous, copy_fields
from compiler.emission.program.job import JobProgram
from compiler.emission.program.ring import MOST_LV0_SLOTS, Ring, StagingRing, lv0_slots
from compiler.emission.program.semaphores import Sem
from compiler.emission.program.task import BufferFill, ParameterUse, Task

__all__ = [
    "MOST_LV0_SLOTS",
    "BufferFill", "CopyLoop", "Fields", "JobProgram", "ParameterUse", "Ring", "Sem", "StagingRing", "Task",
    "contiguous", "copy_fields", "lv0_slots",
]  # fmt: skip
