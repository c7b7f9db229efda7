"""Nothing of one tenant is left for another: guests that read every byte of the chip take turns in all ways there are.

One after the other, one suspended for another, and again, one aborted so that its engine is reset, one unloaded and
another loaded in its place.
"""

import random
from collections import Counter
from collections.abc import Callable

from benchmarks.trust.fleet import PARAMS
from benchmarks.trust.guest_house import TENANTS, VISIT, Call, House
from benchmarks.trust.under_test import open_device
from benchmarks.trust.watched_bus import WatchedBus, judged
from hw.contract.bus import HostCosts

_GUESTS = 3
_TURNS = 3
_WINDOWS = ((4096, 3001), (8192, 0), (20_000, 4096), (4097, 40_000), (60_000, 60_000), (131_000, 0))


class ResidueCampaign:
    """Every round has a device of its own."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self.reached: Counter[str] = Counter()
        open_device(PARAMS, backend).close()  # so that it is built

    def close(self) -> None:
        """Nothing is kept between rounds."""

    def round(self, seed: int) -> str:
        """A few turns of a few guests. Raises ``Mismatch``."""
        rng = random.Random(seed)
        bus = WatchedBus(open_device(PARAMS, self._backend, HostCosts()), self.reached)
        try:
            with judged():
                return self._turns(rng, House(rng, bus, self.reached))
        finally:
            bus.close()

    def _turns(self, rng: random.Random, house: House) -> str:
        for tenant in rng.sample(TENANTS, _GUESTS):
            house.move_in(tenant, rng.choice(_WINDOWS))
        turns: list[Callable[[random.Random, House], str]] = [self._alone, self._suspended, self._suspended]
        turns += [self._aborted, self._replaced]
        return ", ".join(rng.choice(turns)(rng, house) for _ in range(_TURNS))

    def _alone(self, rng: random.Random, house: House) -> str:
        house.visit([Call(rng.choice(house.rooms))])
        self.reached["after another"] += 1
        return "job"

    def _suspended(self, rng: random.Random, house: House) -> str:
        rooms = rng.sample(house.rooms, rng.choice((2, 2, 3)))
        arrivals = [0, *(rng.randrange(10_000, VISIT // 2) * turn for turn in range(1, len(rooms)))]
        requests = house.visit(
            [Call(room, turn, arrival) for turn, (room, arrival) in enumerate(zip(rooms, arrivals, strict=True))],
            suspend=rng.random() < 0.9,
        )
        self.reached["suspended"] += any(request.preempted for request in requests)
        return "suspension"

    def _aborted(self, rng: random.Random, house: House) -> str:
        house.visit([Call(rng.choice(house.rooms), within=rng.randrange(5000, VISIT // 2))])
        return "abort"

    def _replaced(self, rng: random.Random, house: House) -> str:
        room = rng.choice(house.rooms)
        house.visit([Call(room)])
        house.move_out(room)
        others = [tenant for tenant in TENANTS if tenant != room.model.tenant]
        house.visit([Call(house.move_in(rng.choice(others), room.guest.windows))])
        self.reached["after an unload"] += 1
        return "unload"
