"""Forecasts when what is scheduled will load and compute: the accelerator state that policies decide by, kept from what
is known.

Known are the estimated durations of scheduled layers, corrected by what the hardware's counters measured, and when each
of them in fact began and ended so far."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from sw.runtime.policies.contract import AcceleratorState, LayerCost, Release


class Estimates:
    """Holds the costs of all layers of all models, by name of the model.

    ``gain``: how far a measurement moves an estimate, 1 replaces it. 0 keeps the estimates as they were.
    """

    def __init__(self, models: Mapping[str, Sequence[LayerCost]], gain: float = 0.5) -> None:
        if not 0 <= gain <= 1:
            raise ValueError(f"gain must be 0 to 1, not {gain}")
        self._costs = {name: list(layers) for name, layers in models.items()}
        self._reference = {name: tuple(layers) for name, layers in models.items()}
        self._remaining: dict[str, list[float]] = {}
        self._unmeasured: dict[str, dict[int, tuple[str, LayerCost]]] = {}
        self._gain = gain

    def add(self, model: str, layers: Sequence[LayerCost], kinds: Sequence[str] = ()) -> None:
        """Add a model that was not known; one that was keeps what has been measured. ``kinds``: the operators of each
        layer, of a model that was never measured. Layers of one kind and one cost are alike: what is measured of one is
        expected of the others until they have run themselves."""
        if model not in self._costs:
            self._costs[model], self._reference[model] = list(layers), tuple(layers)
            self._unmeasured[model] = dict(enumerate(zip(kinds, layers, strict=False)))

    def reference(self, model: str, layer: int) -> LayerCost:
        """Return the reference durations of a layer (of **Queue-time balancing**): as stored, whatever was measured
        since."""
        return self._reference[model][layer]

    def layers(self, model: str) -> Sequence[LayerCost]:
        """Return the costs of all layers of ``model``."""
        return self._costs[model]

    def remaining(self, model: str, layer: int) -> float:
        """Return the duration of ``layer`` and all later ones when ``model`` runs alone: of memory access or of
        compute, whichever is longer, as they overlap."""
        if model not in self._remaining:
            layers = self._costs[model]
            loads = accumulate(cost.load for cost in reversed(layers))
            computes = accumulate(cost.compute for cost in reversed(layers))
            self._remaining[model] = [0.0, *map(max, loads, computes)][::-1]
        return self._remaining[model][layer]

    def correct(self, model: str, layer: int, *, load: float | None = None, compute: float | None = None) -> None:
        """Take a measured duration into account."""
        old = self._costs[model][layer]
        self._costs[model][layer] = old.scaled(
            old.load if load is None else old.load + self._gain * (load - old.load),
            old.compute if compute is None else old.compute + self._gain * (compute - old.compute),
        )
        self._expect_alike(model, layer)
        self._remaining.pop(model, None)

    def _expect_alike(self, model: str, layer: int) -> None:
        """Expect of layers like ``layer`` that have not run what is expected of it."""
        unmeasured = self._unmeasured.get(model, {})
        if (mine := unmeasured.pop(layer, None)) is not None:
            for other in [other for other, its in unmeasured.items() if its == mine]:
                self._costs[model][other] = self._costs[model][layer]


Key = tuple[int, int]  #: request and layer


@dataclass(slots=True)
class _Entry:
    engines: Sequence[int]
    cost: LayerCost
    after: tuple[Key, ...]
    room_after: Key | None = None
    added: float | None = 0.0  #: it cannot have begun to load before; None: not before now
    load_start: float | None = None  #: measured, as are the next two
    load_end: float | None = None
    start: float | None = None
    expected_load_end: float = 0.0
    expected_start: float = 0.0
    expected_end: float = 0.0
    parked: float | None = None  #: since when its request is suspended

    def unpark(self, now: float) -> None:
        """Go on: what has begun has as much to do as it had."""
        if self.parked is not None:
            away, self.parked = now - self.parked, None
            self.start = None if self.start is None else self.start + away
            self.load_start = None if self.load_start is None else self.load_start + away

    def left_to_stream(self, now: float) -> float:
        """Return the memory access of the layer's compute that is still to come."""
        done = 0.0 if self.start is None or not self.cost.compute else (now - self.start) / self.cost.compute
        return self.cost.streamed * (1.0 - min(1.0, max(0.0, done)))


class Forecast:
    """Holds layers that are scheduled and have not ended, in the order of scheduling: one path for memory access,
    ``engines`` that compute, each layer on one or several, ``memory`` bytes on chip. ``slots`` bounds the jobs of an
    engine that have begun to load and not ended; None for any number. With ``partial`` loads begin before all of their
    room is free. ``resident`` is the bytes on chip that are taken whatever is scheduled."""

    def __init__(self, engines: int, memory: int, slots: int | None = None, partial: bool = False) -> None:
        self._memory, self._slots, self._partial = memory, slots, partial
        self.resident = 0
        self.turnaround = 0.0  #: time that an engine takes from one job to the next
        self._job_ends: list[list[float]] = [[] for _ in range(engines)]
        self._entries: dict[Key, _Entry] = {}
        self._engine_free = [0.0] * engines
        self._expected_free = list(self._engine_free)
        self._access_free = 0.0

    def add(
        self,
        key: Key,
        engines: Sequence[int],
        cost: LayerCost,
        after: Iterable[Key] = (),
        room_after: Key | None = None,
        now: float = 0.0,
    ) -> None:
        """Add ``key``, which is scheduled ``now`` behind all others, to compute on all of ``engines`` when the layers
        ``after`` have ended. ``room_after`` is the layer whose end gives it the place of its weights."""
        self._entries[key] = _Entry(engines, cost, tuple(after), room_after, now)

    def drop(self, key: Key) -> None:
        """Remove a layer that was scheduled and will not run."""
        self._entries.pop(key, None)

    def park(self, number: int, now: float) -> None:
        """Leave the layers of request ``number`` out from now on, as it is suspended."""
        for key, entry in self._entries.items():
            if key[0] == number:
                entry.parked = now

    def unpark(self, number: int, now: float) -> None:
        """Take the layers of request ``number`` in again."""
        for key, entry in self._entries.items():
            if key[0] == number:
                entry.unpark(now)

    def load_started(self, key: Key, time: float) -> None:
        """Enter the measured time at which the load of a layer began."""
        self._entries[key].load_start = time

    def load_ended(self, key: Key, time: float) -> None:
        """Enter the measured time at which the load of a layer ended."""
        self._entries[key].load_end = time
        self._access_free = max(self._access_free, time)

    def load_noticed(self, key: Key, since: float, time: float) -> None:
        """Enter that the load of a layer ended between ``since`` and ``time``; when exactly is taken from the
        forecast."""
        entry = self._entries[key]
        if entry.load_end is None:
            entry.load_end = min(time, max(since, entry.expected_load_end))

    def rolled_back(self, key: Key) -> None:
        """Enter that the load of a layer counts for nothing and will be done again."""
        entry = self._entries[key]
        entry.added = entry.load_start = entry.load_end = None

    def started(self, key: Key, time: float) -> None:
        """Enter the measured time at which compute of a layer began."""
        self._entries[key].start = time

    def ended(self, key: Key, time: float) -> None:
        """Enter the measured time at which a layer ended, and forget the layer."""
        for engine in self._entries.pop(key).engines:
            self._engine_free[engine] = time

    def compute_end(self, engines: Iterable[int]) -> float:
        """Return when all of ``engines`` have computed all that is scheduled there, as of the last :meth:`state`."""
        return max((self._expected_free[engine] for engine in engines), default=0.0)

    def expected_start(self, key: Key) -> float:
        """Return when compute of ``key`` starts, as of the last :meth:`state`."""
        return self._entries[key].expected_start

    def ready(self, keys: Iterable[Key]) -> float:
        """Return when all of ``keys`` will have ended, as of the last :meth:`state`."""
        ends = [self._entries[key].expected_end for key in keys if key in self._entries]
        return max(ends) if ends else 0.0

    def slot(self, begin: float, engines: Collection[int] = ()) -> float:
        """Return from when a job that could load from ``begin`` on has a slot, on each of ``engines``, or without any
        on the engine that has one first, as of the last :meth:`state`."""
        if engines:
            return begin + max(self._slot_wait(engine, 1, 0.0, begin) for engine in engines)
        return begin + min(self._slot_wait(engine, 1, 0.0, begin) for engine in range(len(self._job_ends)))

    def room(self, engines: Iterable[int], cost: LayerCost, begin: float) -> float:
        """Return from when a layer on ``engines`` could load in one go and still be loaded as early as it can, if the
        first of its jobs may begin at ``begin``: each job waits for a slot."""
        if not cost.ahead:
            return begin
        return begin + max(self._slot_wait(engine, cost.jobs, cost.ahead, begin) for engine in engines)

    def state(self, now: float, of: Iterable[int] | None = None) -> AcceleratorState:
        """Return the state at ``now``, all scheduled layers included. Its compute is that of the engines ``of``, by
        default of all."""
        access, engines = self._access_free, list(self._engine_free)
        self._expected_free = engines
        self._job_ends = [[] for _ in engines]
        releases: list[Release] = []
        used = self.resident
        for entry in self._entries.values():
            if entry.parked is not None:
                continue
            loaded = self._load_end(entry, now, access, used, releases)
            entry.expected_load_end = loaded
            access = max(access, loaded)
            if left := entry.left_to_stream(now):
                access = max(access, now) + left
            if entry.start is None:
                can_start = loaded - (entry.cost.overlap - entry.cost.streamed)
                free = max(engines[engine] for engine in entry.engines) + self.turnaround
                entry.expected_start = max(now, can_start, free, self.ready(entry.after))
            else:
                entry.expected_start = entry.start
            spent = entry.cost.compute + self.turnaround * (entry.cost.jobs - 1)
            entry.expected_end = max(now, entry.expected_start + spent)
            for engine in entry.engines:
                engines[engine] = entry.expected_end
            self._queue_jobs(entry)
            used += entry.cost.bytes
            releases.append(Release(entry.expected_end, entry.cost.bytes))
        first = min(engines if of is None else (engines[engine] for engine in of))
        return self._state(now, first, access, used, releases)

    def _state(self, now: float, end: float, access: float, used: int, releases: list[Release]) -> AcceleratorState:
        return AcceleratorState(now, end, access, self._memory, used, tuple(sorted(releases)), self._partial)

    def _queue_jobs(self, entry: _Entry) -> None:
        """Enter the ends of the jobs of a layer, which end one after the other."""
        jobs, each = entry.cost.jobs, entry.cost.compute / entry.cost.jobs
        for engine in entry.engines:
            self._job_ends[engine] += [entry.expected_end - each * left for left in reversed(range(jobs))]

    def _slot_wait(self, engine: int, jobs: int, load: float, begin: float) -> float:
        """Return how long ``jobs`` that come next to ``engine`` and can load from ``begin`` on wait for slots."""
        if self._slots is None:
            return 0.0
        ends, waited = self._job_ends[engine], 0.0
        for job in range(jobs):
            holder = len(ends) + job - self._slots
            if 0 <= holder < len(ends):
                waited = max(waited, ends[holder] - begin - job * load / jobs)
        return waited

    def _load_end(self, entry: _Entry, now: float, access: float, used: int, releases: list[Release]) -> float:
        if entry.load_end is not None:
            return entry.load_end
        if entry.load_start is not None:
            return max(now, entry.load_start + entry.cost.ahead)
        place = 0.0 if entry.room_after is None else self.ready([entry.room_after])
        begin = max(now if entry.added is None else entry.added, access, place)
        if entry.cost.bytes > self._memory - used:
            end = max((r.time for r in releases), default=now)
            ahead = entry.cost.ahead
            begin = self._state(now, end, access, used, releases).load_end(begin, ahead, entry.cost.bytes) - ahead
        return max(now, self.room(entry.engines, entry.cost, begin) + entry.cost.ahead)
