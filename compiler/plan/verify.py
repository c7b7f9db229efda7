"""The verifiers of a plan, run before anything is emitted, and of what was emitted by it.

Places in memory are verified by :mod:`compiler.plan.memory.verify`, tiles by the kernels that they are given to.
"""

from collections.abc import Iterator, Sequence

from compiler import ir
from compiler.emission.objects.step_object import StepObject
from compiler.plan.layers import HostLayer, Layer, LoadLayer
from compiler.plan.layers.step import ModelStep, parameters_of
from compiler.plan.lowered_model import LoweredModel
from compiler.plan.order.dimensions import CHANNELS, FRAMES, HEIGHT, WIDTH, Dimension
from compiler.plan.plan import VERSION, HeadGroups, ImageCut, InputLoad, PiecesRead, Plan, Reload, StepPlan
from compiler.plan.plan_error import PlanError
from compiler.plan.split.channels import UNIT, can_be_cut_by_channels
from compiler.plan.split.parts import can_be_cut, can_end_cut, frames_of, whole_box
from compiler.plan.structure import layer_names, structure_of
from hw.contract.formats import PARAMETERS

_OF_CHAINS = InputLoad | PiecesRead | Reload  #: rewrites of models whose layers come one after the other


def verify_model(graph: ir.Graph, plan: Plan) -> None:
    """Check that ``plan`` is of this version and about ``graph``, that its hardware does what its options ask for, and
    that its rewrites name what is there. Raises :class:`PlanError`."""
    where = f"model {graph.name!r}"
    if plan.version != VERSION:
        raise PlanError(f"{where}: the plan has version {plan.version}, not {VERSION}: make it again")
    if plan.structure != structure_of(graph):
        raise PlanError(
            f"{where}: the plan is for another model, {plan.model!r}, or for another batch, other sizes or other nodes "
            "on the CPU: name them as for the plan"
        )
    for problem in _rewrites(graph, plan):
        raise PlanError(f"{where}: rewrites of the plan: {problem}; leave rewrites and all behind them out")


def _rewrites(graph: ir.Graph, plan: Plan) -> Iterator[str]:
    given, options = plan.rewrites or (), plan.options
    if given and (options.observe or (options.placed and any(isinstance(one, _OF_CHAINS) for one in given))):
        yield "observed models have none, and placed ones no loads of inputs, no pieces and no reloads"
    inputs, loaded = {port.tensor for port in graph.inputs}, [one for one in given if isinstance(one, InputLoad)]
    for load in loaded:
        if load.input not in inputs or loaded.count(load) > 1:
            yield f"input {load.input!r} is none of the model's, or is loaded twice"
    cut = [name for one in plan.cuts for name in one.operators]
    if odd := sorted(name for name in cut if cut.count(name) > 1):
        yield f"operator {odd[0]!r} is in two cuts"
    for each in plan.cuts:
        yield from _cut(graph, each)
    heads = {op.name: op.heads for op in graph.ops if isinstance(op, ir.Product)}
    rows = {op.name: graph.tensors[op.output].shape[-2] for op in graph.ops if isinstance(op, ir.Product)}
    for one in given:
        if isinstance(one, HeadGroups) and one.operator in heads:
            ends = [first + count for first, count in one.groups]
            if [first for first, _ in one.groups] != [0, *ends[:-1]] or ends[-1:] != [heads[one.operator]]:
                yield f"groups of {one.operator!r} are {one.groups}, and must cover its {heads[one.operator]} heads"
            if any(count < 1 for _, count in one.groups):
                yield f"a group of {one.operator!r} has no head"
            if not 1 <= one.stripes <= rows[one.operator]:
                yield f"{one.operator!r} has {one.stripes} stripes, and must have 1 to {rows[one.operator]}"


def _cut(graph: ir.Graph, one: ImageCut) -> Iterator[str]:
    run = [op for op in graph.ops if op.name in one.operators]
    if odd := sorted(one.operators - {op.name for op in run}) or ([] if run else ["none"]):
        yield f"operator {odd[0]!r} of a cut is not in the model"
        return
    frames = frames_of(graph, run)
    if odd := [op.name for op in run if not can_be_cut(graph, op)]:
        if one.dimension is not FRAMES or one.within:
            yield f"operator {odd[0]!r} cannot be cut along an image"
            return
        if frames == 1:
            yield f"operators of a cut, {odd[0]!r} among them, have no frames that all of them keep apart"
            return
    if not can_end_cut(run[-1]):
        yield f"a cut ends with {run[-1].name!r}, and must end with an operator that computes something"
        return
    whole, allowed = ((0, frames), *whole_box(graph, run[-1].output)[1:]), tuple[Dimension, ...]()
    sides = [(one.dimension, one.pieces), *([one.within] if one.within else [])]
    if one.dimension is CHANNELS and not one.within and can_be_cut_by_channels(graph, run):
        whole = tuple(
            (0, -(-end // UNIT) if side is CHANNELS else end) for side, (_, end) in zip(Dimension, whole, strict=True)
        )
        allowed = (CHANNELS,)
    if one.within and one.pieces != frames:
        yield f"a cut has pieces of {frames} frames, and must be into single ones if these are cut again"
    for number, (side, pieces) in enumerate(sides):
        if side not in (allowed or ((HEIGHT, WIDTH) if frames == 1 or number else (FRAMES,))):
            told = "frames" if frames > 1 and not number else "height or width"
            yield f"a cut is along {side.name}, and must be along {told}"
            return
        if not 2 <= pieces <= whole[side][1]:
            yield f"a cut has {pieces} pieces, and must have 2 to {whole[side][1]}"
    outside, inner = {port.tensor for port in graph.outputs}, {op.output for op in run[:-1]}
    read = {name for op in graph.ops if op not in run for name in op.inputs}
    if odd := sorted(inner & (outside | read)) or sorted(inner - {name for op in run for name in op.inputs}):
        yield f"tensor {odd[0]!r} is made within a cut, and must be read there and nowhere else"


def verify_layers_of(plan: Plan, model: LoweredModel) -> None:
    """Check that rewrites have led to the layers of ``plan``. Raises :class:`PlanError`."""
    if plan.layers is not None and (names := layer_names(model.layers)) != plan.layers:
        odd = next((pair for pair in zip(names, plan.layers, strict=False) if pair[0] != pair[1]), ("", ""))
        told = f"layer {odd[0]!r} stands where {odd[1]!r} does in the plan" if any(odd) else "some are missing"
        raise PlanError(f"model {model.graph.name!r}: its layers are not those of the plan: {told}")


def verify_steps(model: LoweredModel, plans: Sequence[StepPlan]) -> None:
    """Check that each layer is in one step, in an order in which it finds what it reads and that crosses no operator on
    the CPU, and that regions, places, tiles and jobs are possible. Raises :class:`PlanError` naming step and field."""
    where = f"model {model.graph.name!r}: steps of the plan"
    named = dict(zip(layer_names(model.layers), model.layers, strict=True))
    given = [name for plan in plans for name in plan.layers]
    for name in (*given, *named):
        if given.count(name) != 1 or name not in named:
            told = f"in {given.count(name)} of them" if name in named else "in one, and not in the model"
            raise PlanError(f"{where}: layer {name!r} is {told}; each layer is in one step")
    for number, plan in enumerate(plans):
        for problem in _step(model, plan, [named[name] for name in plan.layers]):
            raise PlanError(f"{where}: step {number} ({' + '.join(plan.layers)}): {problem}")
    for problem in _order(model, [(n, named[name]) for n, plan in enumerate(plans) for name in plan.layers]):
        raise PlanError(f"{where}: {problem}")


def _step(model: LoweredModel, plan: StepPlan, members: Sequence[Layer]) -> Iterator[str]:
    engines, count = model.options.engines, len(members)
    if not members:
        yield "layers is empty; leave the step out"
    if len(plan.places) != (count if count > 1 else 0):
        yield f"places has {len(plan.places)} values, and must have {count if count > 1 else 0}"
    if count > 1 and model.options.observe:
        yield "layers has several, and regions cannot be in an observed model; give each a step of its own"
    if count > 1 and (odd := [one.name for one in members if isinstance(one, HostLayer | LoadLayer)]):
        yield f"layer {odd[0]!r} cannot be in a region; give it a step of its own"
    if count > 1 and len(parameters_of(members)) > PARAMETERS:
        yield f"layers need {len(parameters_of(members))} parameters, and a job carries {PARAMETERS}; divide the region"
    for place in plan.places:
        if isinstance(place, int) and not 0 <= place < engines:
            yield f"places names engine {place}, and must name 0 to {engines - 1}"
    on_host = any(isinstance(one, HostLayer) for one in members)
    if plan.tiles is not None and len(plan.tiles) != (0 if on_host else count):
        yield f"tiles has {len(plan.tiles)} values, and must have {0 if on_host else count}; leave it out if it is free"
    if on_host and plan.jobs:
        yield "jobs must be empty on the CPU"
    for at, job in enumerate(plan.jobs or ()):
        if not 0 <= job.engine < engines:
            yield f"jobs[{at}].engine is {job.engine}, and must be 0 to {engines - 1}"
        if list(job.cuts) != sorted(set(job.cuts)) or (job.cuts and job.cuts[0] < 1):
            yield f"jobs[{at}].cuts must rise from 1 on"
        if job.order is not None and sorted(job.order) != list(range(len(job.order))):
            yield f"jobs[{at}].order must hold each number from 0 to {len(job.order) - 1} once"


def _order(model: LoweredModel, layers: Sequence[tuple[int, Layer]]) -> Iterator[str]:
    roots, made = model.graph.roots(), {model.graph.roots()[n]: one for one in model.layers for n in one.outputs}
    place = {layer: at for at, (_, layer) in enumerate(layers)}
    for at, (number, layer) in enumerate(layers):
        for name in layer.inputs:
            if roots[name] in made and place[made[roots[name]]] >= at:
                yield f"step {number} reads tensor {name!r} before {made[roots[name]].name!r} makes it; put that first"
    hosts = [layer for layer in model.layers if isinstance(layer, HostLayer)]
    for host in hosts:
        before = set(model.layers[: model.layers.index(host)])
        for number, layer in layers:
            if (layer in before) != (place[layer] < place[host]) and layer is not host:
                yield f"step {number} ({layer.name!r}) must stay on its side of {host.name!r}, which is on the CPU"


def verify_jobs(
    plans: Sequence[StepPlan], steps: Sequence[ModelStep], made: Sequence[StepObject], windows: int
) -> None:
    """Check that jobs came about as ``plans`` have them, and that their weights fit ``windows`` bytes. Raises
    :class:`PlanError` naming step and job."""
    for number, (plan, step, one) in enumerate(zip(plans, steps, made, strict=True)):
        for at, (job, given) in enumerate(zip(one.jobs, plan.jobs or (), strict=True)):
            where = f"step {number} ({step.name!r}): jobs[{at}]"
            if job.engine != given.engine:
                raise PlanError(
                    f"{where}.engine is {given.engine}, and must be {job.engine} for these places and tiles"
                )
            if given.order is not None and job.plan.order != given.order:
                raise PlanError(f"{where}.order puts an instruction ahead of one that it needs; leave order out")
            if len(job.window_data) > windows:
                raise PlanError(f"{where} has {len(job.window_data)} bytes of weights, memory.windows is {windows}")
