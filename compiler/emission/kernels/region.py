"""Regions: the jobs of several layers become one job for each engine, whose units work on several layers at a time.

Convolutions use one part of LV1, layers of the vector unit another, so that the array works on one layer while the
vector unit finishes another. Layers of one kind use the same bytes one after the other, each as soon as the one before
has done with them.
"""

from collections.abc import Sequence
from dataclasses import replace

from compiler.emission.kernels.registry import KernelContext, emitted
from compiler.emission.program.address import Anchor
from compiler.emission.program.dependencies import Made, apart, dependencies
from compiler.emission.program.extents import Extent, source, written
from compiler.emission.program.job import JobProgram
from compiler.emission.program.job_order import check_jobs, in_order, possible
from compiler.emission.program.order_cache import OrderedTasks, ordered
from compiler.emission.program.region_order import RegionError, order_tasks, synchronise
from compiler.emission.program.schedule import schedule
from compiler.emission.program.task import release
from compiler.plan.layers.layer import ConvLayer, ProductLayer
from compiler.plan.layers.region_share import Share
from compiler.plan.layers.step import ModelStep
from compiler.plan.memory.operand import KeptInput, Lv1Area
from compiler.plan.plan import JobPlan
from compiler.plan.tiles import AnyTiles
from hw.contract.isa import Op, Segment
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from sim.cost import LAYER_TO_LOAD

_LONGEST = 1024  #: cycles of an instruction of the vector unit beside convolutions, which must not wait long for it


def region_jobs(
    region: ModelStep, tiles: Sequence[AnyTiles | None], context: KernelContext, given: Sequence[JobPlan] | None = None
) -> tuple[list[JobProgram], list[AnyTiles]]:
    """Return one job for each engine that has a part in ``region``, and the tiles of its members: those of ``tiles``,
    or as they are chosen where these are None. ``given`` are decisions about each job, if there are any.

    Raises :class:`RegionError` where the members cannot be one or, if their jobs are free, gain nothing by it.
    """
    engines = range(context.budget.engines)
    parts, chosen = _parts(region, tiles, context)
    if len(engines) > 1 and not apart(parts):
        raise RegionError("an engine would read what another makes")
    busy = [engine for engine in engines if parts[engine]]
    if given is not None:
        check_jobs(given, len(busy))
        orders = zip(busy, (one.order for one in given), strict=True)
        return [_merged(parts[engine], context, engine, order)[0] for engine, order in orders], chosen
    merged, alone = [_merged(parts[engine], context, engine) for engine in busy], _alone(region, context)
    together = max(cycles for _, cycles in merged)
    if together >= alone:
        raise RegionError(f"{together} cycles side by side, {alone} one after the other")
    return [job for job, _ in merged], chosen


def _areas(region: ModelStep, params: SocParams) -> list[Lv1Area]:
    """Return the bytes of LV1 that each member may use: a quarter is for the vector unit, if there are convolutions
    too; half beside products of computed matrices alone, which need less than convolutions and have softmax beside
    them."""
    whole = Lv1Area.whole(params)
    convolutions = [isinstance(member, ConvLayer | ProductLayer) for member in region.members]
    if all(convolutions) or not any(convolutions):
        return [whole] * len(convolutions)
    constant = any(isinstance(member, ConvLayer) for member in region.members)
    most = whole.size * 3 // 4 if constant else whole.size // 2
    return [Lv1Area(0, most) if conv else Lv1Area(most, whole.size - most) for conv in convolutions]


def _alone(region: ModelStep, context: KernelContext) -> int:
    """Return the cycles of the members one after the other, if each were a layer of its own."""
    total = 0
    for member in region.members:
        took = [0] * context.budget.engines
        for job in emitted(member, None, context)[0]:
            took[job.engine] += schedule(job.tasks, context.params, engines=context.budget.engines).cycles
            release(job.tasks)
        total += max(took) + LAYER_TO_LOAD if max(took) else 0
    return total


def _parts(
    region: ModelStep, tiles: Sequence[AnyTiles | None], context: KernelContext
) -> tuple[list[list[JobProgram]], list[AnyTiles]]:
    """Return the jobs of the members, by engine, and the tiles of each member."""
    engines, made = range(context.budget.engines), Made(context.params)
    parts: list[list[JobProgram]] = [[] for _ in engines]
    chosen: list[AnyTiles] = []
    total = 0
    first = context.starts and not context.budget.placed
    areas = _areas(region, context.params)
    for member, given, area, place in zip(region.members, tiles, areas, region.places, strict=True):
        around = replace(
            context, region_lv1=area, made=made, own_loads=first, ends=False,
            longest=min(context.longest or _LONGEST, _LONGEST),
            budget=context.budget if isinstance(place, Share) else context.budget.of_one(place),
            share=place if isinstance(place, Share) else Share.ANY,
        )  # fmt: skip
        jobs, cut = emitted(member, given, around)
        chosen.append(cut)
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
    return parts, chosen


def _merged(
    parts: Sequence[JobProgram], context: KernelContext, engine: int, order: Sequence[int] | None = None
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
    if order is not None:
        needs = dependencies(parts, context.params)
        tasks = in_order(job, order)
        if possible(tasks, needs):
            synchronise(tasks, needs)
            job.tasks = tasks
            return job, 0
    job.tasks, cycles = ordered(
        parts, context.params, context.budget.engines, lambda: _ordered(parts, context.params, context.budget.engines)
    )
    return job, cycles


def _ordered(parts: Sequence[JobProgram], params: SocParams, engines: int) -> OrderedTasks:
    needs = dependencies(parts, params)
    tasks, cycles = order_tasks(parts, needs, params, engines)
    synchronise(tasks, needs)
    return OrderedTasks(tasks, cycles)


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
        task.move({name: at + ahead[at.anchor] for name, at in task.symbols.items()})
