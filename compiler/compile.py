"""ONNX model to image: front end, then back end."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import onnx

from compiler.emission.objects.desk import Desk
from compiler.emission.objects.object_store import ObjectStore
from compiler.emission.program.semaphores import check_semaphores
from compiler.frontend import import_model
from compiler.ir import CompileError, Graph
from compiler.pipeline import blank, emit, fill, uncollected
from compiler.plan.options import ALL_LV2, ORDERS_BY_RUNS, Options
from compiler.plan.order.report import OrderReport
from compiler.plan.plan import Plan
from compiler.plan.plan_error import PlanError
from compiler.search.engine_count import EngineChoice, build_for_its_size
from compiler.search.lv2_claim import Lv2Claim, claim_that_pays, with_claim
from compiler.search.programs import Measure, MeasuredBuild, TimeLayers, Told, build_measured, build_timed
from compiler.search.spill import SpilledTensors, spill_of
from hw.contract.params import SocParams
from hw.image import Image

MEASURED_SECONDS = 60.0  #: of wall time in which orders are measured, unless a time is given


@dataclass
class Compiled:
    """An image, the graph it was made from (for checks), and all that was decided about it. ``orders``: what the
    search for the order of layers did, for each run of them between operators on the CPU; ``measured``: what
    measuring orders did, if that was wanted; ``claim``: the part of LV2 that was chosen, if options left it open;
    ``choice``: of engines, if the compiler was to choose."""

    image: Image
    graph: Graph
    plan: Plan
    orders: tuple[OrderReport, ...] = ()
    measured: MeasuredBuild | None = None
    claim: Lv2Claim | None = None
    choice: EngineChoice | None = None

    @property
    def spill(self) -> SpilledTensors | None:
        """Return what of the model does not fit into LV2, None if all does."""
        return spill_of(self.graph, self.plan)


@uncollected()
def compile_with_report(
    path: str | Path | onnx.ModelProto,
    params: SocParams | None = None,
    *,
    fallback: bool = False,
    name: str | None = None,
    observe: bool = False,
    engines: int | Literal["auto"] | None = None,
    options: Options | None = None,
    plan: Plan | None = None,
    measure: Measure | None = None,
    time_layers: TimeLayers | None = None,
    told: Told | None = None,
    jobs: int | None = None,
    cache: bool = True,
    batch: int = 1,
    sizes: Mapping[str, int] | None = None,
    sequences: int = 1,
    last_row: bool = False,
    waits: Sequence[float] = (),
) -> Compiled:
    """Compile a quantised ONNX model for hardware with ``params``.

    ``fallback``: nodes the accelerator cannot run become CPU steps. ``observe``: every operator's result also goes to
    DRAM as a tensor of the image. ``engines``: how many engines of the device share each layer, by default what
    ``options`` says; ``auto``: as many as the model deserves, see :func:`build_for_its_size`. If ``options`` do not say
    how much LV2 the model may use, it claims the least that pays, see :func:`claim_that_pays`, or all if observed.
    ``plan``: decisions about the model, with its hardware and options, so these are left out; what is None is decided.
    ``measure``: gives the cycles of an image, for ``order="measured"``, which ends after ``order_seconds``;
    ``time_layers``: gives those of each layer, for ``order="timed"``; both call ``told`` on their way. ``jobs``:
    processes that share the work where there is much of it (None: as many as there are CPUs); the image does not depend
    on it. ``cache``: layers that were compiled before are taken from the cache folder, others kept there. ``batch``:
    of a model with a dynamic one; ``sizes``: of dynamic dimensions by name; ``sequences``: of which a step model does
    a step each; ``last_row``: an attention takes as many tokens as an input says. ``waits``: for ``auto``, the expected
    queue time of each engine. Raises
    :class:`compiler.ir.CompileError`.
    """
    if hardware := params or (plan and plan.params):
        check_semaphores(hardware)
    graph = import_model(
        path, fallback=fallback, name=name, batch=batch, sizes=sizes, sequences=sequences, last_row=last_row
    )
    with Desk(jobs, ObjectStore() if cache else None) as desk:
        if plan is None:
            if params is None:
                raise CompileError(f"model {graph.name!r}: neither hardware nor a plan is given")
            chosen = replace(options or Options(), observe=observe or bool(options and options.observe))
            chosen = replace(chosen, engines=engines) if isinstance(engines, int) else chosen
            if chosen.observe and chosen.lv2_limit is None:  # who looks at all results looks at one model
                chosen = replace(chosen, lv2_limit=ALL_LV2)
            if chosen.order in ORDERS_BY_RUNS:
                return _by_programs(graph, params, chosen, desk, engines, measure, time_layers, told)
            if engines == "auto":
                found = build_for_its_size(graph, params, chosen, desk, waits)
                if chosen.lv2_limit is not None:
                    return Compiled(found.image, graph, found.plan, choice=found)
                decided = found.plan.options
                chosen = replace(chosen, engines=decided.engines, placed=decided.placed)
                return replace(_claiming(graph, params, chosen, desk), choice=found)
            if chosen.lv2_limit is None:
                return _claiming(graph, params, chosen, desk)
            plan = blank(graph, params, chosen)
        elif (params or plan.params) != plan.params or observe or engines is not None or options is not None:
            raise PlanError(
                f"model {graph.name!r}: a plan for preset {plan.params.name!r} has hardware and options of its own: "
                "leave them out"
            )
        plan, orders = fill(plan, graph, desk)
        return Compiled(emit(plan, graph, desk), graph, plan, orders)


def _claiming(graph: Graph, params: SocParams, options: Options, desk: Desk) -> Compiled:
    """Return ``graph`` in the least LV2 that pays."""
    found = claim_that_pays(graph, params, options, desk)
    return Compiled(emit(found.plan, graph, desk), graph, found.plan, found.orders, claim=found.claim)


def _by_programs(
    graph: Graph, params: SocParams, options: Options, desk: Desk, engines: int | str | None,
    measure: Measure | None, time_layers: TimeLayers | None, told: Told | None,
) -> Compiled:  # fmt: skip
    """Return ``graph`` in an order that programs which run have found."""
    if engines == "auto":
        raise CompileError(
            f"order {options.order!r} compares regions of programs on a given number of engines: leave auto out"
        )
    if (time_layers if options.order == "timed" else measure) is None:
        raise CompileError(f"order {options.order!r} compares regions of programs: say what measures them")
    options, claim = with_claim(graph, params, options, desk)
    if options.order == "timed" and time_layers is not None:
        built = build_timed(graph, params, options, desk, time_layers, told)
    else:
        assert measure is not None
        seconds = options.order_seconds if math.isfinite(options.order_seconds) else MEASURED_SECONDS
        built = build_measured(graph, params, options, desk, measure, seconds, told)
    return Compiled(built.image, graph, built.plan, built.orders, built, claim)


def compile_model(path: str | Path | onnx.ModelProto, params: SocParams | None = None, **how: Any) -> Image:
    """Return the image alone; ``how``: the arguments of :func:`compile_with_report`."""
    return compile_with_report(path, params, **how).image
