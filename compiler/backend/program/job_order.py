"""The program order of a job as numbers, by which the job of another length can be brought into the same order."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from compiler.backend.memory.plan_error import OtherJobsError, PlanError
from compiler.backend.program.job import JobProgram
from compiler.backend.program.schedule import TaskSchedule
from compiler.backend.program.task import Task


@dataclass(frozen=True)
class JobOrder:
    """``tasks``: in program order, the numbers of the tasks as kernels emitted them; ``cuts``: the tasks ahead of which
    a cancellation point stands, by their place in program order."""

    tasks: tuple[int, ...]
    cuts: tuple[int, ...]

    @classmethod
    def of(cls, job: JobProgram, tasks: Sequence[Task], cuts: Sequence[int]) -> "JobOrder":
        """That of a job with its ``tasks`` in program order."""
        number = {task: at for at, task in enumerate(emitted_tasks(job))}
        return cls(tuple(number[task] for task in tasks), tuple(cuts))

    def applied(self, tasks: Sequence[Task]) -> list[Task]:
        """``tasks``, as kernels emitted them, in this order. Raises :class:`PlanError` if they are not as many."""
        if len(tasks) != len(self.tasks):
            raise PlanError(f"a job has {len(tasks)} instructions, in the plan {len(self.tasks)}")
        return [tasks[number] for number in self.tasks]

    def scheduled(self, job: JobProgram, schedule: TaskSchedule) -> TaskSchedule:
        """``schedule`` of ``job`` with its tasks in this order, and with the same times; ``schedule`` itself if one
        would come ahead of another that its unit has to execute first. Raises :class:`PlanError` if they are not as
        many."""
        at = {task: number for number, task in enumerate(schedule.tasks)}
        tasks = self.applied(emitted_tasks(job))
        places = [at[task] for task in tasks]
        last: dict[int, int] = {}
        for task, place in zip(tasks, places, strict=True):
            if place < last.get(task.unit, -1):
                return schedule
            last[task.unit] = place
        return TaskSchedule(
            tasks, schedule.cycles, [schedule.starts[i] for i in places], [schedule.ends[i] for i in places]
        )


def check_jobs(orders: Collection[JobOrder], count: int) -> None:
    """Raise :class:`OtherJobsError` unless these are orders of ``count`` jobs."""
    if len(orders) != count:
        raise OtherJobsError(f"a layer has {count} jobs, in the plan {len(orders)}")


def possible(tasks: Sequence[Task], needs: Mapping[Task, Collection[Task]]) -> bool:
    """Whether none of ``tasks``, which are in program order, comes ahead of one that it needs."""
    done: set[Task] = set()
    for task in tasks:
        if not done.issuperset(needs[task]):
            return False
        done.add(task)
    return True


def emitted_tasks(job: JobProgram) -> list[Task]:
    """The tasks of a job as its kernels emitted them."""
    return [task for part in job.parts or [job] for task in part.tasks]
