"""Tells how long a program takes on the fast model, without data, or on a simulator of the RTL."""

from dataclasses import dataclass

from hw.image import Image
from sim import MODEL, open_simulator
from sim.model import ModelBus
from sw.driver import Device, JobResult

_LIMIT = 10_000_000_000  #: cycles
_MOVED = ("prologue_bytes", "ld2_bytes", "st2_bytes")  #: counters


def model_cycles(image: Image, backend: str = MODEL) -> int:
    """Return the cycles from the first job to begin until the last has ended, of one inference; steps on the CPU are
    not counted. ``backend``: one of ``sim.backends.BACKENDS``; ``BuildError`` if its simulator cannot be built."""
    return sum(layer_cycles(image, backend))


@dataclass(frozen=True)
class ModelTraffic:
    """Says what an inference takes: ``cycles`` from the first prologue to the last end, and bytes ``moved`` from and to
    DRAM by prologues, loads and stores, as the counters of jobs tell."""

    cycles: int
    moved: int


def model_traffic(image: Image) -> ModelTraffic:
    """Return what one inference of ``image`` takes; steps on the CPU are not counted."""
    results = _results(image)
    if not results:
        return ModelTraffic(0, 0)
    begin = min(one.prologue_start or one.start for one in results)
    moved = sum(one.counters[name] for one in results for name in _MOVED)
    return ModelTraffic(max(one.end for one in results) - begin, moved)


def layer_cycles(image: Image, backend: str = MODEL) -> list[int]:
    """Return by layer of ``image`` the cycles from the end of the layers ahead to its own, of one inference; those of
    the first count from the beginning of its first job. A layer without jobs takes none."""
    results = _results(image, backend)
    at, took = min(one.prologue_start or one.start for one in results), [0] * len(image.meta.layers)
    for job, result in zip(image.meta.jobs, results, strict=True):
        took[job.layer] += max(0, result.end - at)
        at = max(at, result.end)
    return took


def _results(image: Image, backend: str = MODEL) -> list[JobResult]:
    bus = ModelBus(image.params, data=False) if backend == MODEL else open_simulator(image.params, backend)
    device = Device(bus)
    loaded = device.load(image)
    device.begin(loaded, _LIMIT)
    return device.collect(device.submit(loaded, range(len(image.meta.jobs)), limit=_LIMIT, cycle_limit=0), _LIMIT)
