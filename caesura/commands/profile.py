"""Defines ``caesura profile``, which puts measured durations of layers in an image."""

from pathlib import Path
from typing import Annotated

import typer

from caesura.json_text import json_text
from caesura.machine import machine
from caesura.options import (
    Backend,
    Dim,
    Engines,
    Fallback,
    Json,
    Lv2Limit,
    ParamsFile,
    Placed,
    Preset,
    Set,
    check_writable,
    compile_options,
    image_of,
)
from caesura.progress import Progress
from caesura.terminal import say, tell, write
from sim.backends import DEFAULT_BACKEND


def profile(
    model: Annotated[Path, typer.Argument(help="an ONNX model, or a compiled image (.cimg)")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="where to write the image")] = None,
    preset: Preset = None,
    params: ParamsFile = None,
    changes: Set = None,
    backend: Backend = DEFAULT_BACKEND,
    as_json: Json = False,
    engines: Engines = None,
    placed: Placed = False,
    fallback: Fallback = False,
    dim: Dim = None,
    lv2_limit: Lv2Limit = None,
) -> None:
    """Run a model alone once and store how long each layer loads and computes in its image."""
    from caesura.durations import measure, to_fields, to_table

    check_writable(output)
    options = compile_options(None, None, "both", None, lv2_limit, placed=placed)
    image = image_of(model, machine(preset, params, changes or ()), engines, fallback, options, dims=dim or ())
    with Progress() as progress:
        measure(image, backend, progress)
    target = output or model.with_suffix(".cimg")
    image.save(target)
    if as_json:
        write(json_text({"image": str(target), **to_fields(image)}))
    else:
        tell(to_table(image))
        say(f"{target}: measured durations stored")
