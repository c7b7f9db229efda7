"""How long the queues of a device are, as they stand: what a session finds there when it begins to place operators."""

from collections.abc import Sequence
from typing import Literal

from hw.image import Image
from sw.driver import Device
from sw.driver.models.engine_choice import engines_needed
from sw.driver.queues.job import DeviceJob

Engines = Sequence[int] | Literal["least_busy"] | None  #: which engines run an inference: None for those before


def queue_times(device: Device, engines: Sequence[int]) -> list[float]:
    """Return the expected queue time of each of ``engines`` (**Queue-time balancing**): the reference durations of all
    jobs of models that wait there or run, whoever queued them. What the driver moves for itself counts nothing."""
    return [sum(map(_duration, device.engines[engine].unfinished)) for engine in engines]


def least_busy(device: Device, image: Image) -> list[int]:
    """Return as many engines as ``image`` was compiled for, in rising order: those with the smallest expected queue
    times, of equals the lower numbers."""
    return shortest(queue_times(device, range(device.params.engines)), image)


def shortest(times: Sequence[float], image: Image) -> list[int]:
    """Return as many engines as ``image`` was compiled for, in rising order: those with the smallest of ``times``, of
    equals the lower numbers."""
    return sorted(sorted(range(len(times)), key=times.__getitem__)[: engines_needed(image)])


def _duration(job: DeviceJob) -> float:
    """Return the cycles of ``job`` by the reference duration of its layer: its load or its compute, whichever is
    longer."""
    if not job.of_image:
        return 0.0
    image: Image = job.model.image
    mine = image.meta.jobs[job.index]
    layer, others = image.meta.layers[mine.layer], [one for one in image.meta.jobs if one.layer == mine.layer]
    loaded = sum(one.window[1] for one in others)
    beside = sum(one.engine == mine.engine for one in others)
    return max(layer.load * mine.window[1] / loaded if loaded else 0.0, layer.compute / beside)
