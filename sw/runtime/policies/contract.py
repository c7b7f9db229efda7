"""Defines what a policy is told and what it answers. It never sees the backend: the same object schedules RTL and
simulations.

There are two kinds of decision. *Order*: which layer runs next (:class:`OrderPolicy`). *Placement*: which engine's
queue an operator joins (:class:`PlacementPolicy`). Times are in one unit throughout a run, cycles on the accelerator;
sizes in bytes of the on-chip memory that all models share.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class LayerCost(NamedTuple):
    """Says what a layer needs: time of memory access (all that it moves to and from off-chip memory), time of compute,
    on-chip bytes from the start of its load to the end of its compute."""

    load: float
    compute: float
    bytes: int = 0
    overlap: float = 0.0  #: time for which the layer can compute before its own memory access has ended
    jobs: int = 1  #: places that it takes in the queue of each engine
    streamed: float = 0.0  #: of ``load`` and ``overlap``: what it loads and stores while it computes, not before

    @property
    def ahead(self) -> float:
        """Return the memory access of the layer before it computes."""
        return self.load - self.streamed

    def scaled(self, load: float, compute: float) -> "LayerCost":
        """Return the same layer with other durations."""
        longer = load / self.load if self.load else 0.0
        shorter = min(longer, compute / self.compute if self.compute else 0.0)
        streamed = self.streamed * longer
        overlap = (self.overlap - self.streamed) * shorter + streamed
        return LayerCost(load, compute, self.bytes, overlap, self.jobs, streamed)


class Release(NamedTuple):
    """Describes on-chip bytes that a scheduled layer gives back at ``time``, when its compute ends."""

    time: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """Is the next layer of a model with an open request. Durations are estimates, corrected by measurements."""

    request: int  #: number of the request, in a run time of its step; smaller ones came earlier
    model: str
    layer: int  #: position in the model
    cost: LayerCost
    arrival: float = 0.0
    priority: int = 0  #: larger is more urgent
    deadline: float | None = None
    alone: float = 0.0  #: duration of the whole request when it runs alone
    remaining: float = 0.0  #: of which this layer and all later ones
    passed_over: int = 0  #: decisions that had this layer to choose and took another
    ready: float = 0.0  #: when its inputs will exist
    room: float = 0.0  #: when its model's own part of on-chip memory has room for it, if the model has one
    following: tuple[LayerCost, ...] = ()  #: later layers of the request, at most ``window - 1``
    #: when all its engines have computed what is scheduled there; None: any engine may take it, see ``compute_end``
    free: float | None = None


@dataclass(frozen=True, slots=True)
class AcceleratorState:
    """Describes the accelerator as forecast at ``now``."""

    now: float
    compute_end: float  #: T2: compute of all that is scheduled ends (of several engines: of the one that is free first)
    access_free: float  #: T1: memory access became, or becomes, free
    memory_total: int = 0
    memory_used: int = 0
    releases: tuple[Release, ...] = ()  #: of ``memory_used``, in order of time
    partial: bool = False  #: a load begins as soon as there is some room, and pauses when memory is full

    @property
    def memory_free(self) -> int:
        """Return the bytes that a load can use at once."""
        return self.memory_total - self.memory_used

    @property
    def access_start(self) -> float:
        """Return when the next load can start if memory allows."""
        return max(self.now, self.access_free)

    def load_end(self, begin: float, load: float, size: int) -> float:
        """Return when a load of ``size`` bytes that takes ``load`` has ended if it can begin at ``begin``, its wait for
        room and its pauses included."""
        if not self.partial:
            return max(begin, self.room_at(size)) + load
        time, brought, free = begin, 0, self.memory_free
        for release in self.releases:
            piece = max(0, min(size - brought, free))
            time, brought, free = time + load * piece / size if size else time, brought + piece, free - piece
            if brought == size:
                break
            time, free = max(time, release.time), free + release.bytes
        return time + load * (1 - brought / size if size else 1.0)

    def room_at(self, size: int) -> float:
        """Return when ``size`` bytes are free, which is ``now`` if they are already."""
        lacking = size - self.memory_free
        if lacking <= 0:
            return self.now
        for release in self.releases:
            lacking -= release.bytes
            if lacking <= 0:
                return release.time
        return self.compute_end


@dataclass(frozen=True, slots=True)
class Operator:
    """Is an operator to be placed: its reference duration, and when its inputs will exist. ``inputs``: request and
    layer of the operators whose results it reads."""

    request: int
    layer: int
    duration: float
    now: float = 0.0
    ready: float = 0.0
    inputs: tuple[tuple[int, int], ...] = ()


class OrderPolicy(Protocol):
    """Decides which layer runs next. ``window`` is how many of each model's next layers it looks at. ``yields``: how
    many layers of each set of other engines may begin while one waits so that the path to memory is free for those that
    take longer (see :func:`sw.runtime.memory_share.may_join`); 0: it never waits for other engines."""

    window: int = 1
    yields: int = 0

    def choose(self, state: AcceleratorState, candidates: Sequence[Candidate]) -> Candidate:
        """Return one of ``candidates``; there is at least one. Called each time a scheduled layer starts."""
        ...


class PlacementPolicy(Protocol):
    """Decides which queue an operator joins."""

    def place(self, operator: Operator) -> int:
        """Return the number of the queue that ``operator`` joins from now on."""
        ...

    def executed(self, operator: Operator, queue: int) -> None:
        """Hear that ``operator`` has left ``queue`` because it ran or was cancelled, for policies that keep count."""
