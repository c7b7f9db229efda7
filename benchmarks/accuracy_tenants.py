"""Two models at once, and one that urgent ones interrupt: the same calls on the RTL and on the fast model."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from compiler import Options, compile_model
from hw.contract.bus import Bus
from hw.contract.params import SocParams
from hw.image import Image
from sim.model import ModelBus
from sim.rtl import open_bus
from sw.driver import Device

LIMIT = 100_000_000


@dataclass(frozen=True)
class Pause:
    """A pause: cycles from its writing to HALTED, and to the end of the whole."""

    halting: int
    makespan: int


def _compiled(path: Path, params: SocParams, name: str, **options) -> Image:
    return compile_model(path, params, engines=1, options=Options(**options), name=name)


def pairs(paths: Sequence[Path], params: SocParams) -> list[tuple[str, int, int]]:
    """Every two of the models at once, on two engines if there are: name, makespan on the RTL and by the model."""
    limit = params.lv2_bytes // 2
    images = [_compiled(path, params, path.stem, lv2_limit=limit) for path in paths]
    results = []
    for i, first in enumerate(images):
        for second in images[i + 1 :]:
            rtl, model = (_together(bus, [first, second]) for bus in (open_bus(params), ModelBus(params, data=False)))
            results.append((f"{first.meta.model} + {second.meta.model}", rtl, model))
    return results


def _together(bus: Bus, images: list[Image]) -> int:
    device = Device(bus)
    try:
        models = [device.load(image, engines=[number % device.params.engines]) for number, image in enumerate(images)]
        ids = []
        begin = bus.cycle
        for model in models:
            device.begin(model, LIMIT)
            ids += device.submit(model, range(len(model.image.meta.jobs)), limit=LIMIT)
        results = device.collect(ids, LIMIT)
        return max(result.end for result in results) - begin
    finally:
        device.close()


def preemptions(
    long_path: Path, urgent_path: Path, params: SocParams, count: int, seed: int
) -> tuple[list[Pause], list[Pause]]:
    """One model on one engine, interrupted ``count`` times at random, each time in an inference of its own; on the RTL,
    and by the model."""
    long = _compiled(long_path, params, "long", lv2_limit=params.lv2_bytes // 2, cancel_interval=2000)
    urgent = _compiled(urgent_path, params, "urgent", lv2_limit=params.lv2_bytes // 2)
    alone = _together(ModelBus(params, data=False), [long])
    delays = [random.Random(f"{seed} {number}").randrange(500, alone) for number in range(count)]
    rtl, model = (_interrupted(bus, long, urgent, delays) for bus in (open_bus(params), ModelBus(params)))
    return rtl, model


def _interrupted(bus: Bus, long: Image, urgent: Image, delays: list[int]) -> list[Pause]:
    device = Device(bus)
    try:
        running, waiting = device.load(long, engines=[0]), device.load(urgent, engines=[0])
        pauses = []
        for delay in delays:
            begin = bus.cycle
            device.begin(running, LIMIT)
            ids = device.submit(running, range(len(long.meta.jobs)), limit=LIMIT)
            bus.advance(delay)
            sent = bus.cycle
            suspension = device.suspend([0], waiting)
            halted = [halt.cycle for halt in suspension.halts.values() if halt.cycle]
            device.admit(waiting)
            device.begin(waiting, LIMIT)
            device.collect(device.submit(waiting, range(len(urgent.meta.jobs)), limit=LIMIT), LIMIT)
            device.resume(suspension)
            results = device.collect(ids, LIMIT)
            pauses.append(Pause(max(halted, default=sent) - sent, max(one.end for one in results) - begin))
        return pauses
    finally:
        device.close()
