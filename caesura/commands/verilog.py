"""Defines ``caesura verilog``, which writes the accelerator as Verilog."""

import time
from pathlib import Path
from typing import Annotated

import typer

from caesura import api
from caesura.commands.options import Json, ParamsFile, Preset, Set
from caesura.fusesoc_core import write_core
from caesura.machines import machine
from caesura.views import json_text, say, write


def verilog(
    output: Annotated[Path, typer.Option("--output", "-o", help="folder for the files")],
    preset: Preset = None,
    params: ParamsFile = None,
    changes: Set = None,
    sources: Annotated[bool, typer.Option("--src", help="say by which source line each part was made")] = False,
    split: Annotated[bool, typer.Option("--split", help="one file for each module")] = False,
    as_json: Json = False,
) -> None:
    """Write the accelerator as Verilog, with a core file for FuseSoC."""
    hardware = machine(preset, params, changes or ()) or api.resolve("tiny")
    from sim.rtl import write_verilog  # after the check, as it loads Amaranth
    from sim.toolchain import Stages

    output.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    stages = Stages(subject="verilog", announcement="from RTL to Verilog (once; the result is cached)")
    files = write_verilog(hardware, output, sources=sources, split=split, stages=stages)
    core = write_core(output, files[0].stem, files, f"machine {hardware.name!r}")
    texts = {path: path.read_text() for path in files}
    counts = {
        "modules": sum(text.count("\nendmodule\n") for text in texts.values()),
        "lines": sum(text.count("\n") for text in texts.values()),
    }
    if as_json:
        sizes = [{"path": str(path), "bytes": len(text.encode())} for path, text in texts.items()]
        spent = round(time.monotonic() - started, 1)
        write(json_text({"machine": hardware.name, "files": sizes, "core": str(core), **counts, "seconds": spent}))
        return
    if not split:
        say(f"{files[0]}: {counts['modules']} modules, {counts['lines']:,} lines")
    else:
        say(f"{files[0]} and {len(files) - 1} more: one for each module, {counts['lines']:,} lines")
