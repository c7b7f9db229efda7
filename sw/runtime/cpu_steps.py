"""Steps of models on the CPU: one after the other, on a core of their own, each for as long as it is charged."""

from collections.abc import Iterable
from dataclasses import dataclass

from hw.contract.image import StepInfo
from sw.driver import Device
from sw.runtime.request import CpuStep, Request


@dataclass
class CpuSteps:
    """The CPU of one run time."""

    device: Device
    _free: int = 0  #: cycle at which it has computed all steps that it was given

    def begin(self, request: Request, step: StepInfo) -> None:
        """Compute the ``step`` that is next for ``request``. Raises what the step raises."""
        outputs, cycles = request.session.compute_host(step), request.session.host_cycles(step)
        self._free = max(self._free, self.device.bus.cycle) + cycles
        request.host += cycles
        request.on_cpu = CpuStep(self._free, outputs)

    def ended(self, requests: Iterable[Request]) -> list[Request]:
        """Those of ``requests`` whose step has ended by now; its outputs are on the device."""
        now = self.device.bus.cycle
        done = [request for request in requests if request.on_cpu is not None and request.on_cpu.end <= now]
        for request in done:
            assert request.on_cpu is not None
            request.session.store_host(request.on_cpu.outputs)
            request.on_cpu = None
        return done
