"""From a layer to its jobs."""

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.backend.kernels.move import export_job
from compiler.backend.kernels.region import region_jobs
from compiler.backend.kernels.registry import KernelContext, emitted
from compiler.backend.layers.layer import Layer, MoveLayer
from compiler.backend.layers.region import Region
from compiler.backend.layers.region_share import Share
from compiler.backend.program.job import JobProgram
from compiler.backend.program.job_order import check_jobs, scheduled_in
from compiler.backend.program.schedule import TaskSchedule, schedule
from compiler.plan.plan import JobPlan
from compiler.plan.tiles import AnyTiles
from hw.contract.isa import Segment


@dataclass(frozen=True)
class LayerProgram:
    """Holds the jobs of one layer, in order, each with its program order; ``summary``: a few words on its tiles;
    ``tiles``: those of each member."""

    number: int
    layer: Layer
    summary: str
    jobs: list[tuple[JobProgram, TaskSchedule]]
    tiles: tuple[AnyTiles, ...]


def layer_program(
    layer: Layer, context: KernelContext, given: Sequence[AnyTiles | None] | None = None,
    plans: Sequence[JobPlan] | None = None,
) -> LayerProgram:  # fmt: skip
    """Cut, emit and schedule ``layer`` with the kernels that match; ``given`` are tiles of its members and ``plans`` of
    its jobs that are decided already. Raises :class:`compiler.ir.CompileError`."""
    jobs, tiles = _jobs(layer, context, given, plans)
    summary = _summary(layer, tiles, jobs)
    exports = context.placement.exports
    if layer.output in exports:
        view = context.operand(layer.output).view
        jobs = [*jobs, export_job(context.params, context.number, view, exports[layer.output], Segment.SHARED)]
    scheduled = [(job, schedule(job.tasks, context.params, engines=context.budget.engines)) for job in jobs]
    if plans is not None:
        check_jobs(plans, len(jobs))
        scheduled = [
            (job, order if own.order is None else scheduled_in(job, own.order, order))
            for (job, order), own in zip(scheduled, plans, strict=True)
        ]
    return LayerProgram(context.number, layer, summary, scheduled, tiles)


def _jobs(
    layer: Layer, context: KernelContext, given: Sequence[AnyTiles | None] | None, plans: Sequence[JobPlan] | None
) -> tuple[list[JobProgram], tuple[AnyTiles, ...]]:
    if isinstance(layer, Region):
        jobs, tiles = region_jobs(layer, given or (None,) * len(layer.members), context, plans)
        return jobs, tuple(tiles)
    jobs, cut = emitted(layer, given[0] if given else None, context)
    return jobs, (cut,)


def _summary(layer: Layer, tiles: Sequence[AnyTiles], jobs: Sequence[JobProgram]) -> str:
    """Return a few words on the tiles, for the report."""
    if isinstance(layer, Region):
        alone = sum(not isinstance(place, Share) for place in layer.places)
        return "side by side" + f", {alone} on one engine each" * bool(alone)
    if isinstance(layer, MoveLayer) and not jobs:
        return "in place"
    return tiles[0].summary + ", streamed" * any(job.stream_data for job in jobs)
