"""A tensor in DRAM to LV2 as it is: each engine loads a part."""

import math
from dataclasses import dataclass

from compiler.backend.kernels.registry import Kernel, KernelContext, Plan, kernel
from compiler.backend.layers.layer import Layer, LoadLayer
from compiler.backend.memory.tensor_view import TensorView
from compiler.backend.program.copies import PIECE, pieces
from compiler.backend.program.job import JobProgram
from hw.contract.isa import Op


@dataclass(frozen=True)
class LoadPlan(Plan):
    """From where to where."""

    source: TensorView
    target: TensorView


@kernel
class LoadKernel(Kernel[LoadPlan]):
    """Loads without a detour; where the result has found no room in LV2, it is moved as other layers of copies are."""

    def match(self, layer: Layer, context: KernelContext) -> bool:
        """A load to LV2."""
        return isinstance(layer, LoadLayer) and context.operand(layer.output).view.on_chip

    def plan(self, layer: LoadLayer, context: KernelContext) -> LoadPlan:
        """Nothing to choose."""
        return LoadPlan("", context.operand(layer.inputs[0]).view, context.operand(layer.output).view)

    def emit(self, plan: LoadPlan, context: KernelContext) -> list[JobProgram]:
        """Return a job for each engine that has a part: whole pieces, about as many each."""
        engines, size = context.budget.engines, math.prod(plan.source.shape)
        count = -(-size // PIECE)
        bounds = [min(size, count * engine // engines * PIECE) for engine in range(engines)] + [size]
        jobs = []
        for engine in range(engines):
            first, last = bounds[engine], bounds[engine + 1]
            job = JobProgram(context.params, context.number, engine)
            for fields in pieces(plan.source.offset + first, plan.target.offset + first, last - first):
                job.emit(Op.LD2, fields | {"src_seg": plan.source.segment, "dst_seg": plan.target.segment})
            if job.tasks:
                jobs.append(job)
        return jobs
