"""A device on which guests come and go, and what is asked of all of them: nobody finds bytes of another tenant, and
nobody loses a byte that its table calls live."""

import itertools
import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.trust.differential import Mismatch
from benchmarks.trust.fleet import PARAMS
from benchmarks.trust.guests import Guest, Style
from benchmarks.trust.watched_bus import WatchedBus
from hw.contract.isa import Segment
from sw.driver import Device, LoadedModel, NotSuspendable, OutOfMemory
from sw.runtime import DeadlineMissed, Mechanism, Request, Runtime

TENANTS = (None, "a", "b", "c")  #: the number of each is its place here and one more
VISIT = 90_000  #: cycles that a guest takes when it is alone, and some more
_PATIENCE = 3_000_000  #: cycles within which a few of them have ended, whatever happens
_CALLS = 40_000


@dataclass(eq=False)
class Room:
    """A guest that is loaded."""

    guest: Guest
    model: LoadedModel

    def __str__(self) -> str:
        return f"guest of tenant {self.model.tenant!r}"


@dataclass(frozen=True)
class Call:
    """A request: who, how urgent, how many cycles from now, and how many more it may take (0: any)."""

    room: Room
    priority: int = 0
    arrival: int = 0
    within: int = 0


class House:
    """Guests on one device. Raises ``Mismatch``, ``Overdue``."""

    def __init__(self, rng: random.Random, bus: WatchedBus, reached: Counter[str]) -> None:
        self._rng, self.bus, self._reached = rng, bus, reached
        self.device = Device(bus)
        self.rooms: list[Room] = []
        self.full = False  #: DRAM may be too small for what a guest needs once it runs

    def move_in(
        self, tenant: str | None, windows: tuple[int, int], style: Style = Style.PLAIN, engine: int | None = None
    ) -> Room:
        """Load a new guest."""
        return self._load(Guest(self._rng, PARAMS, TENANTS.index(tenant) + 1, windows, style), tenant, engine)

    def move_in_beside(self, room: Room) -> Room:
        """Load a guest once more, at the same place in LV2."""
        twin = self._load(room.guest, room.model.tenant)
        twin.model.move_windows(*(base for base, _ in room.model.lv2_parts()))
        return twin

    def _load(self, guest: Guest, tenant: str | None, engine: int | None = None) -> Room:
        """Nothing in its DRAM is of others; then it leaves something there."""
        keeps = guest.style is Style.KEEPER
        number = int(self._rng.random() < 0.25) if engine is None else engine
        model = self.device.load(guest.image(), [number], tenant=tenant, keep_weights=keeps)
        room = Room(guest, model)
        for segment in (Segment.SCRATCH, Segment.SHARED):
            found = np.frombuffer(self.bus.read_mem(*model.segments[segment], charge=False), np.uint8)
            strange = (found >> 4 != 0) & (found >> 4 != guest.tenant) & (found >> 4 <= len(TENANTS))
            if strange.any():
                raise Mismatch(f"{room} finds {int(strange.sum())} bytes of others in DRAM segment {segment}")
        self._reached["DRAM read"] += 1
        base, size = model.segments[Segment.SHARED]
        self.bus.write_mem(base, guest.pattern.tobytes()[:size], charge=False)
        self.rooms.append(room)
        return room

    def move_out(self, room: Room) -> None:
        """Unload a guest."""
        self.device.unload(room.model)
        self.rooms.remove(room)

    def visit(self, calls: Sequence[Call], *, suspend: bool = True, switches: float = math.inf) -> list[Request]:
        """Run requests, and check what the guests found, and what is left of what was theirs. ``switches``: to more
        urgent ones that are decided on; further ones wait."""
        bus = self.bus
        rule = Mechanism.DUMP if suspend else Mechanism.KILL
        decisions = itertools.count()
        runtime = Runtime(
            self.device, preemptive=True, may_kill=not suspend,
            rule=lambda situation: rule if next(decisions) < switches else Mechanism.WAIT,
        )  # fmt: skip
        now = bus.cycle
        bus.last, bus.calls = now + _PATIENCE, _CALLS
        requests = [
            runtime.submit(
                call.room.model, {"in": call.room.guest.inputs}, priority=call.priority, arrival=now + call.arrival,
                deadline=now + call.arrival + call.within if call.within else None,
            )
            for call in calls
        ]  # fmt: skip
        runtime.run_until_done()
        for call, request in zip(calls, requests, strict=True):
            self._check(call, request)
        return requests

    def _check(self, call: Call, request: Request) -> None:
        error, room = request.exception(), call.room
        if error is not None:
            if isinstance(error, DeadlineMissed) and call.within:
                self._reached["reset"] += 1
            elif isinstance(error, OutOfMemory) and self.full:
                self._reached["out of memory"] += 1
            elif isinstance(error, NotSuspendable) and room.guest.style in (Style.FULL, Style.ASTRAY):
                self._reached["dump refused"] += 1
            else:
                raise Mismatch(f"{room} ended with {error!r}")
            return
        looks = room.guest.found(self.bus.read_mem(*room.model.segments[Segment.SCRATCH], charge=False))
        for when, look in zip(("at its start", "behind its points"), looks, strict=True):
            if complaint := look.foreign(room.guest.tenant):
                raise Mismatch(f"{room} finds, {when}, {complaint}")
        if complaint := room.guest.missing(looks[0]):
            raise Mismatch(f"{room} finds, at its start, that {complaint}")
        if complaint := room.guest.lost(looks[1]):
            raise Mismatch(f"{room}, suspended {request.preempted} times: {complaint}")
        self._reached["looks"] += 1
        self._reached["looks of one that came back"] += bool(request.preempted)
