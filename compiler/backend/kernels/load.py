"""A tensor in DRAM to LV2 as it is: each engine loads a part."""

import math

from compiler.backend.kernels.registry import Kernel, KernelContext, kernel
from compiler.backend.layers.layer import Layer, LoadLayer
from compiler.backend.program.copies import PIECE, pieces
from compiler.backend.program.job import JobProgram
from compiler.plan.tiles import Uncut
from hw.contract.isa import Op


@kernel
class LoadKernel(Kernel[Uncut]):
    """Loads without a detour; where the result has found no room in LV2, it is moved as other layers of copies are."""

    def match(self, layer: Layer, context: KernelContext) -> bool:
        """A load to LV2."""
        return isinstance(layer, LoadLayer) and context.operand(layer.output).view.on_chip

    def choose(self, layer: LoadLayer, context: KernelContext) -> Uncut:
        """Nothing to choose."""
        return Uncut()

    def emit(self, layer: LoadLayer, tiles: Uncut, context: KernelContext) -> list[JobProgram]:
        """Return a job for each engine that has a part: whole pieces, about as many each."""
        source, target = context.operand(layer.inputs[0]).view, context.operand(layer.output).view
        engines, size = context.budget.engines, math.prod(source.shape)
        count = -(-size // PIECE)
        bounds = [min(size, count * engine // engines * PIECE) for engine in range(engines)] + [size]
        jobs = []
        for engine in range(engines):
            first, last = bounds[engine], bounds[engine + 1]
            job = JobProgram(context.params, context.number, engine)
            for fields in pieces(source.offset + first, target.offset + first, last - first):
                job.emit(Op.LD2, fields | {"src_seg": source.segment, "dst_seg": target.segment})
            if job.tasks:
                jobs.append(job)
        return jobs
