"""Instructions of a job under construction: tasks, rings of buffers, semaphores, copies, program order."""

from compiler.backend.program.job import JobProgram
from compiler.backend.program.ring import Ring, StagingRing
from compiler.backend.program.semaphores import Sem
from compiler.backend.program.task import BufferFill, Task

__all__ = ["BufferFill", "JobProgram", "Ring", "Sem", "StagingRing", "Task"]
