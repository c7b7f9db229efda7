"""ONNX model to image: front end, then back end."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import onnx

from compiler.backend.objects.object_store import ObjectStore
from compiler.backend.options import RUN, Options
from compiler.backend.pipeline import build
from compiler.backend.report import CompileReport
from compiler.engine_count import build_for_its_size
from compiler.frontend import import_model
from compiler.ir import CompileError, Graph
from compiler.measured_order import Measure, MeasuredBuild, Told, build_measured
from compiler.timed_order import TimeLayers, build_timed
from hw.contract.params import SocParams
from hw.image import Image

MEASURED_SECONDS = 60.0  #: of wall time in which orders are measured, unless a time is given


@dataclass
class Compiled:
    """An image, the graph it was made from (for checks), and the report of the compilation."""

    image: Image
    graph: Graph
    report: CompileReport
    measured: MeasuredBuild | None = None  #: what measuring orders did, if that was wanted


def compile_with_report(
    path: str | Path | onnx.ModelProto,
    params: SocParams,
    *,
    fallback: bool = False,
    name: str | None = None,
    observe: bool = False,
    engines: int | Literal["auto"] | None = None,
    options: Options | None = None,
    measure: Measure | None = None,
    time_layers: TimeLayers | None = None,
    told: Told | None = None,
    jobs: int | None = None,
    cache: bool = True,
    batch: int = 1,
    sizes: Mapping[str, int] | None = None,
) -> Compiled:
    """Compile a quantised ONNX model for hardware with ``params``.

    ``fallback``: nodes the accelerator cannot run become CPU steps. ``observe``: every operator's result also goes to
    DRAM as a tensor of the image. ``engines``: how many engines of the device share each layer, by default what
    ``options`` says; ``auto``: as many as the model deserves, see :func:`compiler.engine_count.build_for_its_size`.
    ``measure``: gives the cycles of an image, for ``order="measured"``, which ends after ``order_seconds``;
    ``time_layers``: gives those of each layer, for ``order="timed"``; both call ``told`` on their way. ``jobs``:
    processes that share the work where there is much of it (None: as many as there are CPUs); the image does not depend
    on it. ``cache``: layers that were compiled before are taken from the cache folder,
    others kept there. ``batch``: of a model with a dynamic one; ``sizes``: of dynamic dimensions by name. Raises
    :class:`compiler.ir.CompileError`.
    """
    chosen = options or Options()
    chosen = replace(chosen, observe=observe or chosen.observe)
    chosen = replace(chosen, engines=engines) if isinstance(engines, int) else chosen
    store = ObjectStore() if cache else None
    graph = import_model(path, fallback=fallback, name=name, batch=batch, sizes=sizes)
    if chosen.order in RUN:
        if engines == "auto":
            raise CompileError(
                f"order {chosen.order!r} compares regions of programs on a given number of engines: leave auto out"
            )
        if chosen.order == "timed" and time_layers is not None:
            built = build_timed(graph, params, chosen, time_layers, told, jobs=jobs, store=store)
        elif chosen.order == "measured" and measure is not None:
            seconds = chosen.order_seconds if math.isfinite(chosen.order_seconds) else MEASURED_SECONDS
            built = build_measured(graph, params, chosen, measure, seconds, told, jobs=jobs, store=store)
        else:
            raise CompileError(f"order {chosen.order!r} compares regions of programs: say what measures them")
        return Compiled(built.image, graph, built.report, built)
    make = build_for_its_size if engines == "auto" else build
    image, report = make(graph, params, chosen, jobs=jobs, store=store)
    return Compiled(image, graph, report)


def compile_model(
    path: str | Path | onnx.ModelProto,
    params: SocParams,
    *,
    fallback: bool = False,
    name: str | None = None,
    observe: bool = False,
    engines: int | Literal["auto"] | None = None,
    options: Options | None = None,
    jobs: int | None = None,
    cache: bool = True,
    batch: int = 1,
    sizes: Mapping[str, int] | None = None,
) -> Image:
    """Return the image alone; see :func:`compile_with_report`."""
    return compile_with_report(
        path, params, fallback=fallback, name=name, observe=observe, engines=engines, options=options, jobs=jobs,
        cache=cache, batch=batch, sizes=sizes,
    ).image  # fmt: skip
