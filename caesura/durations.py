"""Measures reference durations of a model for ``caesura profile`` by running it alone once."""

from typing import Any

from caesura import api
from caesura.column_table import Column, ColumnTable
from caesura.inputs import random_samples
from caesura.progress import Progress
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


def to_fields(image: Image) -> dict[str, Any]:
    """Return data for JSON: whether all was measured, and the table."""
    measured = reference.measured(image)
    return {"model": image.meta.model, "measured": measured, "layers": layer_durations(image).fields()}
