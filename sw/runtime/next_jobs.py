"""Tells which jobs of requests that are about to be suspended come next, for what they find in LV2."""

from sw.driver import LoadedModel
from sw.runtime.job_groups import job_groups
from sw.runtime.priority_level import PriorityLevel
from sw.runtime.request import Request


def next_jobs(level: PriorityLevel) -> list[tuple[LoadedModel, int]]:
    """Return the next job of each request of ``level`` that is not on an engine: of a layer that is queued in part the
    next one, otherwise the first of the table.

    Also of requests that have others queued: these may end before the engines halt.
    """
    begun = {run.request.number: run.left[0] for run in level.groups.values() if run.jobs and run.left}
    lefts = [(request, _jobs_left(level, request)) for request in level.requests]
    return [(request.model, begun.get(request.number, jobs[0])) for request, jobs in lefts if jobs]


def _jobs_left(level: PriorityLevel, request: Request) -> list[int]:
    runs = [run for run in level.groups.values() if run.request is request]
    queued = {job for run in runs for job in set(run.group.jobs) - set(run.left)}
    steps = [step for step in request.steps[request.step :] if step.kind == "jobs"]
    jobs = [job for step in steps for group in job_groups(request.model.image, step) for job in group.jobs]
    ended = {result.job for result in request.results}
    return [job for job in jobs if job not in queued and job not in ended]
