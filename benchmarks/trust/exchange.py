"""Suspended tasks come back as they were: guests with live tables of every shape displace each other, one within the
other, in memories that are full or nearly so; and no byte of DRAM changes that nobody was given."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Self
from unittest.mock import patch

import numpy as np

from benchmarks.trust.differential import Mismatch
from benchmarks.trust.fleet import PARAMS
from benchmarks.trust.guest_house import TENANTS, VISIT, Call, House, Room
from benchmarks.trust.guests import Style
from benchmarks.trust.under_test import open_device
from benchmarks.trust.watched_bus import WatchedBus, judged
from hw.contract.bus import HostCosts
from hw.contract.params import KIB
from sw.driver import Allocator

_CANARY = 0xC3
_SPARE = (16 * KIB, 40 * KIB, 100 * KIB, 200 * KIB)  #: bytes of DRAM that are left where it is nearly full
_LV2 = PARAMS.lv2_bytes
_ALL = (4096, _LV2 - 4096)  #: windows that leave nothing to others


class ExchangeCampaign:
    """Every round has a device of its own."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self.reached: Counter[str] = Counter()
        open_device(PARAMS, backend).close()  # so that it is built

    def close(self) -> None:
        """Nothing is kept between rounds."""

    def round(self, seed: int) -> str:
        """Two or three guests, each more urgent than the one before. Raises ``Mismatch``."""
        rng = random.Random(seed)
        costs = rng.choice((HostCosts(), HostCosts.free()))
        bus = WatchedBus(open_device(PARAMS, self._backend, costs), self.reached)
        bus.write_mem(0, bytes([_CANARY]) * PARAMS.dram_bytes, charge=False)
        try:
            with judged(), _Given(bus) as given:
                told = self._exchange(rng, House(rng, bus, self.reached))
                given.check()
            return told
        finally:
            bus.close()

    def _exchange(self, rng: random.Random, house: House) -> str:
        one = rng.choice(TENANTS)
        scene = rng.random()
        if scene < 0.3:
            scenes = (self._passed_through, self._brought_back, self._refused)
            return scenes[int(scene * 10)](rng, house, one)
        count = rng.choice((2, 2, 3))
        if scene < 0.5:
            self._at_home(house, one, count)
        else:
            for _ in range(count):
                tenant = one if rng.random() < 0.6 else rng.choice(TENANTS)
                house.move_in(tenant, self._windows(rng), Style.FULL if rng.random() < 0.1 else Style.PLAIN)
        spare = rng.choice(_SPARE) if rng.random() < 0.3 else None
        if spare is not None:
            house.device.dram.allocate(max(1, house.device.dram.largest_block - spare), 1, "what others have")
            house.full = True
            self.reached["DRAM nearly full"] += 1
        return self._displace(rng, house, house.rooms)

    def _at_home(self, house: House, tenant: str | None, count: int) -> None:
        """All of LV2 is the tenant's: nothing is cleared, and nothing else waits, when one displaces the other."""
        for _ in range(count):
            house.move_in(tenant, _ALL, Style.SPREAD)
        house.visit([Call(house.rooms[0])])
        self.reached["all of LV2 is live"] += 1

    def _passed_through(self, rng: random.Random, house: House, tenant: str | None) -> str:
        """What others have elsewhere passes through weights that stay on its way back."""
        keeper = house.move_in(tenant, (4096, rng.randrange(_LV2 // 2, _LV2 - 32 * KIB)), Style.KEEPER)
        house.visit([Call(keeper)])
        other = tenant if rng.random() < 0.8 else rng.choice(TENANTS)
        rooms = [house.move_in(other, self._small(rng)) for _ in range(2)]
        told = self._displace(rng, house, rooms)
        house.visit([Call(keeper)])
        self.reached["weights stayed"] += 1
        return told

    def _brought_back(self, rng: random.Random, house: House, tenant: str | None) -> str:
        """Weights that stay are those of two, of whom one brings back something else, as its table says."""
        size = rng.randrange(8 * KIB, 32 * KIB)
        keeper = house.move_in(tenant, (_LV2 - size, size), Style.KEEPER)
        twin = house.move_in_beside(keeper)
        house.visit([Call(keeper)])
        told = self._displace(rng, house, [keeper, twin])
        house.visit([Call(twin)])
        self.reached["weights of two"] += 1
        return told

    def _refused(self, rng: random.Random, house: House, tenant: str | None) -> str:
        """One cannot be suspended, and the one beside it goes on."""
        rooms = [
            house.move_in(tenant, self._small(rng), style, engine)
            for engine, style in enumerate((Style.ASTRAY, Style.PLAIN))
        ]
        urgent = house.move_in(tenant, self._small(rng))
        house.visit([Call(room) for room in rooms])
        arrival = rng.randrange(10_000, VISIT // 2)
        requests = house.visit([*map(Call, rooms), Call(urgent, 1, arrival)], switches=1)
        return "refused" if requests[0].exception() else "not refused"

    @staticmethod
    def _small(rng: random.Random) -> tuple[int, int]:
        return 4096, rng.choice((0, 3001))

    def _displace(self, rng: random.Random, house: House, rooms: Sequence[Room]) -> str:
        """Each comes while the one before, which is less urgent, is there."""
        arrivals = [0, *(rng.randrange(10_000, VISIT // 2) * turn for turn in range(1, len(rooms)))]
        calls = [Call(room, turn, arrival) for turn, (room, arrival) in enumerate(zip(rooms, arrivals, strict=True))]
        requests = house.visit(calls)
        self.reached["nested"] += sum(request.preempted > 0 for request in requests) > 1
        return f"{sum(request.preempted for request in requests)} suspensions"

    @staticmethod
    def _windows(rng: random.Random) -> tuple[int, int]:
        first = rng.choice((4096, 4097, 20_011, _LV2 // 2, _LV2 - 4096))
        return first, rng.choice((0, 1, 3001, min(40_000, _LV2 - first), _LV2 - first - 64))


class _Given:
    """Which bytes of DRAM the driver's allocator has given to anybody while this lasted, seen by a spy."""

    def __init__(self, bus: WatchedBus) -> None:
        self._bus = bus
        self._taken = np.zeros(PARAMS.dram_bytes, bool)

    def __enter__(self) -> Self:
        allocate, taken = Allocator.allocate, self._taken

        def spy(allocator: Allocator, size: int, align: int = 1, purpose: str = "data") -> int:
            address = allocate(allocator, size, align, purpose)
            if allocator.what == "DRAM":
                taken[address : address + size] = True
            return address

        self._undo = patch.object(Allocator, "allocate", spy)
        self._undo.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._undo.stop()

    def check(self) -> None:
        """Raises ``Mismatch``."""
        now = np.frombuffer(self._bus.read_mem(0, PARAMS.dram_bytes, charge=False), np.uint8)
        changed = (now != _CANARY) & ~self._taken
        if changed.any():
            raise Mismatch(f"byte {int(changed.argmax()):#x} of DRAM was given to nobody, and has changed")
