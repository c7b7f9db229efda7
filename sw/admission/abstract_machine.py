"""Runs requests of streams on a machine that takes exactly the cycles which the response-time analysis counts with.

Each request holds all engines of its stream from its start to its end, but while it is suspended. A more urgent one
reserves its engines as soon as no other that is at least as urgent has any of them; who stands there stops at its next
cancellation point and is dumped. One CPU computes steps of all streams in the order in which they come. So the machine
shows how near to its bounds an analysis is, and what it forgets: a request that takes longer than the bound refutes it.
"""

import heapq
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import cycle

from sw.admission.streams import RequestStream, WorkPiece


@dataclass(frozen=True)
class Arrival:
    """Says when a request is due, and when it is released."""

    due: int
    released: int


@dataclass(frozen=True)
class ServedRequest:
    """Says when a request of a stream was due, and when it ended."""

    stream: str
    due: int
    end: int

    @property
    def response(self) -> int:
        """Return the cycles from when it was due."""
        return self.end - self.due


class _Phase(Enum):
    WAITING = auto()
    STARTING = auto()
    COMPUTING = auto()
    ON_CPU = auto()
    REFILLING = auto()
    DUMPING = auto()
    SUSPENDED = auto()
    RESTORING = auto()


_AWAY = (_Phase.WAITING, _Phase.SUSPENDED)  #: in which a request has no engines


@dataclass(eq=False)
class _Request:
    """Is a request on the machine. ``place``: of its next piece. ``owes``: cycles of refill that it has to do yet."""

    stream: RequestStream
    arrival: Arrival
    pieces: Sequence[WorkPiece]
    phase: _Phase = _Phase.WAITING
    place: int = 0
    owes: int = 0
    dump: int = 0
    paused: bool = False
    step_queued: bool = False
    step_ended: bool = False
    due_event: int = -1  #: number of the event that ends its phase

    def key(self) -> tuple[int, bool, bool, int, str]:
        """Return what requests are served by: the most urgent first, of equals those that have begun."""
        waiting = self.phase is _Phase.WAITING
        return -self.stream.priority, self.phase in _AWAY, waiting, self.arrival.released, self.stream.name


def program(stream: RequestStream) -> tuple[WorkPiece, ...]:
    """Return pieces of ``stream`` that together take what its analysis counts with, the one that holds engines longest
    among them and the last as long as its tail."""
    if stream.execution is None:
        return stream.pieces
    left, result = stream.execution - stream.uninterrupted, list[WorkPiece]()
    first = max(range(len(stream.pieces)), key=lambda i: stream.pieces[i].held + stream.pieces[i].dump)
    for piece in cycle([*stream.pieces[first:], *stream.pieces[:first]]):
        if left <= 0:
            break
        result.append(WorkPiece(min(left, max(1, piece.cycles)), piece.dump, piece.on_cpu))
        left -= result[-1].cycles
    return (*result, WorkPiece(stream.uninterrupted))


class AbstractMachine:
    """Serves requests of ``streams``: ``arrivals`` by name of the stream, in order of release.

    ``section``: cycles for which the host looks at nothing that is released. ``instants`` are the cycles at which
    something began or ended, by its kind, for the search for worst phases.
    """

    def __init__(
        self, streams: Sequence[RequestStream], arrivals: Mapping[str, Sequence[Arrival]], section: int = 0
    ) -> None:
        self.now, self.instants, self.served = 0, defaultdict[str, list[int]](list), list[ServedRequest]()
        self._queues: dict[str, deque[_Request]] = {stream.name: deque() for stream in streams}
        self._cpu: deque[_Request] = deque()
        self._events: list[tuple[int, int, int, _Request]] = []
        self._count = 0
        for stream in streams:
            pieces = program(stream)
            for arrival in arrivals.get(stream.name, ()):
                self._at(arrival.released + section, _Request(stream, arrival, pieces), order=1)

    def run(self) -> list[ServedRequest]:
        """Serve all requests, and return how each fared in the order of their ends."""
        while self._events:
            self.now, order, number, request = heapq.heappop(self._events)
            if order == 1:
                self._queues[request.stream.name].append(request)
            elif order == 0 and number == request.due_event:
                self._go_on(request)
            elif order == -1:
                self._end_step(request)
            self._dispatch()
        return self.served

    def _at(self, cycle: int, request: _Request, order: int = 0) -> None:
        self._count += 1
        heapq.heappush(self._events, (cycle, order, self._count, request))

    def _enter(self, request: _Request, phase: _Phase, cycles: int | None) -> None:
        """Let ``request`` be in ``phase`` for ``cycles``, or until something else happens."""
        request.phase, request.due_event = phase, -1
        self.instants[phase.name].append(self.now)
        if cycles is not None:
            self._at(self.now + cycles, request)
            request.due_event = self._count

    # -- who has engines ---------------------------------------------------------------------------------------
    def _active(self) -> list[_Request]:
        return sorted((queue[0] for queue in self._queues.values() if queue), key=_Request.key)

    def _dispatch(self) -> None:
        """Give engines to the most urgent requests, and ask those that stand in their way to stop."""
        active = self._active()
        taken: set[int] = set()
        for place, request in enumerate(active):
            free = taken.isdisjoint(request.stream.engines)
            if request.phase not in _AWAY:
                request.paused = not free
                if request.paused and request.phase in (_Phase.ON_CPU, _Phase.REFILLING):
                    self._enter(request, _Phase.DUMPING, request.dump)
            elif not free:
                continue
            elif not any(other.stream.engines & request.stream.engines for other in self._holding(active[place + 1 :])):
                self._begin(request)
            taken |= request.stream.engines

    @staticmethod
    def _holding(requests: Sequence[_Request]) -> Iterator[_Request]:
        return (request for request in requests if request.phase not in _AWAY)

    def _begin(self, request: _Request) -> None:
        request.paused = False
        if request.phase is _Phase.WAITING:
            self._enter(request, _Phase.STARTING, request.stream.start)
        else:
            request.owes = request.stream.refill
            self._enter(request, _Phase.RESTORING, request.stream.restore)

    # -- what a request does -----------------------------------------------------------------------------------
    def _go_on(self, request: _Request) -> None:
        """Go on with ``request``, whose phase has ended."""
        if request.phase is _Phase.DUMPING:
            self._enter(request, _Phase.SUSPENDED, None)
        elif request.phase is _Phase.COMPUTING:
            self._end_piece(request)
        else:
            if request.phase is _Phase.REFILLING:
                request.owes = 0
            self._next_piece(request)

    def _next_piece(self, request: _Request) -> None:
        piece = request.pieces[request.place]
        if not piece.on_cpu:
            self._enter(request, _Phase.COMPUTING, piece.cycles)
            return
        request.dump = piece.dump
        self._enter(request, _Phase.ON_CPU, None)
        if request.step_ended:
            self._end_piece(request)
        elif not request.step_queued:
            request.step_queued = True
            self._cpu.append(request)
            if len(self._cpu) == 1:
                self._at(self.now + piece.cycles, request, order=-1)

    def _end_piece(self, request: _Request) -> None:
        request.dump = request.pieces[request.place].dump
        request.place += 1
        request.step_queued = request.step_ended = False
        if request.place == len(request.pieces):
            self._queues[request.stream.name].popleft()
            self.instants["ENDED"].append(self.now)
            self.served.append(ServedRequest(request.stream.name, request.arrival.due, self.now))
        elif request.paused:
            self._enter(request, _Phase.DUMPING, request.dump)
        elif request.owes:
            self._enter(request, _Phase.REFILLING, request.owes)
        else:
            self._next_piece(request)

    def _end_step(self, request: _Request) -> None:
        """End the step on the CPU that ``request`` has there, and begin the next one."""
        self._cpu.popleft()
        request.step_ended = True
        if self._cpu:
            following = self._cpu[0]
            self._at(self.now + following.pieces[following.place].cycles, following, order=-1)
        if request.phase is _Phase.ON_CPU:
            self._end_piece(request)
