"""Faults of the memory that wait for a moment: the next dump, restore, reload list, clearing of memories, or prologue.

They strike its descriptor, its program, its completion or all memory, once: what fails is the driver's own, so it is
tried again, and nobody's request ends for it; or a job of a model, whose request alone may end.
"""

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np

from benchmarks.trust.differential import Mismatch
from benchmarks.trust.fleet import PARAMS, Craft, fleet
from benchmarks.trust.watched_bus import WatchedBus, judged
from hw.contract.bus import Bus
from sw.driver import Device, DriverError, LoadedModel
from sw.runtime import Mechanism, Request, Runtime

_FREEZE, _ERRORS = 1, (2, 3)
_OWN = ("dump", "restore", "reload list", "clearing")  #: jobs that are nobody's but the driver's
_MOMENTS = (*_OWN, *_OWN, "prologue", "job")
_TENANTS = (("a", "b", "c"), ("a", "b", "b"), (None, None, None))
_PLACES = ("descriptor", "completion", "program", "all memory")
_CRAFTS = ("with long bodies", "in little LV2", "in all of LV2", "with weights that stay")
_SHORT, _LONG = 60_000, 150_000  #: cycles of a freeze, at most
_STRIKE = (50, 500, 3000)  #: cycles that errors last
_PATIENCE = 60_000_000  #: cycles within which everything has ended
_CALLS = 60_000


class Trap:
    """One round: requests of several models on ``bus``, and a fault that waits for its moment."""

    def __init__(self, rng: random.Random, bus: Bus, reached: Counter[str]) -> None:
        self._rng, self._reached = rng, reached
        self._bus = WatchedBus(bus, reached)
        self._device = Device(self._bus)
        self._moment, self._place = rng.choice(_MOMENTS), rng.choice(_PLACES)
        self._freeze = rng.random() < 0.25
        self._sprung = 0  #: jobs of that kind so far
        self._skip = rng.choice((0, 0, 1))

    def run(self) -> str:
        """Raises ``Mismatch``."""
        rng = self._rng
        crafts = [fleet()[kind] for kind in (_CRAFTS[0], *rng.choices(_CRAFTS, k=2))]
        tenants = rng.choice(_TENANTS[: 2 if self._moment == "clearing" else 3])
        models = [
            self._device.load(craft.named(f"{i}"), [int(i == 2)], tenant=tenant)
            for i, (craft, tenant) in enumerate(zip(crafts, tenants, strict=True))
        ]
        what = f"{'freeze' if self._freeze else 'error'} of {self._place} at a {self._moment}"
        self._bus.seen = self._spring
        with judged(what):
            errors = self._requests(crafts, models)
            self._bus.seen = lambda kind, members: None
            self._bus.heal()
            for model, error in zip(models, errors, strict=True):
                if error is not None and (complaint := self._unfair(model, error)):
                    raise Mismatch(complaint)
            again = self._requests(crafts, models)
            if any(error is not None for error in again):
                raise Mismatch(f"not usable afterwards: {again}")
        if self._sprung <= self._skip:
            return "a trap that nothing came by"
        self._reached[f"{'freeze' if self._freeze else 'error'} at a {self._moment}"] += 1
        return what

    def _spring(self, kind: str, members: dict[str, int]) -> None:
        if kind != self._moment:
            return
        self._sprung += 1
        if self._sprung == self._skip + 2:
            self._bus.set_dram_fault(0)  # it strikes once
        if self._sprung != self._skip + 1:
            return
        if self._freeze:
            self._bus.set_dram_fault(_FREEZE, cycles=self._rng.choice((_SHORT, _SHORT, _LONG)))
            return
        begin, size = 0, PARAMS.dram_bytes
        if self._place == "program":
            begin, size = members["base0"], members["limit0"]
        elif self._place != "all memory":
            queue = self._rng.choice(self._device.engines)
            begin, size = queue.memory[self._place == "completion"], queue.capacity * 256
        self._bus.set_dram_fault(self._rng.choice(_ERRORS), begin, size, cycles=self._rng.choice(_STRIKE))

    def _requests(self, crafts: Sequence[Craft], models: Sequence[LoadedModel]) -> list[Exception | None]:
        """A long request, an urgent one for its engine, and one for the other; results that are there are exact."""
        rng, now = self._rng, self._bus.cycle
        self._bus.last, self._bus.calls = now + _PATIENCE, _CALLS
        runtime = Runtime(self._device, preemptive=True, rule=lambda situation: Mechanism.DUMP)
        asked: list[tuple[Request, Craft, int]] = []
        for number, (craft, model) in enumerate(zip(crafts, models, strict=True)):
            sample = rng.randrange(len(craft.inputs))
            inputs = {model.image.meta.inputs[0].name: craft.inputs[sample : sample + 1]}
            arrival = now + (rng.randrange(6_000, 30_000) if number == 1 else 0)
            asked.append((runtime.submit(model, inputs, priority=int(number == 1), arrival=arrival), craft, sample))
        runtime.run_until_done()
        for request, craft, sample in asked:
            exact = craft.outputs[sample]
            if request.exception() is None and not np.array_equal(next(iter(request.result().values()))[0], exact):
                raise Mismatch(f"{request.name} has a wrong result")
        return [request.exception() for request, _, _ in asked]

    def _unfair(self, model: LoadedModel, error: Exception) -> str:
        """Why the request of ``model`` may not end with ``error``; empty if it may. Errors of all memory, or of a ring,
        may strike any job; a freeze that lasts any that has a limit; others the job whose moment it was."""
        if not isinstance(error, DriverError):
            return f"the request of model {model.name} ended with {error!r}"
        own = self._moment in _OWN and self._place == "program" and not self._freeze
        return f"a job of the driver failed, and ended the request of model {model.name}: {error!r}" if own else ""
