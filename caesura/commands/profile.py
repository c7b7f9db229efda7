"""Defines ``caesura profile``, which puts measured durations of layers in an image."""

from pathlib import Path
from typing import Annotated

import typer

from caesura.compilation import Compilation, image_of, takes_compilation
from caesura.json_form import json_text
from caesura.options import Backend, Json, check_writable
from caesura.progress import Progress
from caesura.terminal import say, tell, write
from sim import DEFAULT_BACKEND


@takes_compilation
def profile(
    model: Annotated[Path, typer.Argument(help="an ONNX model, or a compiled image (.cimg)")],
    compilation: Compilation,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="where to write the image")] = None,
    backend: Backend = DEFAULT_BACKEND,
    as_json: Json = False,
) -> None:
    """Run a model alone once and store how long each layer loads and computes in its image."""
    from caesura.durations import layer_durations, measure, to_fields

    check_writable(output)
    image = image_of(model, compilation)
    with Progress() as progress:
        measure(image, backend, progress)
    target = output or model.with_suffix(".cimg")
    image.save(target)
    if as_json:
        write(json_text({"image": str(target), **to_fields(image)}))
    else:
        tell(layer_durations(image).rich())
        say(f"{target}: measured durations stored")
