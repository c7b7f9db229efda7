"""The program order of a job as numbers, by which the job of another length can be brought into the same order."""

from collections.abc import Collection, Mapping, Sequence

from compiler.emission.program.job import JobProgram
from compiler.emission.program.schedule import TaskSchedule
from compiler.emission.program.task import Task
from compiler.plan.plan import JobPlan
from compiler.plan.plan_error import OtherJobsError, PlanError


def order_of(job: JobProgram, tasks: Sequence[Task]) -> tuple[int, ...]:
    """Return the numbers of the ``tasks`` of a job, which are in program order, as kernels emitted them."""
    number = {task: at for at, task in enumerate(emitted_tasks(job))}
    return tuple(map(number.__getitem__, tasks))


def in_order(job: JobProgram, order: Sequence[int]) -> list[Task]:
    """Return the tasks of ``job`` in ``order``. Raises :class:`PlanError` if they are not as many."""
    tasks = emitted_tasks(job)
    if len(tasks) != len(order):
        raise PlanError(f"a job has {len(tasks)} instructions, in the plan {len(order)}")
    return [tasks[number] for number in order]


def scheduled_in(job: JobProgram, order: Sequence[int], schedule: TaskSchedule) -> TaskSchedule:
    """Return ``schedule`` of ``job`` with its tasks in ``order``, and with the same times; return ``schedule`` itself
    if one would come ahead of another that its unit has to execute first. Raises :class:`PlanError` if they are not as
    many."""
    at = {task: number for number, task in enumerate(schedule.tasks)}
    tasks = in_order(job, order)
    places = [at[task] for task in tasks]
    last: dict[int, int] = {}
    for task, place in zip(tasks, places, strict=True):
        if place < last.get(task.unit, -1):
            return schedule
        last[task.unit] = place
    return TaskSchedule(
        tasks, schedule.cycles, [schedule.starts[i] for i in places], [schedule.ends[i] for i in places]
    )


def check_jobs(jobs: Collection[JobPlan], count: int) -> None:
    """Raise :class:`OtherJobsError` unless these are decisions about ``count`` jobs."""
    if len(jobs) != count:
        raise OtherJobsError(f"a layer has {count} jobs, in the plan {len(jobs)}")


def possible(tasks: Sequence[Task], needs: Mapping[Task, Collection[Task]]) -> bool:
    """Return whether none of ``tasks``, which are in program order, comes ahead of one that it needs."""
    done: set[Task] = set()
    for task in tasks:
        if not done.issuperset(needs[task]):
            return False
        done.add(task)
    return True


def emitted_tasks(job: JobProgram) -> list[Task]:
    """Return the tasks of a job as its kernels emitted them."""
    return [task for part in job.parts or [job] for task in part.tasks]
