"""Regions: the jobs of several layers become one job for each engine, whose units work on several layers at a time.

Convolutions use one part of LV1, layers of the vector unit another, so that the array works on one layer while the
vector unit finishes another. Layers of one kind use the same bytes one after the other, each as soon as the one before
has done with them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compiler.backend.kernels.registry import Kernel, KernelContext, Plan, kernel, kernel_for
from compiler.backend.layers.layer import ConvLayer, Layer, ProductLayer
from compiler.backend.layers.region import Place, Region
from compiler.backend.layers.region_share import Share
from compiler.backend.memory.operand import KeptInput, Lv1Area
from compiler.backend.program.address import Anchor, Symbol
from compiler.backend.program.dependencies import apart, dependencies
from compiler.backend.program.extents import Extent, source, written
from compiler.backend.program.job import JobProgram
from compiler.backend.program.job_order import JobOrder, emitted, possible
from compiler.backend.program.made import Made
from compiler.backend.program.region_order import RegionError, order_tasks, synchronise
from compiler.backend.program.schedule import schedule
from hw.contract.isa import Op, Segment
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from sim.cost import LAYER_TO_LOAD

_LONGEST = 1024  #: cycles of an instruction of the vector unit beside convolutions, which must not wait long for it


@dataclass(frozen=True)
class RegionPlan(Plan):
    """The members, each with the bytes of LV1 that it may use, and its place."""

    members: tuple[tuple[Layer, Lv1Area, Place], ...]


@kernel
class RegionKernel(Kernel[RegionPlan]):
    """One job for each engine. Raises :class:`RegionError` where that is impossible, or gains nothing."""

    def match(self, layer: Layer, context: KernelContext) -> bool:
        """Any region."""
        return isinstance(layer, Region)

    def plan(self, layer: Region, context: KernelContext) -> RegionPlan:
        """A quarter of LV1 for the vector unit, if there are convolutions too; half beside products of computed
        matrices alone, which need less than convolutions and have softmax beside them."""
        whole = Lv1Area.whole(context.params)
        convolutions = [isinstance(member, ConvLayer | ProductLayer) for member in layer.members]
        if all(convolutions) or not any(convolutions):
            areas = [whole] * len(convolutions)
        else:
            constant = any(isinstance(member, ConvLayer) for member in layer.members)
            most = whole.size * 3 // 4 if constant else whole.size // 2
            areas = [Lv1Area(0, most) if conv else Lv1Area(most, whole.size - most) for conv in convolutions]
        alone = sum(not isinstance(place, Share) for place in layer.places)
        summary = "side by side" + f", {alone} on one engine each" * bool(alone)
        return RegionPlan(summary, tuple(zip(layer.members, areas, layer.places, strict=True)))

    def emit(self, plan: RegionPlan, context: KernelContext) -> list[JobProgram]:
        """Return one job for each engine that has a part in it."""
        engines = range(context.budget.engines)
        parts = _parts(plan, context)
        if len(engines) > 1 and not apart(parts, context.params):
            raise RegionError("an engine would read what another makes")
        busy = [engine for engine in engines if parts[engine]]
        if context.decisions is not None:
            context.decisions.check_jobs(len(busy))
            given = zip(busy, context.decisions.jobs, strict=True)
            return [_merged(parts[engine], context, engine, order)[0] for engine, order in given]
        merged, alone = [_merged(parts[engine], context, engine) for engine in busy], _alone(plan, context)
        together = max(cycles for _, cycles in merged)
        if together >= alone:
            raise RegionError(f"{together} cycles side by side, {alone} one after the other")
        return [job for job, _ in merged]


def _alone(plan: RegionPlan, context: KernelContext) -> int:
    """Return the cycles of the members one after the other, if each were a layer of its own."""
    total, context = 0, replace(context, log=None)
    for member, *_ in plan.members:
        work = kernel_for(member, context)
        took = [0] * context.budget.engines
        for job in work.emit(work.plan(member, context), context):
            took[job.engine] += schedule(job.tasks, context.params, engines=context.budget.engines).cycles
        total += max(took) + LAYER_TO_LOAD if max(took) else 0
    return total


def _parts(plan: RegionPlan, context: KernelContext) -> list[list[JobProgram]]:
    """Return the jobs of the members, by engine."""
    engines, made = range(context.budget.engines), Made(context.params)
    parts: list[list[JobProgram]] = [[] for _ in engines]
    total = 0
    first = context.starts and not context.budget.placed
    for member, area, place in plan.members:
        around = replace(
            context, region_lv1=area, made=made, own_loads=first, longest=min(context.longest or _LONGEST, _LONGEST),
            budget=context.budget if isinstance(place, Share) else context.budget.of_one(place),
            share=place if isinstance(place, Share) else Share.ANY,
        )  # fmt: skip
        work = kernel_for(member, around)
        jobs = work.emit(work.plan(member, around), around)
        for job in jobs:
            job.engine = job.engine if isinstance(place, Share) else place
        took = [0 for _ in engines]
        for job in jobs:
            if first and not job.own_loads:
                raise RegionError("the weights of the first layer do not come with its body")
            order = schedule(job.tasks, context.params, engines=len(engines))
            ends = [total + took[job.engine] + end for end in order.ends]
            made.add(job.engine, order.tasks, dict(zip(order.tasks, ends, strict=True)))
            took[job.engine] += order.cycles
            parts[job.engine].append(job)
        total += max(took)
    return parts


def _merged(
    parts: Sequence[JobProgram], context: KernelContext, engine: int, order: JobOrder | None = None
) -> tuple[JobProgram, int]:
    """Return one job of all, and its estimated cycles; 0 if its ``order`` is given, which is taken where that is
    possible."""
    job = JobProgram(context.params, context.number, engine, parts[0].own_loads, parts=list(parts))
    for part in parts:
        _move_weights(part, len(job.window_data), len(job.stream_data))
        job.window_data += part.window_data
        job.stream_data += part.stream_data
        if part.kept:
            if job.kept:
                raise RegionError("two inputs would stay in LV2")
            job.kept, job.kept_before = part.kept, part.kept_before
    if job.kept:
        _check_kept(parts, job.kept, context.params)
    if len(job.window_data) > context.budget.windows:
        raise RegionError(f"its weights take {len(job.window_data)} bytes, a window has {context.budget.windows}")
    needs = dependencies(parts, context.params)
    cycles = 0
    if order is not None:
        job.tasks = order.applied(emitted(job))
    if order is None or not possible(job.tasks, needs):
        job.tasks, cycles = order_tasks(parts, needs, context.params, context.budget.engines)
    synchronise(job.tasks, needs)
    return job, cycles


def _check_kept(parts: Sequence[JobProgram], kept: KeptInput, params: SocParams) -> None:
    """Raise :class:`RegionError` if another layer passes data through the bytes in which the input stays."""
    bytes_kept = Extent(Space.LV2, Segment.LV2, kept.base, kept.base + kept.size)
    for part in parts:
        if part.kept is not kept:
            touched = [source(task) for task in part.tasks if task.op in (Op.LD1, Op.ST2)]
            touched += [written(task, params) for task in part.tasks if task.op in (Op.LD2, Op.ST1)]
            if any(extent and extent.meets(bytes_kept) for extent in touched):
                raise RegionError("the input would stay where another layer stages its data")


def _move_weights(part: JobProgram, window: int, stream: int) -> None:
    """Let symbolic addresses of ``part`` count from ``window`` bytes of others in the window, and ``stream`` behind."""
    ahead = {Anchor.WINDOW: window, Anchor.WEIGHTS: window, Anchor.STREAM: stream}
    for task in part.tasks:
        symbols = {name: at for name, at in task.fields.items() if isinstance(at, Symbol)}
        task.move({name: at + ahead[at.anchor] for name, at in symbols.items()})
