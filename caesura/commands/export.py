"""Defines ``caesura disasm``, ``export`` and ``verilog``, which write images and the accelerator in other forms."""

from pathlib import Path
from typing import Annotated

import typer

from caesura import api
from caesura.commands.options import ParamsFile, Preset, Set, is_image
from caesura.machines import machine
from caesura.views import Progress, listing, say
from hw.image import Image


def disasm(image: Annotated[Path, typer.Argument(help="a compiled image (.cimg)")]) -> None:
    """Print the assembler text of an image."""
    say(listing(_read(image)), lines=True)


def export(
    image: Annotated[Path, typer.Argument(help="a compiled image (.cimg)")],
    output: Annotated[Path, typer.Option("--output", "-o", help="file to write")],
) -> None:
    """Write an image in flat form, for drivers in C that read no JSON."""
    from hw.image import flat

    raw = flat(_read(image))
    output.write_bytes(raw)
    say(f"{output}: {len(raw):,} bytes in flat form; see docs/flat-images.md")


def _read(path: Path) -> Image:
    if path.is_file() and not is_image(path):
        raise api.UsageError(f"{path}: not a compiled image; make one with caesura compile MODEL.onnx -o MODEL.cimg")
    return Image.load(path)


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
