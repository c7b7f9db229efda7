"""Defines ``caesura retime``, which runs a model under another DRAM, or with other units."""

from pathlib import Path
from typing import Annotated

import typer

from caesura.json_text import json_text
from caesura.machine import machine
from caesura.options import (
    Dim,
    Engines,
    Fallback,
    Json,
    Lv2Limit,
    ParamsFile,
    Placed,
    Preset,
    Set,
    compile_options,
    image_of,
)
from caesura.progress import Progress, estimated_cycles
from caesura.terminal import tell, write


def retime(
    model: Annotated[Path, typer.Argument(help="an ONNX model, or a compiled image (.cimg)")],
    change: Annotated[
        list[str] | None,
        typer.Option(help="such as dram_latency=200 or dram_bandwidth=50,mac=0.5; repeatable, a run each"),
    ] = None,
    preset: Preset = None,
    params: ParamsFile = None,
    changes: Set = None,
    as_json: Json = False,
    engines: Engines = None,
    placed: Placed = False,
    fallback: Fallback = False,
    dim: Dim = None,
    lv2_limit: Lv2Limit = None,
) -> None:
    """Run a model on the fast model as it is, and with another DRAM or with other units; tell what each takes."""
    from caesura import retime as retiming

    options = compile_options(None, None, "both", None, lv2_limit, placed=placed)
    image = image_of(model, machine(preset, params, changes or ()), engines, fallback, options, dims=dim or ())
    with Progress() as progress:
        variations = retiming.retime(
            image,
            change or (),
            progress=progress.cycles,
            told=lambda what: progress.task(f"running {what}", cycle=0, expected=estimated_cycles(image)),
        )
    if as_json:
        write(json_text(retiming.to_fields(image, variations)))
    else:
        tell(retiming.to_table(image, variations))
