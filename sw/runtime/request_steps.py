"""Takes requests from step to step, each when the one before it has ended: jobs on the engines, models on the CPU."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hw.image import StepInfo
from sw.driver import Device
from sw.runtime.recovery import Recovery
from sw.runtime.request import CpuStep, GroupRun, Request
from sw.runtime.stats import StepOnCpu
from sw.runtime.waiting_requests import RuntimeState


@dataclass
class CpuSteps:
    """Is the CPU of one run time."""

    device: Device
    _free: int = 0  #: cycle at which it has computed all steps that it was given

    def begin(self, request: Request, step: StepInfo) -> None:
        """Compute the ``step`` that is next for ``request``. Raises what the step raises."""
        outputs, cycles = request.data.compute_host(step), request.data.host_cycles(step)
        begin = max(self._free, self.device.bus.cycle)
        self._free = begin + cycles
        request.host += cycles
        request.on_cpu = CpuStep(step, begin, self._free, outputs)

    def ended(self, requests: Iterable[Request]) -> list[Request]:
        """Return those of ``requests`` whose step has ended by now: :meth:`store` is next."""
        now = self.device.bus.cycle
        return [request for request in requests if request.on_cpu is not None and request.on_cpu.end <= now]

    def store(self, request: Request) -> None:
        """Write the outputs of the request's step to the device. Raises what that raises; the step is over in any
        case."""
        assert request.on_cpu is not None
        ended, request.on_cpu = request.on_cpu, None
        request.data.store_host(ended.outputs)
        step = ended.step
        request.cpu_steps.append(StepOnCpu(tuple(step.outputs), step.reason, ended.begin, self.device.bus.cycle))


class RequestSteps:
    """Takes the started requests of one run time on, and adds what has ended to its ``groups``. ``end`` is told of a
    request whose last step has ended, or failed."""

    def __init__(
        self, state: RuntimeState, groups: deque[GroupRun], recovery: Recovery,
        end: Callable[[Request, Exception | None], None],
    ) -> None:  # fmt: skip
        self._started, self._priorities, self._cpu = state.started, state.priorities, CpuSteps(state.device)
        self._groups, self._recovery, self._end = groups, recovery, end

    def enter(self, request: Request) -> None:
        """Run host steps that are next; open the next step of the accelerator, or end the request."""
        while request.step < len(request.steps) and not request.ending:
            step = request.steps[request.step]
            if step.kind == "jobs" and step.count:
                request.groups_ended = 0
                try:
                    self._started.open(request)
                except Exception as error:
                    self._recovery.fail(request, error)
                return
            if step.kind == "host":
                try:
                    self._cpu.begin(request, step)
                except Exception as error:  # onnxruntime's exceptions have no common base of their own
                    self._priorities.ended(request)
                    self._end(request, error)
                return
            request.step += 1
        self._priorities.ended(request)
        self._end(request, None)

    def end_cpu_steps(self) -> None:
        """Go on with requests whose step on the CPU has ended."""
        for request in self._cpu.ended(self._started.requests):
            try:
                self._cpu.store(request)
            except Exception as error:  # the step gave what the model has no place for
                self._recovery.fail(request, error)
                continue
            request.step += 1
            self.enter(request)

    def advance_all(self) -> None:
        """Take what has ended, and go on with requests whose step has."""
        started = self._started
        started.collect()
        self._groups += started.finished
        started.finished.clear()
        while started.failed:
            request, error = started.failed.pop()
            if not request.done():
                self._recovery.fail(request, error)
        for request in [r for r in started.requests if r.on_cpu is None and not started.busy(r)]:
            request.step += 1
            request.groups_ended = 0
            self.enter(request)
