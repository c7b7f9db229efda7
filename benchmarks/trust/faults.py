"""Faults of bus and interrupts on purpose, while requests run on two engines of the RTL or the fast model.

Some strike at any time: then each engine has a request without a tenant, or two of two tenants, between which its
memories are cleared. Others wait for a job of the driver's own. A fault is reported for a request that it struck,
results of the others are exact, and so are all afterwards.
"""

import random
from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np

import caesura
from benchmarks.trust.differential import Mismatch
from benchmarks.trust.faulty_bus import FaultyBus
from benchmarks.trust.fleet import PARAMS, fleet
from benchmarks.trust.traps import Trap
from benchmarks.trust.under_test import kept, open_device
from examples.digits import MODEL, SAMPLES
from examples.digits.evaluate import reference_logits
from hw.contract.bus import Bus
from hw.contract.job import COMPLETION, Fault
from hw.image import Image
from sw.driver import Device, DeviceFault, DriverError, LoadedModel
from sw.runtime import Runtime

_FREEZE, _ERRORS = 1, (2, 3)
_DURATION = 18_000  #: cycles within which faults begin: about those of a request
_TENANTS = ("a", "b")
_STATUS = 4  #: where in a completion it says how the job ended
_SHORT = 60_000  #: cycles that no job's limit is below


@cache
def _material():
    """Image, input and expected output."""
    sample = np.load(SAMPLES)["input"][:1]
    image = kept("digits on tiny2", lambda: caesura.compile(MODEL, PARAMS, engines=1).to_bytes())
    return Image.from_bytes(image), sample, reference_logits(MODEL, sample)


class FaultCampaign:
    """Every round has a device of its own: half of them faults at any time, the others :class:`Trap`. ``backend``: of
    ``sim.backends``."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self.reached: Counter[str] = Counter()
        _material()
        fleet()
        open_device(PARAMS, backend).close()  # so that it is built

    def close(self) -> None:
        """Nothing is kept between rounds."""

    def round(self, seed: int) -> str:
        """One fault. Raises ``Mismatch``."""
        rng = random.Random(seed)
        bus = open_device(PARAMS, self._backend)
        try:
            if rng.random() < 0.5:
                return Trap(rng, bus, self.reached).run()
            kind, end = Strike(bus).run(rng)
            self.reached[f"{kind}, {end}"] += 1
            return f"{kind}, {end}"
        finally:
            bus.close()


class Strike:
    """A fault that begins at any time, under requests on both engines of ``bus``."""

    def __init__(self, bus: Bus) -> None:
        image, _, _ = _material()
        self._bus = FaultyBus(bus)
        self._device = Device(self._bus)
        self._models = {
            tenant: [self._device.load(image, engines=[engine], tenant=tenant) for engine in range(2)]
            for tenant in (None, *_TENANTS)
        }
        self._runtime = Runtime(self._device, "fcfs")
        self._readable: tuple[Fault, ...] = (Fault.BUS,)  #: what a completion that was damaged may say

    def run(self, rng: random.Random) -> tuple[str, str]:
        """What went wrong, and what became of it. Raises ``Mismatch``."""
        models = self._chosen(rng)
        struck = rng.choice(models)
        kind, may_fail = self._inject(rng, struck, models)
        kind += "" if struck.tenant is None else " under tenants"
        states = self._requests(models)
        self._bus.heal()
        for model, error in zip(models, states, strict=True):
            if error is None:
                continue
            if not isinstance(error, DriverError):
                raise Mismatch(f"{kind}, {_which(struck)}: the request of {_which(model)} ended with {error!r}")
            if "damaged" in kind and not (isinstance(error, DeviceFault) and error.record.code in self._readable):
                raise Mismatch(f"{kind}, {_which(struck)}: {error!r} is not what the completion says")
            if model not in may_fail:
                raise Mismatch(f"{kind}, {_which(struck)}: it ended the request of {_which(model)}: {error}")
        again = self._requests(models)
        if any(error is not None for error in again):
            raise Mismatch(f"{kind}, {_which(struck)}: not usable afterwards: {again}")
        return kind, "reported" if any(states) else "no effect on results"

    def _chosen(self, rng: random.Random) -> list[LoadedModel]:
        """Models that run in this round, in the order of their requests."""
        if rng.random() < 0.5:
            return self._models[None]
        orders = [rng.sample(_TENANTS, 2) for _ in range(2)]
        return [self._models[orders[engine][turn]][engine] for turn in range(2) for engine in range(2)]

    def _requests(self, models: Sequence[LoadedModel]) -> list[Exception | None]:
        """Errors of a request of each model; results that are there must be exact."""
        _, sample, expected = _material()
        name = models[0].image.meta.inputs[0].name
        requests = [self._runtime.submit(model, {name: sample}) for model in models]
        try:
            errors = [request.exception() for request in requests]
        except DriverError as nobodys:
            raise Mismatch(f"an error that no request ends with: {nobodys}") from None
        for request, error in zip(requests, errors, strict=True):
            if error is None and not np.array_equal(next(iter(request.result().values())), expected):
                raise Mismatch(f"{request.name} has a wrong result")
        self._runtime.run_until_done()
        return errors

    def _inject(
        self, rng: random.Random, struck: LoadedModel, models: Sequence[LoadedModel]
    ) -> tuple[str, Sequence[LoadedModel]]:
        """What goes wrong, and the models whose requests may end with an error for it."""
        bus = self._bus
        same_engine = [model for model in models if model.engines == struck.engines]
        after = rng.randrange(_DURATION * len(models) // 2)
        when = {"after": after, "cycles": rng.choice((10, 1000, 5000, 10 * _DURATION))}
        what = rng.randrange(6)
        if what == 0:
            long = rng.random() < 0.3  # so long that a job runs into its cycle limit
            bus.set_dram_fault(_FREEZE, after=when["after"], cycles=rng.randrange(1, 400_000 if long else _SHORT))
            return ("long freeze", models) if long else ("freeze", [])
        if what == 1:
            bus.lose_interrupts(rng.randint(1, 3))
            return "lost interrupts", []
        if what == 2:
            bus.delay_interrupts(rng.randrange(1, 5 * _DURATION))
            return "late interrupts", []
        queue = self._device.engines[struck.engines[0]]
        ring, completions = queue.memory
        if what == 3:
            slot = queue.place % queue.capacity
            byte, mask = rng.choice((0, 1, 2, 3, 4, 8, 9)), 1 << rng.randrange(8)
            if byte == _STATUS and mask in Fault.__members__.values():
                self._readable = (Fault(mask),)
            bus.damage_next_read(completions + slot * COMPLETION.size + byte, mask)
            return "damaged completion", same_engine
        if what == 4:
            base = rng.choice((ring, completions))
            bus.set_dram_fault(rng.choice(_ERRORS), base, queue.capacity * COMPLETION.size, **when)
            return "error of a ring", same_engine
        segment = rng.choice([i for i in range(6) if struck.segments[i][1]])
        base, size = struck.segments[segment]
        bus.set_dram_fault(rng.choice(_ERRORS), base, size, **when)
        return "error of a segment", [struck]


def _which(model: LoadedModel) -> str:
    return f"engine {model.engines[0]}" + ("" if model.tenant is None else f", tenant {model.tenant}")
