"""Defines ``caesura disasm`` and ``export``, which write images in other forms."""

from pathlib import Path
from typing import Annotated

import typer

from caesura import api
from caesura.commands.options import Json, is_image
from caesura.views import code_fields, json_text, listing, say, write
from hw.image import Image


def disasm(
    image: Annotated[Path, typer.Argument(help="a compiled image (.cimg)")],
    as_json: Json = False,
) -> None:
    """Print the assembler text of an image."""
    if as_json:
        write(json_text(code_fields(_read(image))))
    else:
        say(listing(_read(image)), lines=True)


def export(
    image: Annotated[Path, typer.Argument(help="a compiled image (.cimg)")],
    output: Annotated[Path, typer.Option("--output", "-o", help="file to write")],
    as_json: Json = False,
) -> None:
    """Write an image in flat form, for drivers in C that read no JSON."""
    from hw.image import flat

    raw = flat(_read(image))
    output.write_bytes(raw)
    if as_json:
        write(json_text({"path": str(output), "bytes": len(raw)}))
        return
    say(f"{output}: {len(raw):,} bytes in flat form; see docs/flat-images.md")


def _read(path: Path) -> Image:
    if path.is_file() and not is_image(path):
        raise api.UsageError(f"{path}: not a compiled image; make one with caesura compile MODEL.onnx -o MODEL.cimg")
    return Image.load(path)
