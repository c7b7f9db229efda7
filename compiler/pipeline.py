"""The back end, pass by pass: what is free of a plan is decided, and a plan becomes an image.

=============== ==================================================== ==============================================
pass            decides, or makes                                    verifier
=============== ==================================================== ==============================================
``lowered``     rewrites; layers of the rewritten graph              the plan's model, its rewrites and its layers
``Study``       order of layers, and which become one step           steps: order, regions, places, jobs
``settle``      places of tensors; tiles and points of each step     layers in order; memory; jobs as they are made
``link``        addresses, prologues, bounds                         the image
=============== ==================================================== ==============================================
"""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction

from compiler import ir
from compiler.emission.link.job_windows import linked_cycles
from compiler.emission.link.linker import link
from compiler.emission.objects.desk import Desk
from compiler.emission.objects.object_store import ObjectStore
from compiler.emission.objects.step_object import StepObject
from compiler.emission.preempt.points import PointLimits
from compiler.plan.layers.step import ModelStep, flattened
from compiler.plan.layers.verify import verify_layers
from compiler.plan.lowered_model import LoweredModel
from compiler.plan.memory.budget import Lv2Budget
from compiler.plan.memory.dram_need import check_dram, least_sizes
from compiler.plan.memory.place import place, staging_parts
from compiler.plan.memory.place_planned import memory_plan, place_planned
from compiler.plan.memory.tensor_placement import TensorPlacement
from compiler.plan.memory.verify import verify_placement, verify_staged
from compiler.plan.options import ORDERS_BY_RUNS, Options
from compiler.plan.order.report import OrderReport
from compiler.plan.plan import VERSION, MemoryPlan, Plan
from compiler.plan.plan_error import PlanError
from compiler.plan.regions.region_beam import QUICK, WIDE
from compiler.plan.regions.regions import Orders, Study
from compiler.plan.regions.state_loads import late_loads
from compiler.plan.split.choose import cuts_that_pay
from compiler.plan.split.parts import with_cuts
from compiler.plan.steps import joined, step_plans
from compiler.plan.structure import layer_names, structure_of
from compiler.plan.verify import verify_jobs, verify_layers_of, verify_model, verify_steps
from compiler.search.retarget import PlannedLength
from compiler.search.traffic import Spills, least_traffic, wider_regions
from hw.contract.isa import Segment
from hw.contract.params import SocParams
from hw.image import Image
from sim.cost import moved

#: DRAM words of one load of a prologue. A pause that is withdrawn repeats what has not landed of up to four of them;
#: shorter ones cost ResNet-50 more than all its points do (256 words: 0.13 %, 1024 words: 0.02 %).
_LONGEST_LOAD = 1024
#: Of the price of the model's own order, what another must save by price to be taken without a look at its program.
_SURE = 0.05
_TILES = 0.005  #: of the cycles of a large model, what DRAM takes for what larger tiles make pass, for them to be tried
_PIECES = 0.03  #: of the cycles of a model, what DRAM takes for all that passes, for pieces to be tried as well
_LARGE = 100  #: layers of a model from which on one order is compiled, and seldom with two kinds of staging areas


@contextmanager
def uncollected() -> Iterator[None]:
    """No search for cycles of objects: a compilation keeps nearly all that it makes until its end, and to look through
    it again and again takes a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@uncollected()
def build(
    graph: ir.Graph, params: SocParams, options: Options | None = None, *, desk: Desk | None = None,
    jobs: int | None = None, store: ObjectStore | None = None,
) -> tuple[Image, Plan]:  # fmt: skip
    """Compile ``graph`` for hardware with ``params``; return the image and its plan. Steps are compiled at ``desk``
    (None: at one with ``jobs`` and ``store``, which ends with the compilation, see :class:`Desk`). Raises
    :class:`compiler.ir.CompileError` naming the operator, size and limit where the model cannot fit."""
    with nullcontext(desk) if desk else Desk(jobs, store) as at:
        plan = decide(graph, params, options or Options(), at)
        return emit(plan, graph, at), plan


def decide(graph: ir.Graph, params: SocParams, options: Options, desk: Desk) -> Plan:
    """Return all decisions about ``graph``. Raises :class:`compiler.ir.CompileError`."""
    return fill(blank(graph, params, options), graph, desk)[0]


def blank(graph: ir.Graph, params: SocParams, options: Options) -> Plan:
    """Return a plan for ``graph`` in which all is free."""
    return Plan(VERSION, graph.name, structure_of(graph), params, options)


def fill(plan: Plan, graph: ir.Graph, desk: Desk) -> tuple[Plan, tuple[OrderReport, ...]]:
    """Return ``plan`` with all decided that is free in it, and what the searches for the order of layers did, for each
    run of them between operators on the CPU. Raises :class:`compiler.ir.CompileError`."""
    if plan.complete:
        return plan, ()
    model = lowered(graph, plan)
    if plan.steps is not None:
        found = settle(plan, model, desk)
        pairs = zip(plan.steps, found.steps or (), strict=True)
        steps = (new.without_orders() if own.jobs is None else replace(new, jobs=own.jobs) for own, new in pairs)
        return replace(found, steps=tuple(steps)), ()
    study, orders, reports = searched(plan, model)
    return no_worse(plan, model, desk, study, orders).plan.without_orders(), reports


def no_worse(plan: Plan, model: LoweredModel, desk: Desk, study: Study, orders: Orders) -> "Settled":
    """Return ``plan`` settled with ``orders`` or with the model's own, whichever is better. Where tensors do not fit,
    concatenations are compared with pieces that are read where they lie, if there is enough to gain. Raises
    :class:`compiler.ir.CompileError`."""
    found = _better_order(plan, model, desk, study, orders)
    free = plan.rewrites is None and plan.options.order == "search" and not plan.options.for_memory
    worth = plan.options.objective == "dram" or moved(found.moved, plan.params) > _PIECES * found.cycles
    other = model.in_pieces() if free and found.moved and worth else None
    if other is None:
        return found
    try:
        study, orders, _ = searched(plan, other)
        made = _better_order(plan, other, desk, study, orders)
    except ir.CompileError:
        return found
    return made if made.serves(found, plan.options) else found


def _better_order(plan: Plan, model: LoweredModel, desk: Desk, study: Study, orders: Orders) -> "Settled":
    """Return ``plan`` settled with ``orders``, or with the model's own where the others are not surely better by price,
    and serve the objective no better as the jobs are scheduled: prices have errors, and a search ends where they are in
    its favour. Of large models, and of placed ones, that are ``orders``. Raises
    :class:`compiler.ir.CompileError`."""
    plain, own, chosen = study, study.source, model
    if plan.options.order == "search" and not plan.options.placed:
        spills = Spills(model)
        chosen, study, orders = least_traffic(model, study, orders, spills)
        small = chosen is model and len(model.layers) <= _LARGE
        wide = wider_regions(model, plain, study, orders, spills) if small else None
        if wide and (wider := _wider(plan, model, desk, plain, *wide)):
            return wider
    try:
        found = settled(plan, chosen, desk, study, orders)
    except ir.CompileError:  # tiles need larger staging areas than tensors leave
        if chosen is model:
            raise
        return settled(plan, model, desk, plain.afresh(), own)
    as_it_is = orders == own and study is plain
    if as_it_is or plan.options.placed or len(model.layers) > _LARGE:
        return found
    if not found.moved and study.price(orders) < (1 - _SURE) * study.price(own):
        return found
    try:
        other = settled(plan, model, desk, plain.afresh(), own)
    except ir.CompileError:  # a buffer fits in no other order
        return found
    return found if found.serves(other, plan.options) else other


def _wider(
    plan: Plan, model: LoweredModel, desk: Desk, plain: Study, study: Study, orders: Orders
) -> "Settled | None":  # fmt: skip
    """Return ``plan`` settled with ``orders`` and the wider regions of ``study`` if they serve the objective better
    than the model's own order; ``plain``: the study of other regions."""
    try:
        found = settled(plan, model, desk, study, orders)
        other = settled(plan, model, desk, plain.afresh(), plain.source)
    except ir.CompileError:  # a buffer does not fit
        return None
    return found if found.serves(other, plan.options) else None


def planned(plan: Plan, model: LoweredModel, desk: Desk) -> PlannedLength:
    """Return ``model`` with a complete plan, made of ``plan``, in which jobs have their orders. Raises
    :class:`compiler.ir.CompileError`."""
    study, orders, _ = searched(plan, model)
    full = settle(plan, model, desk, study, orders)
    _, placement = placed(model, late_loads(model.graph, study.joined(orders)), full.memory)
    return PlannedLength(model, full, placement)


def emit(plan: Plan, graph: ir.Graph, desk: Desk) -> Image:
    """Return the image of ``graph`` by ``plan``, which is complete: nothing is decided. Raises :class:`PlanError` if
    the plan is for another model, or cannot be carried out."""
    return emit_lowered(plan, lowered(graph, plan), desk)


def lowered(graph: ir.Graph, plan: Plan) -> LoweredModel:
    """Return the layers of ``graph``, rewritten as ``plan`` says, or where that pays if it is free. Raises
    :class:`compiler.ir.CompileError`."""
    plan.options.check(graph.name, plan.params)
    verify_model(graph, plan)
    check_dram(graph.name, least_sizes(graph), plan.params, least=True)
    cuts = plan.cuts if plan.rewrites is not None else cuts_that_pay(graph, plan.params, plan.options)
    split = with_cuts(graph, cuts)
    made = LoweredModel.of(split, plan.params, plan.options, plan.rewrites)
    model = replace(made, rewrites=(*cuts, *made.rewrites))
    if plan.options.for_memory and plan.rewrites is None:
        model = model.smallest()
    verify_layers_of(plan, model)
    return model


def searched(plan: Plan, model: LoweredModel) -> tuple[Study, Orders, tuple[OrderReport, ...]]:
    """Return a study of ``model``, the orders that it finds by price, and what its searches did. Raises
    :class:`compiler.ir.CompileError`."""
    if plan.options.order in ORDERS_BY_RUNS:
        raise ir.CompileError(
            f"model {plan.model!r}: order {plan.options.order!r} is found by programs that run, and nothing runs them "
            "here: choose another order"
        )
    study = model.study()
    return study, *search(study, plan.options)


def search(study: Study, options: Options) -> tuple[Orders, tuple[OrderReport, ...]]:
    """Return the orders that ``study`` finds by price, and what the searches did."""
    return study.search(options.search_limits, WIDE if options.order == "timed" else QUICK)


def settle(plan: Plan, model: LoweredModel, desk: Desk, study: Study | None = None, orders: Orders = ()) -> Plan:
    """Return ``plan`` of ``model`` with places, tiles, and jobs with their orders. Steps are its own, or those of
    ``orders`` as ``study`` joins them, which learns what cannot be joined. Raises
    :class:`compiler.ir.CompileError`."""
    return settled(plan, model, desk, study, orders).plan


@dataclass(frozen=True)
class Settled:
    """Is a complete plan of ``model``, the cycles of an inference as its jobs are scheduled, and the bytes that move
    from and to DRAM: ``moved`` of tensors, as they are placed, ``passed`` all that jobs load and store, weights too."""

    plan: Plan
    model: LoweredModel
    cycles: float
    moved: int
    passed: int

    def serves(self, own: "Settled", options: Options) -> bool:
        """Return whether this serves the objective of ``options`` better than the order of the model, ``own``."""
        allowed = self.passed <= own.passed or self.cycles < (1 - options.trade) * own.cycles
        return self.better(own, options) and (allowed or options.objective == "dram")

    def better(self, other: "Settled", options: Options) -> bool:
        """Return whether this costs less than ``other`` of what the objective makes small."""
        mine, theirs = (self.cycles, self.moved), (other.cycles, other.moved)
        return mine[::-1] < theirs[::-1] if options.objective == "dram" else mine < theirs


def settled(plan: Plan, model: LoweredModel, desk: Desk, study: Study | None, orders: Orders) -> Settled:
    """Return what :func:`settle` does, with what it costs. Where tensors do not fit, smaller staging areas keep more of
    them on chip, and make smaller tiles: the better of both is taken. Of large models the second is not compiled where
    it would pass much more."""
    found = _settled_in(plan, model, desk, study, orders, staging_parts(plan.options))
    if not found.moved or plan.memory:
        return found
    steps = late_loads(model.graph, study.joined(orders)) if study else given_steps(model, plan)
    try:
        more = placed(model, steps, plan.memory, parts=())[1].moved - found.moved
        if len(model.layers) > _LARGE and moved(more, plan.params) > _TILES * found.cycles:
            return found
        other = _settled_in(plan, model, desk, study, orders, ())
    except ir.CompileError:
        return found
    return other if other.better(found, plan.options) else found


def _settled_in(
    plan: Plan, model: LoweredModel, desk: Desk, study: Study | None, orders: Orders, parts: Sequence[Fraction]
) -> Settled:  # fmt: skip
    """Return the plan with staging areas of one of ``parts`` where tensors do not fit."""
    while True:
        steps = late_loads(model.graph, study.joined(orders)) if study else given_steps(model, plan)
        verify_layers(model.graph, flattened(steps))
        budget, placement = placed(model, steps, plan.memory, parts=parts)
        try:
            objects, refused = desk.compile(steps, placement, budget, plan.params, PointLimits.of(plan.options))
            if not refused:
                verify_staged(plan.model, placement, budget, _staged(objects))
        except ir.CompileError:  # tiles need larger staging areas, maybe
            if plan.memory or not parts or not placement.moved:
                raise
            parts = parts[:-1]
            continue
        if not refused:
            break
        if study is None:
            raise PlanError(f"model {plan.model!r}: {refused[0].name!r} cannot be a region, or gains nothing by it")
        for step in refused:
            study.forbid(step)
    made = replace(
        plan, rewrites=model.rewrites, layers=layer_names(model.layers), memory=memory_plan(budget, placement),
        steps=step_plans(model.layers, steps, objects),
    )  # fmt: skip
    jobs = [job for one in objects for job in one.jobs]
    spilled = placement.passed if plan.options.objective == "dram" else placement.moved
    passed = sum(job.streamed + (0 if job.own_loads else len(job.window_data)) for job in jobs)
    return Settled(made, model, linked_cycles(jobs, placement, budget, plan.params), spilled, passed)


def emit_lowered(plan: Plan, model: LoweredModel, desk: Desk, beneath: bytes | None = None) -> Image:
    """Return the image of ``model`` by ``plan``. If that is one for another length, constants are written over those
    of it, ``beneath``, and orders of tasks are taken where they are possible. Raises :class:`PlanError` if the plan
    cannot be carried out."""
    assert plan.steps is not None
    steps, objects, placement, budget = _made(plan, model, desk, beneath or b"")
    if beneath is None:
        verify_jobs(plan.steps, steps, objects, budget.windows)
    longest_load = _LONGEST_LOAD * plan.params.dram_word if PointLimits.of(plan.options) else 0
    return link(model.graph, steps, objects, placement, budget, plan.params, longest_load)


def planned_cycles(plan: Plan, model: LoweredModel, desk: Desk, beneath: bytes = b"") -> float:
    """Return what an inference of ``model`` takes by ``plan``, which is complete, as its jobs are estimated;
    ``beneath``: as for :func:`emit_lowered`. Raises :class:`PlanError` if the plan cannot be carried out."""
    _, objects, placement, budget = _made(plan, model, desk, beneath)
    return linked_cycles([job for one in objects for job in one.jobs], placement, budget, plan.params)


def _made(
    plan: Plan, model: LoweredModel, desk: Desk, beneath: bytes = b""
) -> tuple[list[ModelStep], list[StepObject], TensorPlacement, Lv2Budget]:
    """Return the steps of ``plan``, which is complete, their objects, and where all lies; ``beneath``: constants of
    another length."""
    steps = given_steps(model, plan)
    verify_layers(model.graph, flattened(steps))
    budget, placement = placed(model, steps, plan.memory, beneath)
    objects, _ = desk.compile(steps, placement, budget, plan.params, PointLimits.of(plan.options))
    verify_staged(plan.model, placement, budget, _staged(objects))
    return steps, objects, placement, budget


def _staged(objects: Sequence[StepObject]) -> list[int]:
    """Return the numbers of the steps whose jobs pass something through a staging area."""
    return [number for number, one in enumerate(objects) if any(job.staged for job in one.jobs)]


def given_steps(model: LoweredModel, plan: Plan) -> list[ModelStep]:
    """Return the steps that ``plan`` gives. Raises :class:`PlanError` if they are not possible."""
    assert plan.steps is not None
    verify_steps(model, plan.steps)
    return joined(model.graph, model.layers, plan.steps)


def placed(
    model: LoweredModel, steps: Sequence[ModelStep], memory: MemoryPlan | None, beneath: bytes = b"",
    parts: Sequence[Fraction] | None = None,
) -> tuple[Lv2Budget, TensorPlacement]:  # fmt: skip
    """Return the division of LV2 and the places of tensors, which are chosen if ``memory`` is free, with staging areas
    of one of ``parts`` where tensors do not fit. Raises :class:`compiler.ir.CompileError`."""
    graph, params, options = model.graph, model.params, model.options
    if memory is None:
        budget, placement = place(graph, steps, params, options, parts, thorough=True)
        sizes = [placement.sizes.get(number, 0) for number in range(Segment.SHARED + 1)]
        check_dram(graph.name, sizes, params, least=True)
    else:
        budget, placement = place_planned(graph, steps, params, options, memory, beneath)
    verify_placement(graph.name, placement, budget, steps, params, planned=memory is not None)
    return budget, placement
