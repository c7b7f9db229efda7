"""Layers that run on the CPU: no job."""

from compiler.backend.kernels.registry import Kernel, KernelContext, Plan, kernel
from compiler.backend.layers.layer import HostLayer, Layer
from compiler.backend.program.job import JobProgram


@kernel
class HostKernel(Kernel[Plan]):
    """Host layers, which are steps of the image between its jobs."""

    def match(self, layer: Layer, context: KernelContext) -> bool:
        """Any host layer."""
        return isinstance(layer, HostLayer)

    def plan(self, layer: HostLayer, context: KernelContext) -> Plan:
        """Nothing to cut."""
        return Plan("")

    def emit(self, plan: Plan, context: KernelContext) -> list[JobProgram]:
        """No job."""
        return []
