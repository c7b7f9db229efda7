"""Faults of bus and interrupts on purpose, while two requests run side by side on the RTL or the fast model.

Each is reported for a request that it struck, the other's result is exact, and so are both afterwards.
"""

import random
from functools import cache

import numpy as np

import caesura
from benchmarks.trust.differential import Mismatch
from examples.digits import MODEL, SAMPLES
from examples.digits.evaluate import reference_logits
from hw.contract.job import COMPLETION
from hw.contract.params import preset
from sim.faulty_bus import FaultyBus
from sim.simulators import open_simulator
from sw.driver import Device, DriverError
from sw.runtime import Runtime

PARAMS = preset("tiny").replace(name="tiny2", engines=2)
_FREEZE, _ERRORS = 1, (2, 3)
_DURATION = 18_000  #: cycles within which faults begin: about those of a request
_SHORT = 60_000  #: cycles that no job's limit is below


@cache
def _material():
    """Image, input and expected output."""
    sample = np.load(SAMPLES)["input"][:1]
    return caesura.compile(MODEL, PARAMS, engines=1), sample, reference_logits(MODEL, sample)


class FaultCampaign:
    """One device for all rounds. ``backend``: of ``sim.backends``."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._open()

    def _open(self) -> None:
        image, _, _ = _material()
        self._bus = FaultyBus(open_simulator(PARAMS, self._backend))
        self._device = Device(self._bus)
        self._models = [self._device.load(image, engines=[engine]) for engine in range(2)]
        self._runtime = Runtime(self._device, "fcfs")

    def close(self) -> None:
        """Close the simulator."""
        self._bus.close()

    def round(self, seed: int) -> str:
        """One fault. Raises ``Mismatch``."""
        rng = random.Random(seed)
        struck = rng.randrange(2)
        kind, may_fail = self._inject(rng, struck)
        states = self._both()
        self._bus.heal()
        for engine, error in enumerate(states):
            if error is None:
                continue
            if not isinstance(error, DriverError):
                raise Mismatch(f"{kind} on engine {struck}: request of engine {engine} ended with {error!r}")
            if engine not in may_fail:
                raise Mismatch(f"{kind} on engine {struck}: it ended the request of engine {engine}: {error}")
        again = self._both()
        if any(error is not None for error in again):
            raise Mismatch(f"{kind} on engine {struck}: not usable afterwards: {again}")
        return f"{kind}, {'reported' if any(states) else 'no effect on results'}"

    def _both(self) -> list[Exception | None]:
        """Errors of a request on each engine; results that are there must be exact."""
        _, sample, expected = _material()
        name = self._models[0].image.meta.inputs[0].name
        requests = [self._runtime.submit(model, {name: sample}) for model in self._models]
        errors = [request.exception() for request in requests]
        for request, error in zip(requests, errors, strict=True):
            if error is None and not np.array_equal(next(iter(request.result().values())), expected):
                raise Mismatch(f"{request.name} has a wrong result")
        self._runtime.run_until_done()
        return errors

    def _inject(self, rng: random.Random, struck: int) -> tuple[str, set[int]]:
        """What goes wrong, and the engines whose requests may end with an error for it."""
        bus, model = self._bus, self._models[struck]
        when = {"after": rng.randrange(_DURATION), "cycles": rng.choice((10, 1000, 5000, 10 * _DURATION))}
        what = rng.randrange(6)
        if what == 0:
            long = rng.random() < 0.3  # so long that a job runs into its cycle limit
            bus.set_dram_fault(_FREEZE, after=when["after"], cycles=rng.randrange(1, 400_000 if long else _SHORT))
            return ("long freeze", {0, 1}) if long else ("freeze", set())
        if what == 1:
            bus.lose_interrupts(rng.randint(1, 3))
            return "lost interrupts", set()
        if what == 2:
            bus.delay_interrupts(rng.randrange(1, 5 * _DURATION))
            return "late interrupts", set()
        queue = self._device.engines[struck]
        ring, completions = queue.memory
        if what == 3:
            slot = queue.place % queue.capacity
            at = completions + slot * COMPLETION.size + rng.choice((0, 1, 2, 3, 4, 8, 9))
            bus.damage_next_read(at, 1 << rng.randrange(8))
            return "damaged completion", {struck}
        if what == 4:
            base = rng.choice((ring, completions))
            bus.set_dram_fault(rng.choice(_ERRORS), base, queue.capacity * COMPLETION.size, **when)
            return "error of a ring", {struck}
        segment = rng.choice([i for i in range(6) if model.segments[i][1]])
        base, size = model.segments[segment]
        bus.set_dram_fault(rng.choice(_ERRORS), base, size, **when)
        return "error of a segment", {struck}
