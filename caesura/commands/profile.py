"""Defines ``caesura profile``, which puts measured durations of layers in an image."""

from pathlib import Path
from typing import Annotated

import typer

from caesura import api
from caesura.commands.options import Backend, Json, check_writable
from caesura.compilation import Compilation, image_of, takes_compilation
from caesura.samples import random_samples
from caesura.views import Column, ColumnTable, Progress, json_text, say, tell, write
from hw.image import Image
from sim import DEFAULT_BACKEND
from sim.cost import inference
from sw.runtime import reference

#: Fields of the image's layers.
_COLUMNS = (
    Column("name", "layer"),
    Column("kind"),
    Column("estimated_load", number=True),
    Column("estimated_compute", number=True),
    Column("measured_load", number=True),
    Column("measured_compute", number=True),
)


@takes_compilation
def profile(
    model: Annotated[Path, typer.Argument(help="an ONNX model, or a compiled image (.cimg)")],
    compilation: Compilation,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="where to write the image")] = None,
    backend: Backend = DEFAULT_BACKEND,
    as_json: Json = False,
) -> None:
    """Run a model alone once and store how long each layer loads and computes in its image."""
    check_writable(output)
    image = image_of(model, compilation)
    with Progress() as progress:
        measure(image, backend, progress)
    target = output or model.with_suffix(".cimg")
    image.save(target)
    durations = layer_durations(image)
    if as_json:
        told = {"image": str(target), "model": image.meta.model, "measured": reference.measured(image)}
        write(json_text({**told, "layers": durations.fields()}))
    else:
        tell(durations.rich())
        say(f"{target}: measured durations stored")


def measure(image: Image, backend: str = DEFAULT_BACKEND, progress: Progress | None = None) -> None:
    """Run ``image`` alone, with random inputs, and put measured durations of its layers into its layer table."""
    progress = progress or Progress()
    with api.open(image.params, backend, progress=progress.cycles) as device:
        progress.task(
            f"measuring {image.meta.model}", cycle=device.bus.cycle, expected=inference(image.meta.layers).in_turn
        )
        _, stats = device.load(image).run(random_samples(image, 1, 0)[0])
    reference.store(image, stats.jobs)


def layer_durations(image: Image) -> ColumnTable:
    """Return a table with the cycles of each layer, as estimated and as measured (None until profiled)."""
    rows = [{column.key: getattr(layer, column.key) for column in _COLUMNS} for layer in image.meta.layers]
    return ColumnTable("reference durations, cycles", _COLUMNS, rows)
