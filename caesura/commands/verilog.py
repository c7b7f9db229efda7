"""Defines ``caesura verilog``, which writes the accelerator as Verilog."""

from pathlib import Path
from typing import Annotated

import typer

from caesura import api
from caesura.commands.options import ParamsFile, Preset, Set
from caesura.machines import machine
from caesura.views.progress import Progress
from caesura.views.terminal import say


def verilog(
    output: Annotated[Path, typer.Option("--output", "-o", help="folder for the files")],
    preset: Preset = None,
    params: ParamsFile = None,
    changes: Set = None,
) -> None:
    """Write the accelerator as Verilog."""
    hardware = machine(preset, params, changes or ()) or api.resolve("tiny")
    from sim.rtl import write_verilog  # after the check, as it loads Amaranth

    output.mkdir(parents=True, exist_ok=True)
    with Progress() as progress:
        progress.task(f"elaborating {hardware.name} and writing Verilog, about a minute for large machines")
        write_verilog(hardware, output)
    for path in sorted(output.iterdir()):
        say(f"{path}: {path.stat().st_size:,} bytes")
