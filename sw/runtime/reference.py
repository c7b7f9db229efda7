"""Measures reference durations (of **Queue-time balancing**): how long each layer took when its model ran alone."""

from collections.abc import Sequence
from typing import NamedTuple

from hw.image import Image, LayerInfo
from sw.driver import JobResult


class Durations(NamedTuple):
    """Holds cycles: of loads in prologues, in bodies, and of bodies those in which the DMAs to and from DRAM were busy.
    The DMAs count their busy cycles; a prologue's timestamps would also tell of waits between its loads."""

    load: int
    compute: int
    stream: int


def durations(image: Image, results: Sequence[JobResult]) -> dict[int, Durations]:
    """Return the durations of every layer with jobs, from one inference."""
    layers: dict[int, list[JobResult]] = {}
    for result in results:
        layers.setdefault(image.meta.jobs[result.job].layer, []).append(result)
    return {layer: longest(mine) for layer, mine in layers.items()}


def longest(results: Sequence[JobResult]) -> Durations:
    """Return the durations on the engine that took longest, of jobs that several engines ran side by side."""
    sums: dict[int, list[int]] = {}
    for result in results:
        times = sums.setdefault(result.engine, [0, 0, 0])
        times[0] += result.counters.get("prologue_busy") or result.prologue_end - result.prologue_start
        times[1] += result.end - result.start
        times[2] += result.counters.get("ld2_busy", 0) + result.counters.get("st2_busy", 0)
    return Durations(*(max(times[what] for times in sums.values()) for what in range(3)))


def stored(layer: LayerInfo) -> Durations:
    """Return the durations of ``layer`` that its image holds: measured, or estimated until then."""
    return Durations(layer.load, layer.compute, layer.stream)


def measured(image: Image) -> bool:
    """Return whether the image holds measured durations of all its layers."""
    return None not in [took for layer in image.meta.layers for took in (layer.measured_load, layer.measured_compute)]


def store(image: Image, results: Sequence[JobResult]) -> None:
    """Put the durations of an inference of ``image`` that ran alone into its layer table.

    Layers without jobs take no time on the accelerator.
    """
    measured = durations(image, results)
    for index, layer in enumerate(image.meta.layers):
        found = measured.get(index, Durations(0, 0, 0))
        layer.measured_load, layer.measured_compute, layer.measured_stream = found
