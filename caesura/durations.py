"""Measures reference durations of a model for ``caesura profile`` by running it alone once."""

from typing import Any

from rich.table import Table

from caesura import api
from caesura.inputs import random_samples
from caesura.progress import Progress, estimated_cycles
from caesura.terminal import table
from hw.contract.image import Image
from sim.backends import DEFAULT_BACKEND
from sw.runtime import reference


def measure(image: Image, backend: str = DEFAULT_BACKEND, progress: Progress | None = None) -> None:
    """Run ``image`` alone, with random inputs, and put measured durations of its layers into its layer table."""
    progress = progress or Progress()
    with api.open(image.params, backend, progress=progress.cycles) as device:
        progress.task(f"measuring {image.meta.model}", cycle=device.bus.cycle, expected=estimated_cycles(image))
        _, stats = device.load(image).run(random_samples(image, 1, 0)[0])
    reference.store(image, stats.jobs)


def to_fields(image: Image) -> dict[str, Any]:
    """Return plain data for JSON: cycles of each layer, as estimated and as measured (None until profiled)."""
    return {
        "model": image.meta.model,
        "measured": reference.measured(image),
        "layers": [
            {
                "name": layer.name,
                "kind": layer.kind,
                "estimated_load": layer.estimated_load,
                "estimated_compute": layer.estimated_compute,
                "measured_load": layer.measured_load,
                "measured_compute": layer.measured_compute,
            }
            for layer in image.meta.layers
        ],
    }


def to_table(image: Image) -> Table:
    """Return a table for a terminal. Estimates are marked as such where nothing was measured."""
    result = table("reference durations, cycles", "layer", "kind", ">load", ">compute", ">estimated load", ">compute")
    for layer in image.meta.layers:
        shown = [
            f"{estimate:,} (estimated)" if value is None else f"{value:,}"
            for value, estimate in (
                (layer.measured_load, layer.estimated_load),
                (layer.measured_compute, layer.estimated_compute),
            )
        ]
        estimates = f"{layer.estimated_load:,}", f"{layer.estimated_compute:,}"
        result.add_row(layer.name, layer.kind, *shown, *estimates)
    return result
