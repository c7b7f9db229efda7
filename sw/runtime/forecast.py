"""When what is scheduled will load and compute: the accelerator state that policies decide by, kept from what is known.

Known are the estimated durations of scheduled layers, and when each of them in fact began and ended so far.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from sw.runtime.policies.contract import AcceleratorState, LayerCost, Release

Key = tuple[int, int]  #: request and layer


@dataclass(slots=True)
class _Entry:
    engine: int
    cost: LayerCost
    after: tuple[Key, ...]
    room_after: Key | None = None
    load_start: float | None = None  #: measured, as are the next two
    load_end: float | None = None
    start: float | None = None
    expected_start: float = 0.0
    expected_end: float = 0.0


class Forecast:
    """Layers that are scheduled and have not ended, in the order of scheduling: one path for memory access, ``engines``
    that compute, ``memory`` bytes on chip."""

    def __init__(self, engines: int, memory: int) -> None:
        self._memory = memory
        self._entries: dict[Key, _Entry] = {}
        self._engine_free = [0.0] * engines
        self._expected_free = list(self._engine_free)
        self._access_free = 0.0

    def add(
        self, key: Key, engine: int, cost: LayerCost, after: Iterable[Key] = (), room_after: Key | None = None
    ) -> None:
        """``key`` is scheduled behind all others, to compute when the layers ``after`` have ended. ``room_after``: the
        layer whose end gives it the place of its weights."""
        self._entries[key] = _Entry(engine, cost, tuple(after), room_after)

    def drop(self, key: Key) -> None:
        """A layer that was scheduled will not run."""
        self._entries.pop(key, None)

    def load_started(self, key: Key, time: float) -> None:
        """Measured."""
        self._entries[key].load_start = time

    def load_ended(self, key: Key, time: float) -> None:
        """Measured."""
        self._entries[key].load_end = time
        self._access_free = max(self._access_free, time)

    def load_noticed(self, key: Key, time: float) -> None:
        """Its load had ended by ``time``; when exactly is not known."""
        if self._entries[key].load_end is None:
            self._entries[key].load_end = time

    def rolled_back(self, key: Key) -> None:
        """Its load counts for nothing and will be done again."""
        self._entries[key].load_start = self._entries[key].load_end = None

    def started(self, key: Key, time: float) -> None:
        """Measured."""
        self._entries[key].start = time

    def ended(self, key: Key, time: float) -> None:
        """Measured; the layer is forgotten."""
        entry = self._entries.pop(key)
        self._engine_free[entry.engine] = time

    def compute_end(self, engine: int) -> float:
        """When ``engine`` has computed all that is scheduled there, as of the last :meth:`state`."""
        return self._expected_free[engine]

    def expected_start(self, key: Key) -> float:
        """When compute of ``key`` starts, as of the last :meth:`state`."""
        return self._entries[key].expected_start

    def ready(self, keys: Iterable[Key]) -> float:
        """When all of ``keys`` will have ended, as of the last :meth:`state`."""
        return max((self._entries[key].expected_end for key in keys if key in self._entries), default=0.0)

    def state(self, now: float) -> AcceleratorState:
        """The state at ``now``, all scheduled layers included."""
        access, engines = self._access_free, list(self._engine_free)
        self._expected_free = engines
        releases: list[Release] = []
        used = 0
        for entry in self._entries.values():
            loaded = self._load_end(entry, now, access, used, releases)
            access = max(access, loaded)
            if entry.start is None:
                can_start = loaded - entry.cost.overlap
                entry.expected_start = max(now, can_start, engines[entry.engine], self.ready(entry.after))
            else:
                entry.expected_start = entry.start
            entry.expected_end = engines[entry.engine] = max(now, entry.expected_start + entry.cost.compute)
            used += entry.cost.bytes
            releases.append(Release(entry.expected_end, entry.cost.bytes))
        return AcceleratorState(now, min(engines), access, self._memory, used, tuple(sorted(releases)))

    def _load_end(self, entry: _Entry, now: float, access: float, used: int, releases: list[Release]) -> float:
        if entry.load_end is not None:
            return entry.load_end
        if entry.load_start is not None:
            return max(now, entry.load_start + entry.cost.load)
        earlier = AcceleratorState(now, max((r.time for r in releases), default=now), access, self._memory, used)
        if entry.cost.bytes > earlier.memory_free:
            earlier = AcceleratorState(now, earlier.compute_end, access, self._memory, used, tuple(sorted(releases)))
        place = self.ready([] if entry.room_after is None else [entry.room_after])
        return max(now, access, place, earlier.room_at(entry.cost.bytes)) + entry.cost.load
