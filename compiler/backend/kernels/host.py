"""Layers that run on the CPU: no job."""

from compiler.backend.kernels.registry import Kernel, KernelContext, kernel
from compiler.backend.layers.layer import HostLayer, Layer
from compiler.backend.program.job import JobProgram
from compiler.plan.tiles import Uncut


@kernel
class HostKernel(Kernel[Uncut]):
    """Host layers, which are steps of the image between its jobs."""

    def match(self, layer: Layer, context: KernelContext) -> bool:
        """Any host layer."""
        return isinstance(layer, HostLayer)

    def choose(self, layer: HostLayer, context: KernelContext) -> Uncut:
        """Nothing to cut."""
        return Uncut()

    def emit(self, layer: HostLayer, tiles: Uncut, context: KernelContext) -> list[JobProgram]:
        """No job."""
        return []
