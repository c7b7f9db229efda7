"""Takes requests from step to step, each when the one before it has ended: jobs on the engines, models on the CPU."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from sw.runtime.cpu_steps import CpuSteps
from sw.runtime.group_run import GroupRun
from sw.runtime.priority_level import PriorityLevel
from sw.runtime.recovery import Recovery
from sw.runtime.request import Request


@dataclass
class RequestSteps:
    """Takes the requests of one run time on, whose ``levels`` and ``groups`` (what ended) it changes. ``end`` is told
    of a request whose last step has ended, or failed."""

    levels: list[PriorityLevel]
    groups: deque[GroupRun]
    cpu: CpuSteps
    recovery: Recovery
    end: Callable[[Request, Exception | None], None]

    def enter(self, level: PriorityLevel, request: Request) -> None:
        """Run host steps that are next; open the next step of the accelerator, or end the request."""
        while request.step < len(request.steps) and not request.ending:
            step = request.steps[request.step]
            if step.kind == "jobs" and step.count:
                request.groups_ended = 0
                try:
                    level.open(request)
                except Exception as error:
                    self.recovery.fail(request, error)
                return
            if step.kind == "host":
                try:
                    self.cpu.begin(request, step)
                except Exception as error:  # onnxruntime's exceptions have no common base of their own
                    level.requests.remove(request)
                    self.end(request, error)
                return
            request.step += 1
        level.requests.remove(request)
        self.end(request, None)

    def end_cpu_steps(self) -> None:
        """Go on with requests whose step on the CPU has ended."""
        for level in list(self.levels):
            for request in self.cpu.ended(level.requests):
                try:
                    self.cpu.store(request)
                except Exception as error:  # the step gave what the model has no place for
                    self.recovery.fail(request, error)
                    continue
                request.step += 1
                self.enter(level, request)

    def advance_all(self) -> None:
        """Take what has ended, and go on with requests whose step has."""
        for level in list(self.levels):
            level.collect()
            self.groups += level.finished
            level.finished.clear()
            while level.failed:
                request, error = level.failed.pop()
                if not request.done():
                    self.recovery.fail(request, error)
            for request in [r for r in level.requests if r.on_cpu is None and not level.busy(r)]:
                request.step += 1
                request.groups_ended = 0
                self.enter(level, request)
