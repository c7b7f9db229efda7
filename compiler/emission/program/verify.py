"""The verifier of jobs, run before cancellation points are chosen."""

from collections.abc import Iterator, Sequence

from compiler.emission.program.address import Anchor
from compiler.emission.program.job import JobProgram
from compiler.emission.program.schedule import TaskSchedule
from compiler.ir import CompileError


def verify_jobs(layer: str, jobs: Sequence[tuple[JobProgram, TaskSchedule]]) -> None:
    """Check that program order holds every task once, that every wait stands behind its signal and all semaphores end
    at zero, and that symbolic addresses lie in the job's own weights. Raises :class:`CompileError` naming ``layer``."""
    for job, order in jobs:
        for problem in _problems(job, order):
            raise CompileError(f"layer {layer!r}: internal error: {problem}")


def _problems(job: JobProgram, order: TaskSchedule) -> Iterator[str]:
    if set(order.tasks) != set(job.tasks) or len(order.tasks) != len(job.tasks):
        yield "program order and tasks differ"
    counts: dict[int, int] = {}
    sizes = {Anchor.STREAM: len(job.stream_data)}
    sizes[Anchor.WINDOW] = sizes[Anchor.WEIGHTS] = len(job.window_data)
    for number, task in enumerate(order.tasks):
        for sem in task.waits:
            counts[sem] = counts.get(sem, 0) - 1
            if counts[sem] < 0:
                yield f"task {number} ({task.op.name}) waits for semaphore {sem.name} ahead of its signal"
        for sem in task.signals:
            counts[sem] = counts.get(sem, 0) + 1
        for address in task.symbols.values():
            if not 0 <= address.offset < sizes[address.anchor]:
                yield f"task {number} ({task.op.name}): address {address} is outside of the job's weights"
    left = [sem for sem, count in counts.items() if count]
    if left:
        yield f"semaphores {left} do not end at zero"
