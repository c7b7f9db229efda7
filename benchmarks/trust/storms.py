"""Storms of requests for several models an engine, of several tenants, each with an input and a reference of its own.

Priorities, arrivals, announcements, deadlines, cancels, kills, lost interrupts, weights that stay, and jobs anywhere in
a model that fault or never end. Each request ends once, within bounded time; those that end well are exact; an error is
that of the model in which the fault was planted, and says which; deadlines are kept; nothing is left over.
"""

import random
from collections import Counter
from dataclasses import dataclass

import numpy as np

from benchmarks.trust.differential import Mismatch
from benchmarks.trust.doom import Doom, plant
from benchmarks.trust.fleet import PARAMS, Craft, fleet
from benchmarks.trust.under_test import open_device
from benchmarks.trust.watched_bus import WatchedBus, judged
from hw.contract.bus import HostCosts
from sw.driver import LOOK_AFTER, Device, DeviceFault, DriverError, LoadedModel
from sw.runtime import DeadlineMissed, Mechanism, Request, RequestCancelled, Runtime, State

REQUESTS = 10  #: of one round
#: How a storm blows: anything, later requests more urgent, so that there is something to suspend, or all alike and most
#: on one engine.
_STYLES = ("mixed", "rising", "rising", "crowded")
_TENANTS = ("a", "b", "c", None)
_SPREAD = 60_000  #: cycles within which they arrive, at most
_PATIENCE = 250_000  #: cycles for each request after the last arrival: far above what one takes when alone
_SLACK = 60_000  #: cycles that the host may be busy with something else, such as clearing memories
_CALLS = 40_000  #: accesses of the host in one round whose bodies all end by themselves
_TURNS = 2_500  #: of the run time in one such round
_LOOK, _LOOK_CALLS = 1000, 30  #: cycles between looks at loaders while a body hangs, and accesses of the host for one
_DRIVERS = 32 * 1024  #: bytes of DRAM that the driver takes for programs of its own once it needs them


@dataclass(eq=False)
class Ship:
    """A loaded model of the fleet, with the fault that was planted in it."""

    craft: Craft
    model: LoadedModel
    doom: Doom | None = None


@dataclass(eq=False)
class Voyage:
    """A request, the ship that serves it, and the number of its input."""

    ship: Ship
    request: Request
    sample: int


class StormCampaign:
    """Every round has a device of its own, so that its seed alone makes it. ``reached``: how often rounds met what they
    are there for."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self.reached: Counter[str] = Counter()
        fleet()
        open_device(PARAMS, backend).close()  # so that it is built

    def close(self) -> None:
        """Nothing is kept between rounds."""

    def round(self, seed: int) -> str:
        """One storm. Raises ``Mismatch``."""
        rng = random.Random(seed)
        costs = rng.choice((HostCosts(), HostCosts.free()))  # with a host that takes no time, engines are always busy
        bus = WatchedBus(open_device(PARAMS, self._backend, costs), self.reached)
        try:
            with judged():
                return Storm(rng, bus, self.reached).run()
        finally:
            bus.close()


class Storm:
    """One round: a fleet on ``bus``, and requests for it."""

    def __init__(self, rng: random.Random, bus: WatchedBus, reached: Counter[str]) -> None:
        self._rng, self._bus, self._reached = rng, bus, reached
        self._device = Device(bus)
        self._style = rng.choice(_STYLES)
        self._free = self._free_bytes()
        self._ships = self._launch()
        self._ends: Counter[int] = Counter()
        self._voyages: list[Voyage] = []
        self._lost = rng.randint(1, 3) if rng.random() < 0.15 else 0

    def run(self) -> str:
        """Raises ``Mismatch``."""
        rng, bus = self._rng, self._bus
        runtime = Runtime(
            self._device, rng.choice(("fcfs", "idle_time", "round_robin", "sjf")), preemptive=rng.random() < 0.8,
            rule=lambda situation: rng.choice((*Mechanism, *3 * [Mechanism.DUMP])), may_kill=rng.random() < 0.4,
            ahead=rng.choice((1, 2, 3, 8)), at_arrival=rng.random() < 0.2, on_end=self._ended,
        )  # fmt: skip
        begin = bus.cycle
        spread = rng.choice((1, _SPREAD // 4, _SPREAD, _SPREAD))
        self._submit(runtime, begin, spread)
        bus.lose_interrupts(self._lost)
        doomed = [v.ship for v in self._voyages if v.ship.doom is not None]
        longest = max((max(ship.model.cycle_limits) for ship in doomed), default=0)
        hanging = 2 * len(doomed) * longest
        looks = hanging // _LOOK
        bus.last = begin + spread + REQUESTS * _PATIENCE + hanging + self._lost * LOOK_AFTER
        bus.calls = _CALLS + _LOOK_CALLS * looks
        self._serve(runtime, begin, spread, _TURNS + looks)
        bus.heal()
        for voyage in self._voyages:
            self._check(voyage)
        self._check_books()
        self._reached["suspended"] += any(v.request.preempted for v in self._voyages)
        return f"with {'preemption' if runtime.switches else 'no preemption'}"

    # -- making it -------------------------------------------------------------------------------------------
    def _launch(self) -> list[Ship]:
        """Load models: often several of a kind on an engine; the bytes of two of them hold faults, most of the time."""
        rng, crafts = self._rng, list(fleet().values())
        tenants = rng.choice((_TENANTS, _TENANTS[-1:], _TENANTS[:1]))
        ships: list[Ship] = []
        for number in range(rng.randint(4, 8)):
            craft = rng.choice(crafts)
            crowded = self._style == "crowded" and number % 4
            engines = list(range(craft.engines)) if crowded else rng.sample(range(PARAMS.engines), craft.engines)
            model = self._device.load(
                craft.named(f"{number}"), engines, tenant=rng.choice(tenants), keep_weights=rng.random() < 0.6,
                like=[ship.model for ship in ships] if rng.random() < 0.5 else (),
            )  # fmt: skip
            jobs = enumerate(craft.image.meta.jobs)
            self._bus.prologues[model.number] = {i for i, job in jobs if job.prologue_pc is not None}
            ships.append(Ship(craft, model))
        for ship in rng.sample(ships, rng.choice((0, 1, 1, 2))):
            ship.doom = plant(rng, self._bus, ship.model)
        return ships

    def _submit(self, runtime: Runtime, begin: int, spread: int) -> None:
        rng = self._rng
        arrivals = sorted(begin + rng.randrange(spread) for _ in range(REQUESTS))
        for number, arrival in enumerate(arrivals):
            ship = rng.choice(self._ships)
            sample = rng.randrange(len(ship.craft.inputs))
            deadline = arrival + rng.choice((rng.randrange(4000), rng.randrange(60_000), 10**6))
            limited = rng.random() < (0.25 if ship.doom is None else 0.5)
            inputs = {ship.craft.image.meta.inputs[0].name: ship.craft.inputs[sample : sample + 1]}
            request = runtime.submit(
                ship.model, inputs, priority=self._priority(number), arrival=arrival, announced=rng.random() < 0.3,
                deadline=deadline if limited else None,
            )  # fmt: skip
            self._voyages.append(Voyage(ship, request, sample))

    def _priority(self, number: int) -> int:
        if self._style == "rising":
            return number // 2
        return 0 if self._style == "crowded" else self._rng.randrange(4)

    # -- driving it ------------------------------------------------------------------------------------------
    def _serve(self, runtime: Runtime, begin: int, spread: int, most: int) -> None:
        """In at most so many turns of the run time."""
        rng, turns = self._rng, 0
        requests = [voyage.request for voyage in self._voyages]
        cancels = sorted(
            (begin + rng.randrange(2 * spread), rng.choice(requests).number) for _ in range(rng.choice((0, 0, 2)))
        )
        unloads = sorted(begin + rng.randrange(spread) for _ in range(3))
        while not all(request.done() for request in requests):
            while cancels and cancels[0][0] <= self._bus.cycle:
                requests[cancels.pop(0)[1]].cancel()
            if unloads and unloads[0] <= self._bus.cycle:
                unloads.pop(0)
                self._try_to_unload()
            runtime.step()
            turns += 1
            if turns > most:
                left = [(r.number, r.state.value, r.priority) for r in requests if not r.done()]
                raise Mismatch(f"{left} have not ended after {turns} turns")
        runtime.run_until_done()

    def _try_to_unload(self) -> None:
        """A model under requests stays."""
        used = [voyage.ship for voyage in self._voyages if not voyage.request.done()]
        if not used:
            return
        ship = self._rng.choice(used)
        try:
            self._device.unload(ship.model)
        except DriverError:
            self._reached["unloading refused"] += 1
        else:
            raise Mismatch(f"model {ship.model.name!r} was unloaded under a request")

    def _ended(self, request: Request) -> None:
        """Called by the run time at each end."""
        self._ends[request.number] += 1
        if isinstance(request.error, DeviceFault):
            others = [v.request for v in self._voyages if v.request.state is State.RUNNING]
            started = request.started
            if started is not None and any(o.started is not None and o.started < started for o in others):
                self._reached["blamed one is not the oldest"] += 1

    # -- judging it ------------------------------------------------------------------------------------------
    def _check(self, voyage: Voyage) -> None:
        request, ship = voyage.request, voyage.ship
        name, error = f"{request.name} for {ship.model.name!r} ({ship.craft.kind})", request.exception()
        if self._ends[request.number] != 1:
            raise Mismatch(f"{name} ended {self._ends[request.number]} times")
        if error is None:
            self._check_result(voyage, name)
        elif isinstance(error, DeadlineMissed):
            self._check_missed(voyage, error, name)
        elif isinstance(error, RequestCancelled):
            self._reached["cancelled"] += 1
        elif ship.doom is not None and isinstance(error, DeviceFault):
            if complaint := ship.doom.complaint(error.record):
                raise Mismatch(f"{name} ended with the wrong error, {complaint}: {error}")
            self._reached[f"fault: {ship.doom.kind}"] += 1
            self._reached[f"fault in {ship.doom.where} job"] += 1
        else:
            raise Mismatch(f"{name} ended with {error!r}")
        if request.deadline is not None:
            self._check_end(voyage, name)
        if request.repeated and ship.doom is None:
            self._reached["neighbour started over"] += 1

    def _check_result(self, voyage: Voyage, name: str) -> None:
        request, ship = voyage.request, voyage.ship
        if ship.doom is not None:
            raise Mismatch(f"{name} ended well, although there is a fault in it: {ship.doom}")
        if not np.array_equal(next(iter(request.result().values()))[0], ship.craft.outputs[voyage.sample]):
            raise Mismatch(f"{name} has a wrong result")
        if request.deadline is not None and request.ended is not None and request.ended > request.deadline:
            raise Mismatch(f"{name} ended well at {request.ended}, behind its deadline, {request.deadline}")
        self._reached[f"exact: {ship.craft.kind}"] += 1

    def _check_missed(self, voyage: Voyage, error: DeadlineMissed, name: str) -> None:
        """It was too late indeed, and was given up soon: with its last job where others stand on its engines."""
        request = voyage.request
        if request.deadline is None or error.cycle <= request.deadline:
            raise Mismatch(f"{name} missed a deadline, {request.deadline}, at cycle {error.cycle}")
        late, allowed = error.cycle - request.deadline, self._allowed(voyage)
        if late > allowed:
            raise Mismatch(f"{name} was found to be too late {late} cycles behind its deadline, not {allowed}")

    def _check_end(self, voyage: Voyage, name: str) -> None:
        """Whatever it ends with, it ends soon after its deadline."""
        request = voyage.request
        assert request.ended is not None and request.deadline is not None
        if (took := request.ended - request.deadline) > 0:
            self._reached["deadline missed alone" if self._alone(voyage) else "deadline missed"] += 1
        if took > (allowed := self._allowed(voyage)):
            raise Mismatch(f"{name} ended {took} cycles behind its deadline, not {allowed}")

    def _allowed(self, voyage: Voyage) -> int:
        """Cycles within which it ends behind its deadline. Bodies that never end have limits of their own, which those
        that wait for an engine to halt wait for, and those that share engines with others."""
        hanging = [
            other for other in self._voyages if other.ship.doom is not None and other.ship.doom.kind == "endless"
        ]
        limits = sum(other is not voyage or not self._alone(voyage) for other in hanging)
        return _SLACK + self._lost * LOOK_AFTER + limits * self._bus.longest

    def _alone(self, voyage: Voyage) -> bool:
        return not any(self._beside(voyage, other) for other in self._voyages)

    @staticmethod
    def _beside(voyage: Voyage, other: Voyage) -> bool:
        """Whether ``other`` may have stood on an engine of ``voyage`` at its deadline."""
        if other is voyage or set(other.ship.model.engines).isdisjoint(voyage.ship.model.engines):
            return False
        begin, end = other.request.arrival, other.request.ended
        return voyage.request.deadline is not None and end is not None and begin < voyage.request.deadline < end

    def _free_bytes(self) -> tuple[int, int]:
        return self._device.dram.free_bytes, self._device.lv2.free_bytes

    def _check_books(self) -> None:
        device = self._device
        if device.suspensions or device.outstanding or device.transferring:
            raise Mismatch("suspended tasks, jobs or copies are left over")
        for ship in self._ships:
            if ship.model.users:
                raise Mismatch(f"{ship.model.users} use {ship.model.name!r}, and have ended")
            device.unload(ship.model)
        dram, lv2 = (before - after for before, after in zip(self._free, self._free_bytes(), strict=True))
        if lv2 or dram > _DRIVERS:
            raise Mismatch(f"{dram} bytes of DRAM and {lv2} of LV2 are not given back")
