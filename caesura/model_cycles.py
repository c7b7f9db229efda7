"""How long a program takes on the fast model, without data."""

from hw.contract.image import Image
from sim.model.bus import ModelBus
from sw.driver import Device

_LIMIT = 10_000_000_000  #: cycles


def model_cycles(image: Image) -> int:
    """From the first job to begin until the last has ended, of one inference; steps on the CPU are not counted."""
    device = Device(ModelBus(image.params, data=False))
    loaded = device.load(image)
    device.begin(loaded, _LIMIT)
    results = device.collect(device.submit(loaded, range(len(image.meta.jobs)), limit=_LIMIT), _LIMIT)
    return max(one.end for one in results) - min(one.prologue_start or one.start for one in results)
