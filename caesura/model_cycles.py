"""Tells how long a program takes on the fast model, without data."""

from hw.image import Image
from sim.model import ModelBus
from sw.driver import Device

_LIMIT = 10_000_000_000  #: cycles


def model_cycles(image: Image) -> int:
    """Return the cycles from the first job to begin until the last has ended, of one inference; steps on the CPU are
    not counted."""
    return sum(layer_cycles(image))


def layer_cycles(image: Image) -> list[int]:
    """Return by layer of ``image`` the cycles from the end of the layers ahead to its own, of one inference; those of
    the first count from the beginning of its first job. A layer without jobs takes none."""
    device = Device(ModelBus(image.params, data=False))
    loaded = device.load(image)
    device.begin(loaded, _LIMIT)
    results = device.collect(device.submit(loaded, range(len(image.meta.jobs)), limit=_LIMIT, cycle_limit=0), _LIMIT)
    at, took = min(one.prologue_start or one.start for one in results), [0] * len(image.meta.layers)
    for job, result in zip(image.meta.jobs, results, strict=True):
        took[job.layer] += max(0, result.end - at)
        at = max(at, result.end)
    return took
