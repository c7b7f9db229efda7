"""``caesura compile``: an ONNX model to an image."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from caesura import api
from caesura.json_text import json_text
from caesura.machine import machine
from caesura.options import (
    Batch,
    Budget,
    CancelAt,
    Dim,
    Engines,
    Fallback,
    Interval,
    Jobs,
    Json,
    Lv2Limit,
    MaxLive,
    NoCache,
    NoRegions,
    NoSplit,
    Order,
    ParamsFile,
    Placed,
    Preset,
    Set,
    SpillBound,
    batch_of,
    check_writable,
    compile_options,
    engine_count,
    is_image,
    sizes_of,
)
from caesura.order_table import has_choice, measured_fields, measured_line, order_fields, order_table, tell_measured
from caesura.progress import Progress, compiling
from caesura.show_points import points_over
from caesura.terminal import say, tell, write


def compile(
    model: Annotated[Path, typer.Argument(help="an ONNX model")],
    output: Annotated[Path, typer.Option("--output", "-o", help="where to write the image")],
    preset: Preset = None,
    params: ParamsFile = None,
    changes: Set = None,
    engines: Engines = None,
    placed: Placed = False,
    order: Order = "search",
    budget: Budget = None,
    no_regions: NoRegions = False,
    no_split: NoSplit = False,
    fallback: Fallback = False,
    dim: Dim = None,
    batch: Batch = None,
    cancel_interval: Interval = None,
    cancel_max_live: MaxLive = None,
    cancel_at: CancelAt = "both",
    cancel_spill_bound: SpillBound = None,
    lv2_limit: Lv2Limit = None,
    jobs: Jobs = None,
    no_cache: NoCache = False,
    plan: Annotated[Path | None, typer.Option(help="where to write all that was decided, as JSON")] = None,
    as_json: Json = False,
) -> None:
    """Compile an ONNX model to an image, and report the search for the order of its layers."""
    check_writable(output, plan)
    options = compile_options(
        cancel_interval, cancel_max_live, cancel_at, cancel_spill_bound, lv2_limit, placed=placed, order=order,
        budget=budget, no_regions=no_regions, no_split=no_split,
    )  # fmt: skip
    hardware = machine(preset, params, changes or ()) or api.resolve("tiny")
    if is_image(model):
        raise api.UsageError(f"{model}: is compiled already; give the .onnx file that it was made from")
    sizes = sizes_of(dim or ())
    batch = batch_of(model, batch, sizes)
    with Progress() as progress:
        progress.task(compiling(model, hardware))
        compiled = api.compile_with_report(
            model, hardware, engines=engine_count(engines), fallback=fallback, options=options,
            told=partial(tell_measured, progress), jobs=jobs, cache=not no_cache, batch=batch, sizes=sizes,
        )  # fmt: skip
    image, orders = compiled.image, compiled.report.orders
    image.save(output)
    if plan:
        from compiler.plan.json_form import write_plan  # commands start sooner without the compiler

        write_plan(compiled.report.plan, plan)
    if as_json:
        parts = {"bytes": output.stat().st_size, "layers": len(image.meta.layers), "jobs": len(image.meta.jobs)}
        fields = {"order": order_fields(orders), **measured_fields(compiled.measured)}
        write(json_text({"image": str(output), **parts, **fields}))
        return
    if has_choice(orders):
        tell(order_table(orders))
    if compiled.measured:
        say(measured_line(compiled.measured))
    say(
        f"{output}: {output.stat().st_size:,} bytes, {len(image.meta.layers)} layers, {len(image.meta.jobs)} jobs, "
        f"for {image.meta.params['name']}"
    )
    if (told := points_over(image, cancel_max_live or 0)) is not None:
        say(told)
