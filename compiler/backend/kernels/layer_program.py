"""From a layer to its jobs."""

from dataclasses import dataclass

from compiler.backend.kernels.export import export_job
from compiler.backend.kernels.registry import KernelContext, kernel_for
from compiler.backend.layers.layer import Layer
from compiler.backend.program.job import JobProgram
from compiler.backend.program.job_order import check_count
from compiler.backend.program.schedule import TaskSchedule, schedule
from hw.contract.isa import Segment


@dataclass(frozen=True)
class LayerProgram:
    """The jobs of one layer, in order, each with its program order; ``summary``: a few words on its tiles."""

    number: int
    layer: Layer
    summary: str
    jobs: list[tuple[JobProgram, TaskSchedule]]


def layer_program(layer: Layer, context: KernelContext) -> LayerProgram:
    """Plan, emit and schedule ``layer`` with the kernel that matches. Raises :class:`compiler.ir.CompileError`."""
    kernel = kernel_for(layer, context)
    plan = kernel.plan(layer, context)
    jobs = kernel.emit(plan, context)
    exports = context.placement.exports
    if layer.output in exports:
        view = context.operand(layer.output).view
        jobs = [*jobs, export_job(context.params, context.number, view, exports[layer.output], Segment.SHARED)]
    scheduled = [(job, schedule(job.tasks, context.params, engines=context.budget.engines)) for job in jobs]
    if context.orders is not None:
        check_count(context.orders, len(jobs))
        scheduled = [
            (job, given.scheduled(job, order)) for (job, order), given in zip(scheduled, context.orders, strict=True)
        ]
    return LayerProgram(context.number, layer, plan.summary, scheduled)
