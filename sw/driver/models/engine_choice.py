"""Chooses which engines of the device stand for the engines that an image names.

An image numbers its engines from 0. Any as many engines of the device can stand for them, because all are alike: they
share LV2, DRAM and events, and nothing of an engine outlives an inference.
"""

from collections.abc import Collection, Sequence

from hw.image import Image
from sw.driver.errors import DriverError
from sw.driver.memory.ranges import engines_of


def engines_needed(image: Image) -> int:
    """Return how many engines ``image`` was compiled for."""
    return image.meta.parts or max(engines_of(image), default=-1) + 1


def check_engines(image: Image, engines: Sequence[int], available: int) -> tuple[int, ...]:
    """Return ``engines`` as a tuple if ``image`` can run there: as many as it was compiled for, all different, all of
    the ``available`` that the device has. Raises :class:`DriverError` otherwise."""
    chosen, needed = tuple(engines), engines_needed(image)
    model = f"model {image.meta.model!r}"
    if len(chosen) != needed:
        raise DriverError(
            f"{model} was compiled for {needed} engines, engines={list(chosen)} names {len(chosen)}: name {needed}, or "
            "compile it again with another engines="
        )
    for engine in chosen:
        if not 0 <= engine < available:
            raise DriverError(f"{model}: the device has no engine {engine}; its engines are 0 to {available - 1}")
    if len(set(chosen)) < needed:
        raise DriverError(f"{model}: engines={list(chosen)} names an engine twice; its parts run side by side")
    return chosen


def choose_engines(
    image: Image, engines: Sequence[int] | str | None, used: Collection[Collection[int]], available: int
) -> tuple[int, ...]:
    """Return the engines to run ``image`` on, as ``Device.load`` is told: those named, the first, or in rising order
    those that the fewest of the loaded models use, of equals the lower numbers. ``used`` is the engines of each of
    these models. Raises as :func:`check_engines`."""
    needed = engines_needed(image)
    if engines is None:
        engines = range(needed)
    elif isinstance(engines, str):
        if engines != "least_used":
            raise DriverError(f"engines must be engine numbers or 'least_used', not {engines!r}")
        order = sorted(range(available), key=lambda engine: sum(engine in others for others in used))
        engines = sorted(order[:needed])
    return check_engines(image, engines, available)
