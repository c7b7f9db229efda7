"""Pauses that are taken back once all engines have halted: many in one run, each of which tells how long a halt takes.

Nothing is dumped and nobody else runs, so that a pause costs little more than the halt.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from caesura import latency_bound
from hw.contract.bus import HostCosts
from hw.contract.regs import EngineState, engine_reg
from hw.image import Image
from sw.driver import Device

_STEP = 50  #: cycles between two looks at an engine
_ENABLE, _PAUSE = 0b001, 0b101  #: of CONTROL
_PATIENCE = 1_000_000


@dataclass
class Halts:
    """Holds what pauses of a run took. ``cycles``: from the pause until the last engine had halted, one a pause;
    ``beyond``: halts, as (engine, point, cycles), that took longer than the bound of the point where they came."""

    cycles: list[int] = field(default_factory=list)
    beyond: list[tuple[int, int | None, int]] = field(default_factory=list)


@contextmanager
def withdrawn_pauses(device: Device, image: Image, seed: int, apart: int) -> Iterator[Halts]:
    """Pause the engines that ``image`` runs on about every ``apart`` cycles in which the host waits, at random times,
    and let them go on. What is yielded grows meanwhile. Raises TimeoutError if an engine does not halt."""
    bus, rng, halts = device.bus, random.Random(seed), Halts()
    wait, most = bus.wait_irq, latency_bound(image).halt

    def wait_irq(limit: int) -> bool:
        end = bus.cycle + limit
        while bus.cycle < end:
            if wait(min(end - bus.cycle, 1 + int(rng.expovariate(1 / apart)))):
                return True
            _pause(device, image, most, halts)
        return False

    bus.wait_irq = wait_irq  # type: ignore[method-assign]
    try:
        yield halts
    finally:
        bus.wait_irq = wait  # type: ignore[method-assign]


def _pause(device: Device, image: Image, most: int, halts: Halts) -> None:
    bus, sent = device.bus, device.bus.cycle
    engines = sorted({job.engine for job in image.meta.jobs})
    for engine in engines:
        bus.write_reg(engine_reg(engine, "CONTROL"), _PAUSE)
    taken = [0]
    for number, engine in enumerate(engines, 1):
        status = engine_reg(engine, "STATUS")
        while (now := bus.read_reg(status)) & 15 not in (EngineState.HALTED, EngineState.IDLE):
            if bus.cycle - sent > _PATIENCE:
                raise TimeoutError(f"engine {engine}, paused in cycle {sent}, did not halt within {_PATIENCE} cycles")
            bus.advance(_STEP)
        if now & 15 != EngineState.HALTED:
            continue
        point = bus.read_reg(engine_reg(engine, "HALT_POINT")) if now >> 5 & 1 else None
        cycles = bus.read_reg(engine_reg(engine, "HALT_CYCLE_LO")) - (sent & 0xFFFFFFFF) & 0xFFFFFFFF
        written = number * HostCosts().register_access
        limit = most if point is None else image.meta.cancel_points[point].worst_interval + written
        if cycles > limit:
            halts.beyond.append((engine, point, cycles))
        taken.append(cycles)
    halts.cycles.append(max(taken))
    for engine in engines:
        bus.write_reg(engine_reg(engine, "CONTROL"), _ENABLE)
