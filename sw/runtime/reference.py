"""Reference durations (of **Queue-time balancing**): how long each layer took when its model ran alone."""

from collections.abc import Sequence

from hw.contract.image import Image
from sw.driver import JobResult


def durations(image: Image, results: Sequence[JobResult]) -> dict[int, tuple[int, int]]:
    """(load, compute) in cycles of every layer with jobs, from one inference: prologues and bodies.

    Several engines work on a layer side by side, so the one that took longest counts.
    """
    sums: dict[tuple[int, int], list[int]] = {}
    for result in results:
        times = sums.setdefault((image.meta.jobs[result.job].layer, result.engine), [0, 0])
        times[0] += result.prologue_end - result.prologue_start
        times[1] += result.end - result.start
    layers: dict[int, tuple[int, int]] = {}
    for (layer, _), (load, compute) in sums.items():
        known = layers.get(layer, (0, 0))
        layers[layer] = max(known[0], load), max(known[1], compute)
    return layers


def measured(image: Image) -> bool:
    """Whether the image holds measured durations of all its layers."""
    return all(layer.measured_compute is not None and layer.measured_load is not None for layer in image.meta.layers)


def store(image: Image, results: Sequence[JobResult]) -> None:
    """Put the durations of an inference of ``image`` that ran alone into its layer table.

    Layers without jobs take no time on the accelerator.
    """
    measured = durations(image, results)
    for index, layer in enumerate(image.meta.layers):
        layer.measured_load, layer.measured_compute = measured.get(index, (0, 0))
