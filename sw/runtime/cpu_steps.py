"""Runs steps of models on the CPU: one after the other, on a core of their own, each for as long as it is charged."""

from collections.abc import Iterable
from dataclasses import dataclass

from hw.image import StepInfo
from sw.driver import Device
from sw.runtime.request import CpuStep, Request
from sw.runtime.stats import StepOnCpu


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
