"""Decides which layer of which open request goes next, and to which engine. It knows policies, not the backend."""

import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sw.runtime.estimates import Estimates
from sw.runtime.forecast import Forecast
from sw.runtime.layer_graph import LayerGraph
from sw.runtime.policies.contract import AcceleratorState, Candidate, LayerCost, Operator, OrderPolicy, PlacementPolicy
from sw.runtime.policies.idle_time import Idle, idle_times


@dataclass(slots=True)
class LayerChain:
    """Holds the layers of a model, or of a step of one, that are to be scheduled once, each behind those that it reads.
    Larger ``priority`` is more urgent."""

    number: int
    model: str
    arrival: float = 0.0
    priority: int = 0
    deadline: float | None = None
    scheduled: set[int] = field(default_factory=set)
    candidates: dict[int, int] = field(default_factory=dict)  #: what may come next: decisions that took another layer
    committed: deque[int] = field(default_factory=deque)  #: the rest of a block that was decided on

    @property
    def next_layer(self) -> int:
        """Return the first layer that is not scheduled."""
        return min([*self.candidates, *self.committed])


@dataclass(frozen=True, slots=True)
class Decision:
    """Says that ``layer`` of ``request`` goes to the queue of ``engine``. Idle times and start are what is expected."""

    request: LayerChain
    layer: int
    engine: int
    cost: LayerCost
    after: tuple[int, ...]  #: layers of the request that must have ended before compute starts
    idle: Idle
    start: float
    passed_over: int
    candidates: int  #: how many there were to choose from


class PolicyFailed(RuntimeError):
    """Says that a policy raised ``error`` while it decided for ``request``, by number; for the oldest, before it had
    chosen."""

    def __init__(self, request: int, error: Exception) -> None:
        super().__init__(request, error)
        self.request, self.error = request, error

    def __str__(self) -> str:
        frames = traceback.extract_tb(self.error.__traceback__)
        where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
        return f"a policy failed at request {self.request}: {type(self.error).__name__}: {self.error}{where}"


class LayerScheduler:
    """Schedules the layers of open requests by an order policy and a placement policy.

    Candidates are all layers whose inputs are scheduled: of a model with parallel branches, one of each branch.
    ``by_priority``: only those of the most urgent open requests, as preemption needs. ``graphs``: by model, what each
    layer reads; by default the layer before it. A block of layers is one decision: its layers are priced together, and
    those behind the first are what :meth:`decide` gives next (:attr:`committed`). ``holders``: by model, for each layer
    the earlier one that must end before its weights have a place, where models have on-chip memory of their own.
    ``duration``: what a layer adds to the expected time of its engine's queue, from its reference durations; by default
    its compute.
    """

    def __init__(
        self, order: OrderPolicy, placement: PlacementPolicy, forecast: Forecast, estimates: Estimates, *,
        by_priority: bool = False, graphs: Mapping[str, LayerGraph] | None = None,
        holders: Mapping[str, Sequence[int | None]] | None = None,
        duration: Callable[[LayerCost], float] = lambda cost: cost.compute,
    ) -> None:  # fmt: skip
        self._order, self._placement = order, placement
        self._forecast, self._estimates = forecast, estimates
        self._by_priority, self._duration = by_priority, duration
        self._graphs = dict(graphs or {})
        self._holders = {} if holders is None else holders
        self._open: dict[int, LayerChain] = {}
        self._placed: dict[tuple[int, int], tuple[Operator, int]] = {}
        self._deciding = 0  #: the request that a failing policy is to be blamed on

    @property
    def open_requests(self) -> list[LayerChain]:
        """Return the requests with layers that are not scheduled, in order of arrival."""
        return list(self._open.values())

    def open(self, request: LayerChain, graph: LayerGraph | None = None) -> None:
        """Take ``request`` into account from the next decision on. ``graph`` says what the layers of its model read, if
        that is not known yet."""
        if request.model not in self._graphs:
            self._graphs[request.model] = graph or LayerGraph.chain(len(self._estimates.layers(request.model)))
        request.candidates = dict.fromkeys(self._graphs[request.model].first(), 0)
        self._open[request.number] = request

    @property
    def committed(self) -> bool:
        """Return whether the latest decision took several layers, not all of which have been given."""
        return any(request.committed for request in self._open.values())

    def cancel(self, number: int) -> None:
        """Schedule no more layers of request ``number``. Layers already scheduled are the caller's to revoke."""
        self._open.pop(number, None)

    def decide(self, now: float) -> Decision | None:
        """Return the next layer, or None if all layers of all requests are scheduled. Raises :class:`PolicyFailed`."""
        if not self._open:
            return None
        self._deciding = next(iter(self._open))
        try:
            return self._decide(now)
        except Exception as error:
            raise PolicyFailed(self._deciding, error) from error

    def _decide(self, now: float) -> Decision:
        state = self._forecast.state(now)
        for request in self._open.values():
            if request.committed:
                layer = request.committed.popleft()
                passed = request.candidates.pop(layer, 0)
                return self._schedule(state, self._candidate(request, layer, passed, state.access_start), 1)
        candidates = self._candidates(state.access_start)
        chosen = self._order.choose(state, candidates)
        if not isinstance(chosen, Candidate):
            raise TypeError(f"{type(self._order).__name__}.choose must return one of its candidates, not {chosen!r}")
        for candidate in candidates:
            self._open[candidate.request].candidates[candidate.layer] += 1
        request = self._open[chosen.request]
        passed = request.candidates.pop(chosen.layer) - 1  # this decision counts for the others only
        block = self._graphs[request.model].rest_of_block(chosen.layer, request.scheduled)
        if block:  # it was priced as a whole
            request.committed.extend(block)
            chosen = self._candidate(request, chosen.layer, passed, state.access_start)
        if chosen.passed_over != passed:
            chosen = replace(chosen, passed_over=passed)
        return self._schedule(state, chosen, len(candidates))

    def ended(self, request: int, layer: int) -> None:
        """Note that a layer has ended, or was revoked: it is no longer in its queue."""
        self._placement.executed(*self._placed.pop((request, layer)))

    def _candidates(self, begin: float) -> list[Candidate]:
        requests = list(self._open.values())
        if self._by_priority:
            top = max(request.priority for request in requests)
            requests = [request for request in requests if request.priority == top]
        return [
            self._whole_block(request, self._candidate(request, layer, passed, begin))
            for request in requests
            for layer, passed in sorted(request.candidates.items())
        ]

    def _whole_block(self, request: LayerChain, first: Candidate) -> Candidate:
        """Return ``first`` with all that its block needs: later loads can go on while earlier layers compute."""
        block = self._graphs[request.model].rest_of_block(first.layer, request.scheduled)
        if not block:
            return first
        costs = [first.cost, *(self._estimates.layers(request.model)[layer] for layer in block)]
        load, compute = sum(cost.load for cost in costs), sum(cost.compute for cost in costs)
        overlap = min(load - first.cost.load, compute) + first.cost.overlap
        return replace(first, cost=LayerCost(load, compute, max(cost.bytes for cost in costs), overlap), following=())

    def _candidate(self, request: LayerChain, layer: int, passed_over: int, begin: float) -> Candidate:
        """Return the candidate for ``layer``; ``begin`` is when its load could begin if it had room."""
        model, estimates, graph = request.model, self._estimates, self._graphs[request.model]
        layers = estimates.layers(model)
        following = graph.following(layer, request.scheduled, self._order.window - 1)
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
            estimates.remaining(model, min([layer, *request.candidates])),
            passed_over,
            self._forecast.ready((request.number, i) for i in graph.inputs(layer)),
            room=self._forecast.slot(max(begin, held, request.arrival)),
            following=tuple(layers[other] for other in following),
        )

    def _holder(self, model: str, layer: int) -> tuple[int, ...]:
        """Return the earlier layer, if any, that holds the place of the weights of ``layer``."""
        holder = self._holders[model][layer] if model in self._holders else None
        return () if holder is None else (holder,)

    def _schedule(self, state: AcceleratorState, chosen: Candidate, candidates: int) -> Decision:
        request, layer, cost = self._open[chosen.request], chosen.layer, chosen.cost
        self._deciding = request.number
        graph = self._graphs[request.model]
        request.scheduled.add(layer)
        new = [other for other in graph.freed(layer, request.scheduled) if other not in request.committed]
        request.candidates |= dict.fromkeys(new, 0)
        if len(request.scheduled) == len(self._estimates.layers(request.model)):
            del self._open[request.number]
        key, after = (request.number, layer), graph.inputs(layer)
        duration = self._duration(self._estimates.reference(request.model, layer))
        operator = Operator(request.number, layer, duration, state.now, chosen.ready)
        engine = self._placement.place(operator)
        self._placed[key] = operator, engine
        end, room = self._forecast.compute_end(engine), self._forecast.room(engine, cost, chosen.room)
        here = state if state.compute_end == end else replace(state, compute_end=end)
        placed = chosen if chosen.room == room else replace(chosen, room=room)
        room_after = next(((request.number, i) for i in self._holder(request.model, layer)), None)
        inputs, begin = [(request.number, i) for i in after], max(state.now, request.arrival)
        self._forecast.add(key, engine, cost, inputs, room_after, begin)
        self._forecast.state(state.now)
        start = self._forecast.expected_start(key)
        idle = idle_times(here, placed)
        turnaround = self._forecast.turnaround
        idle = idle._replace(compute=max(idle.compute, turnaround) + turnaround * (cost.jobs - 1))
        return Decision(request, layer, engine, cost, after, idle, start, chosen.passed_over, candidates)
