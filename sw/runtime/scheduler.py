"""Decides which layer of which open request goes next, and to which engine. Knows policies, not the backend."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sw.runtime.estimates import Estimates
from sw.runtime.forecast import Forecast
from sw.runtime.policies.contract import AcceleratorState, Candidate, LayerCost, Operator, OrderPolicy, PlacementPolicy
from sw.runtime.policies.idle_time import Idle, idle_times

Inputs = Sequence[Sequence[int]]  #: of each layer of a model: the earlier layers whose outputs it reads


@dataclass(slots=True)
class LayerChain:
    """The layers of a model, or of a step of one, that are to be scheduled once, in order. Larger ``priority`` is more
    urgent."""

    number: int
    model: str
    arrival: float = 0.0
    priority: int = 0
    deadline: float | None = None
    next_layer: int = field(default=0)  #: the first that is not scheduled
    passed_over: int = field(default=0)  #: decisions since ``next_layer`` became a candidate


@dataclass(frozen=True, slots=True)
class Decision:
    """``layer`` of ``request`` goes to the queue of ``engine``. Idle times and start are what is expected."""

    request: LayerChain
    layer: int
    engine: int
    cost: LayerCost
    after: tuple[int, ...]  #: earlier layers of the request that must have ended before compute starts
    idle: Idle
    start: float
    passed_over: int
    candidates: int  #: how many there were to choose from


class LayerScheduler:
    """Open requests, an order policy and a placement policy.

    ``by_priority``: only the most urgent open requests are candidates, as preemption needs. ``inputs``: by model,
    what each layer depends on; by default the layer before it. ``holders``: by model, for each layer the earlier one
    that must end before its weights have a place, where models have on-chip memory of their own. ``duration``: what a
    layer adds to the expected time of its engine's queue, from its reference durations; by default its compute.
    """

    def __init__(
        self, order: OrderPolicy, placement: PlacementPolicy, forecast: Forecast, estimates: Estimates, *,
        by_priority: bool = False, inputs: Mapping[str, Inputs] | None = None,
        holders: Mapping[str, Sequence[int | None]] | None = None,
        duration: Callable[[LayerCost], float] = lambda cost: cost.compute,
    ) -> None:  # fmt: skip
        self._order, self._placement = order, placement
        self._forecast, self._estimates = forecast, estimates
        self._by_priority, self._inputs, self._duration = by_priority, inputs or {}, duration
        self._holders = {} if holders is None else holders
        self._open: dict[int, LayerChain] = {}
        self._placed: dict[tuple[int, int], tuple[Operator, int]] = {}

    @property
    def open_requests(self) -> list[LayerChain]:
        """Requests with layers that are not scheduled, in order of arrival."""
        return list(self._open.values())

    def open(self, request: LayerChain) -> None:
        """Take ``request`` into account from the next decision on."""
        self._open[request.number] = request

    def cancel(self, number: int) -> None:
        """Schedule no more layers of request ``number``. Layers already scheduled are the caller's to revoke."""
        self._open.pop(number, None)

    def decide(self, now: float) -> Decision | None:
        """The next layer; None if all layers of all requests are scheduled."""
        if not self._open:
            return None
        state = self._forecast.state(now)
        candidates = self._candidates(state.access_start)
        chosen = self._order.choose(state, candidates)
        for candidate in candidates:
            self._open[candidate.request].passed_over += 1
        return self._schedule(state, chosen, len(candidates))

    def ended(self, request: int, layer: int) -> None:
        """A layer has ended, or was revoked: it is no longer in its queue."""
        self._placement.executed(*self._placed.pop((request, layer)))

    def _candidates(self, begin: float) -> list[Candidate]:
        requests = list(self._open.values())
        if self._by_priority:
            top = max(request.priority for request in requests)
            requests = [request for request in requests if request.priority == top]
        return [self._candidate(request, begin) for request in requests]

    def _candidate(self, request: LayerChain, begin: float) -> Candidate:
        """``begin``: when its load could begin if it had room."""
        model, layer, estimates = request.model, request.next_layer, self._estimates
        layers = estimates.layers(model)
        held = self._forecast.ready((request.number, i) for i in self._holder(model, layer))
        return Candidate(
            request.number,
            model,
            layer,
            layers[layer],
            request.arrival,
            request.priority,
            request.deadline,
            estimates.remaining(model, 0),
            estimates.remaining(model, layer),
            request.passed_over,
            self._forecast.ready((request.number, i) for i in self._after(model, layer)),
            room=self._forecast.slot(max(begin, held, request.arrival)),
            following=tuple(layers[layer + 1 : layer + self._order.window]),
        )

    def _after(self, model: str, layer: int) -> tuple[int, ...]:
        if model in self._inputs:
            return tuple(self._inputs[model][layer])
        return (layer - 1,) if layer else ()

    def _holder(self, model: str, layer: int) -> tuple[int, ...]:
        """The earlier layer, if any, that holds the place of the weights of ``layer``."""
        holder = self._holders[model][layer] if model in self._holders else None
        return () if holder is None else (holder,)

    def _schedule(self, state: AcceleratorState, chosen: Candidate, candidates: int) -> Decision:
        request, layer, cost = self._open[chosen.request], chosen.layer, chosen.cost
        passed_over = request.passed_over - 1  # this decision counts for the others only
        request.next_layer, request.passed_over = layer + 1, 0
        if request.next_layer == len(self._estimates.layers(request.model)):
            del self._open[request.number]
        key, after = (request.number, layer), self._after(request.model, layer)
        duration = self._duration(self._estimates.reference(request.model, layer))
        operator = Operator(request.number, layer, duration, state.now, chosen.ready)
        engine = self._placement.place(operator)
        self._placed[key] = operator, engine
        here = replace(state, compute_end=self._forecast.compute_end(engine))
        placed = replace(chosen, room=self._forecast.room(engine, cost, chosen.room))
        room_after = next(((request.number, i) for i in self._holder(request.model, layer)), None)
        inputs, begin = [(request.number, i) for i in after], max(state.now, request.arrival)
        self._forecast.add(key, engine, cost, inputs, room_after, begin)
        self._forecast.state(state.now)
        start = self._forecast.expected_start(key)
        idle = idle_times(here, placed)
        turnaround = self._forecast.turnaround
        idle = idle._replace(compute=max(idle.compute, turnaround) + turnaround * (cost.jobs - 1))
        return Decision(request, layer, engine, cost, after, idle, start, passed_over, candidates)
