"""From a layer to its jobs."""

from collections.abc import Hashable
from dataclasses import dataclass, replace

from compiler.backend.kernels.export import export_job
from compiler.backend.kernels.registry import KernelContext, kernel_for
from compiler.backend.layers.layer import Layer
from compiler.backend.program.decisions import ChoiceLog
from compiler.backend.program.job import JobProgram
from compiler.backend.program.schedule import TaskSchedule, schedule
from hw.contract.isa import Segment


@dataclass(frozen=True)
class LayerProgram:
    """The jobs of one layer, in order, each with its program order; ``summary``: a few words on its tiles; ``choices``:
    what its kernels chose."""

    number: int
    layer: Layer
    summary: str
    jobs: list[tuple[JobProgram, TaskSchedule]]
    choices: tuple[Hashable, ...] = ()


def layer_program(layer: Layer, context: KernelContext) -> LayerProgram:
    """Plan, emit and schedule ``layer`` with the kernel that matches. Raises :class:`compiler.ir.CompileError`."""
    given = context.decisions
    context = replace(context, log=ChoiceLog(given.choices if given else None))
    kernel = kernel_for(layer, context)
    plan = kernel.plan(layer, context)
    jobs = kernel.emit(plan, context)
    exports = context.placement.exports
    if layer.output in exports:
        view = context.operand(layer.output).view
        jobs = [*jobs, export_job(context.params, context.number, view, exports[layer.output], Segment.SHARED)]
    scheduled = [(job, schedule(job.tasks, context.params, engines=context.budget.engines)) for job in jobs]
    if given:
        given.check_jobs(len(jobs))
        scheduled = [(job, own.scheduled(job, order)) for (job, order), own in zip(scheduled, given.jobs, strict=True)]
    assert context.log is not None
    return LayerProgram(context.number, layer, plan.summary, scheduled, tuple(context.log.made))
