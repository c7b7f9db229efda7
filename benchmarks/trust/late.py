"""A request ends by its deadline, or at once behind it, while nothing else wakes the host: nothing ends or arrives.

Models take turns on one device. One of them has a body that never ends until its limit of cycles does, which is far
away: it is too late itself, or another is that waits for it. One on engines of its own need not wait.
"""

import random
from collections import Counter

import numpy as np

from benchmarks.trust.differential import Mismatch
from benchmarks.trust.doom import plant
from benchmarks.trust.fleet import PARAMS, fleet
from benchmarks.trust.under_test import open_device
from benchmarks.trust.watched_bus import WatchedBus, judged
from hw.contract.bus import HostCosts
from sw.driver import Device, DeviceFault
from sw.runtime import DeadlineMissed, Request, Runtime

_TURNS = 4
_TOGETHER = 0.25  #: how often the second model is put on engines of the first; else on any
_WITHIN = (1, 3000, 30_000)  #: cycles from arrival to deadline, at most
_AT_ONCE = 25_000  #: cycles in which the host begins a request, clears memories and halts an engine
_ENDED = 3_000_000  #: cycles in which the requests of a turn end, one that hangs for its limit among them
_CALLS = 20_000  #: accesses of the host in a turn


class LateCampaign:
    """Every round has a device of its own."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self.reached: Counter[str] = Counter()
        fleet()
        open_device(PARAMS, backend).close()  # so that it is built

    def close(self) -> None:
        """Nothing is kept between rounds."""

    def round(self, seed: int) -> str:
        """A few turns. Raises ``Mismatch``."""
        rng = random.Random(seed)
        costs = rng.choice((HostCosts(), HostCosts.free()))
        bus = WatchedBus(open_device(PARAMS, self._backend, costs), self.reached)
        try:
            with judged():
                return _Turns(rng, bus, self.reached).run()
        finally:
            bus.close()


class _Turns:
    """One round: a model that hangs, and one that does not."""

    def __init__(self, rng: random.Random, bus: WatchedBus, reached: Counter[str]) -> None:
        self._rng, self._bus, self._reached = rng, bus, reached
        device = Device(bus)
        self._crafts = rng.choices(list(fleet().values()), k=2)
        first, second = self._crafts
        hanging = rng.sample(range(PARAMS.engines), first.engines)
        beside = rng.sample(range(PARAMS.engines), second.engines)
        if rng.random() < _TOGETHER:  # on all that the first has, and more where it needs more
            beside = sorted(range(PARAMS.engines), key=lambda engine: engine not in hanging)[: second.engines]
        self._models = [
            device.load(craft.named(name), engines, tenant=rng.choice((None, name)))
            for craft, name, engines in ((first, "the one that hangs", hanging), (second, "the other", beside))
        ]
        plant(rng, bus, self._models[0], ["endless"])
        self._runtime = Runtime(device, rng.choice(("fcfs", "idle_time", "sjf")), preemptive=True)

    def run(self) -> str:
        """Raises ``Mismatch``."""
        turns = self._rng.choices([self._alone, self._waiting, self._well], k=_TURNS)
        for turn in turns:
            self._bus.last, self._bus.calls = self._bus.cycle + _ENDED, _CALLS
            turn()
        return f"{_TURNS} turns"

    def _alone(self) -> None:
        """The request that hangs is too late."""
        self._must_miss(self._submit(0, self._deadline()))
        self._reached["too late alone"] += 1

    def _waiting(self) -> None:
        """One that is less urgent, and has not begun, is too late while another hangs on an engine that it needs. On
        engines of its own it may be in time."""
        other = self._submit(0, priority=1)
        sample = self._rng.randrange(len(self._crafts[1].inputs))
        request = self._submit(1, self._deadline(), sample=sample)
        if set(self._models[0].engines) & set(self._models[1].engines):
            self._must_miss(request)
            self._reached["too late waiting"] += 1
        else:
            self._may_miss(request, sample)
        if not isinstance(other.exception(), DeviceFault):
            raise Mismatch(f"the request that hangs ended with {other.exception()!r}")

    def _well(self) -> None:
        """One has time enough: its result is exact, whatever was aborted before it."""
        sample = self._rng.randrange(len(self._crafts[1].inputs))
        request = self._submit(1, self._bus.cycle + _ENDED, sample=sample)
        self._runtime.run_until_done()
        self._must_be_exact(request, sample)
        self._reached["in time"] += 1

    def _deadline(self) -> int:
        return self._bus.cycle + self._rng.randrange(self._rng.choice(_WITHIN))

    def _submit(self, number: int, deadline: int | None = None, *, priority: int = 0, sample: int = 0) -> Request:
        craft, model = self._crafts[number], self._models[number]
        inputs = {craft.image.meta.inputs[0].name: craft.inputs[sample : sample + 1]}
        return self._runtime.submit(model, inputs, priority=priority, deadline=deadline)

    def _may_miss(self, request: Request, sample: int) -> None:
        self._runtime.run_until_done()
        if request.exception() is not None:
            self._must_miss(request)
            return
        assert request.ended is not None and request.deadline is not None
        if request.ended > request.deadline:
            raise Mismatch(f"a request ended well {request.ended - request.deadline} cycles behind its deadline")
        self._must_be_exact(request, sample)
        self._reached["in time beside one that hangs"] += 1

    def _must_be_exact(self, request: Request, sample: int) -> None:
        if not np.array_equal(next(iter(request.result().values()))[0], self._crafts[1].outputs[sample]):
            raise Mismatch("a request that is in time has a wrong result")

    def _must_miss(self, request: Request) -> None:
        self._runtime.run_until_done()
        if not isinstance(error := request.exception(), DeadlineMissed):
            raise Mismatch(f"a request that cannot end in time ended with {error!r}")
        assert request.ended is not None and request.deadline is not None
        late = request.ended - request.deadline
        if not 0 < late <= _AT_ONCE:
            raise Mismatch(f"a request ended {late} cycles behind its deadline, not within {_AT_ONCE}")
