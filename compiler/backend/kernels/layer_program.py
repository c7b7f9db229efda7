"""From a layer to its jobs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from compiler.backend.kernels.export import export_job
from compiler.backend.kernels.registry import KernelContext, kernel_for
from compiler.backend.layers.layer import Layer
from compiler.backend.layers.region import Region
from compiler.backend.program.job import JobProgram
from compiler.backend.program.schedule import TaskSchedule, schedule
from compiler.ir import CompileError
from hw.contract.isa import Segment, Unit
from hw.contract.params import SocParams
from sim.timing.typical import insn_cycles


class NoRegions(Exception):
    """The members of each of ``regions`` cannot be one; says why."""

    def __init__(self, why: Mapping[Region, CompileError]) -> None:
        super().__init__("; ".join(f"{region.name}: {error}" for region, error in why.items()))
        self.regions = list(why)


@dataclass(frozen=True)
class LayerProgram:
    """The jobs of one layer, in order, each with its program order; ``summary``: a few words on its tiles."""

    number: int
    layer: Layer
    summary: str
    jobs: list[tuple[JobProgram, TaskSchedule]]

    @property
    def cycles(self) -> int:
        """Estimated cycles of all jobs, one after the other."""
        return sum(order.cycles for _, order in self.jobs)

    def busiest(self, engines: int) -> int:
        """Estimated cycles of the engine with the most to compute."""
        return max(sum(order.cycles for job, order in self.jobs if job.engine == i) for i in range(engines))

    def streaming(self, params: SocParams, engines: int) -> int:
        """Estimated cycles in which bodies load from DRAM or store there, of the engine with the most."""
        sums = [0] * engines
        for job, _ in self.jobs:
            tasks = [task for task in job.tasks if task.unit in (Unit.LD2, Unit.ST2)]
            sums[job.engine] += sum(insn_cycles(task.op, task.fields, params, engines) for task in tasks)
        return max(sums)


def layer_programs(layers: Iterable[Layer], context: KernelContext) -> list[LayerProgram]:
    """The programs of all layers. Raises :class:`NoRegions` if some regions have none, and
    :class:`compiler.ir.CompileError`."""
    programs, refused = list[LayerProgram](), dict[Region, CompileError]()
    for number, layer in enumerate(layers):
        try:
            programs.append(layer_program(layer, replace(context, number=number)))
        except CompileError as error:
            if not isinstance(layer, Region):
                raise
            refused[layer] = error
    if refused:
        raise NoRegions(refused)
    return programs


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
    return LayerProgram(context.number, layer, plan.summary, scheduled)
