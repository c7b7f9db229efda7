"""Pauses at random times while a model runs: how long each engine took to halt, and where."""

import random
from dataclasses import dataclass

import numpy.typing as npt

from hw.contract.bus import HostCosts
from hw.contract.regs import EngineState, engine_reg
from hw.image.image import Image
from sim.rtl import open_bus
from sw.driver import Device
from sw.runtime.session import Session

_HALTED_WITHIN = 1_000_000
_STEP = 50


@dataclass(frozen=True)
class Halt:
    """``cycles`` from the write of CONTROL.pause to HALTED at ``point`` (None: before a body)."""

    cycles: int
    point: int | None


def random_pauses(image: Image, samples: list[dict[str, npt.NDArray]], seed: int, apart: int) -> list[Halt]:
    """Run ``image`` on each of ``samples`` and pause a random engine about every ``apart`` cycles, then go on."""
    rng = random.Random(seed)
    bus = open_bus(image.params, costs=HostCosts.free())
    halts: list[Halt] = []
    engines = 1 + max(job.engine for job in image.meta.jobs)

    def pause() -> Halt:
        engine = rng.randrange(engines)
        control, status = engine_reg(engine, "CONTROL"), engine_reg(engine, "STATUS")
        sent = bus.cycle
        bus.write_reg(control, 0b101)
        while bus.read_reg(status) & 15 != EngineState.HALTED:
            assert bus.cycle - sent < _HALTED_WITHIN, f"seed {seed}: engine {engine} did not halt"
            bus.advance(_STEP)
        in_job = bus.read_reg(status) >> 5 & 1
        point = bus.read_reg(engine_reg(engine, "HALT_POINT")) if in_job else None
        cycles = bus.read_reg(engine_reg(engine, "HALT_CYCLE_LO")) - (sent & 0xFFFFFFFF)
        bus.write_reg(control, 0b001)
        return Halt(cycles, point)

    wait = bus.wait_irq

    def wait_irq(limit: int) -> bool:
        end = bus.cycle + limit
        while bus.cycle < end:
            if wait(min(end - bus.cycle, 1 + int(rng.expovariate(1 / apart)))):
                return True
            halts.append(pause())
        return False

    bus.wait_irq = wait_irq  # type: ignore[method-assign]
    device = Device(bus)
    session = Session(device, device.load(image))
    for sample in samples:
        session.run(sample)
    bus.close()
    return halts
