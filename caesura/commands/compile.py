"""Defines ``caesura compile``, which makes an image of an ONNX model."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from caesura import api
from caesura.commands.options import Json, MeasuringBackend, check_writable, is_image
from caesura.compilation import Compilation, compile_file, takes_compilation
from caesura.steps_on_cpu import cpu_steps
from caesura.views.contents import claim_line, points_over
from caesura.views.order import has_choice, measured_fields, measured_line, order_fields, order_table
from caesura.views.tables import json_text
from caesura.views.terminal import say, tell, write
from compiler import ORDERS_BY_RUNS

if TYPE_CHECKING:
    from compiler import Compiled


@takes_compilation
def compile(
    model: Annotated[Path, typer.Argument(help="an ONNX model")],
    output: Annotated[Path, typer.Option("--output", "-o", help="where to write the image")],
    compilation: Compilation,
    plan: Annotated[Path | None, typer.Option(help="where to write all that was decided, as JSON")] = None,
    backend: MeasuringBackend = None,
    as_json: Json = False,
) -> None:
    """Compile an ONNX model to an image, and report the search for the order of its layers."""
    check_writable(output, plan)
    if is_image(model):
        raise api.UsageError(f"{model}: is compiled already; give the .onnx file that it was made from")
    if backend and compilation.options.order not in ORDERS_BY_RUNS:
        raise api.UsageError(
            f"--backend {backend} says where orders run: with --order {' or '.join(ORDERS_BY_RUNS)}, or leave it out"
        )
    compiled = compile_file(model, compilation.measuring(backend))
    compiled.image.save(output)
    if plan:
        compiled.plan.write(plan)
    if as_json:
        write(json_text(_fields(compiled, output)))
    else:
        _tell(compiled, output, compilation.measuring(backend))


def _fields(compiled: "Compiled", output: Path) -> dict[str, Any]:
    """Return what ``--json`` prints."""
    meta = compiled.image.meta
    parts: dict[str, Any] = {"bytes": output.stat().st_size, "layers": len(meta.layers), "jobs": len(meta.jobs)}
    parts["lv2_bytes"] = meta.lv2_bytes
    if compiled.claim:
        parts["lv2_priced_loss"] = round(compiled.claim.loss, 6)
    if compiled.plan.complete and (spill := compiled.spill) is not None:
        parts["spilled"] = asdict(spill)
    parts["cpu_steps"] = [asdict(step) for step in cpu_steps(compiled.image)]
    found = {"order": order_fields(compiled.orders), **measured_fields(compiled.measured)}
    if (choice := compiled.choice) is not None:
        found["engines"] = {"taken": asdict(choice.taken), "others": [asdict(way) for way in choice.others]}
    return {"image": str(output), **parts, **found}


def _tell(compiled: "Compiled", output: Path, compilation: Compilation) -> None:
    """Print the search, the image's size, and the points with more dirty bytes than the options want (0: any)."""
    meta, orders = compiled.image.meta, compiled.orders
    if has_choice(orders):
        tell(order_table(orders))
    if compiled.measured:
        say(measured_line(compiled.measured, compilation.measure_on))
    say(
        f"{output}: {output.stat().st_size:,} bytes, {len(meta.layers)} layers, {len(meta.jobs)} jobs, "
        f"for {meta.params['name']}"
    )
    for step in cpu_steps(compiled.image):
        say(f"on the CPU: {step}")
    say(claim_line(compiled.image, compiled.claim.loss if compiled.claim else None))
    if compiled.plan.complete and (spill := compiled.spill) is not None:
        say(str(spill))
    if (told := points_over(compiled.image, compilation.options.cancel_max_live)) is not None:
        say(told)
