"""Decides which layer of which open request goes next, and to which engine. It knows policies and what layers read, not
the backend."""

import traceback
from collections import deque
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sw.runtime.engine_sets import Engines, apart, meet
from sw.runtime.forecast import Estimates, Forecast
from sw.runtime.layer_graph import LayerGraph
from sw.runtime.policies.contract import AcceleratorState, Candidate, LayerCost, Operator, OrderPolicy, PlacementPolicy
from sw.runtime.policies.idle_time import Idle, idle_times


@dataclass(slots=True)
class LayerChain:
    """Holds the layers of a model, or of a step of one, that are to be scheduled once, each behind those that it reads.
    Larger ``priority`` is more urgent. ``engines``: those that run each layer together; without any, each layer runs
    on one that a placement policy chooses."""

    number: int
    model: str
    arrival: float = 0.0
    priority: int = 0
    deadline: float | None = None
    engines: Engines = frozenset()
    scheduled: set[int] = field(default_factory=set)
    candidates: dict[int, int] = field(default_factory=dict)  #: what may come next: decisions that took another layer
    committed: deque[int] = field(default_factory=deque)  #: the rest of a block that was decided on
    parked: bool = False  #: no layer is next, as its request is suspended
    yielded: int = 0  #: layers on other engines that began since one of its own did

    def meets(self, other: "LayerChain") -> bool:
        """Return whether an engine may run layers of both."""
        return meet(self.engines, other.engines)

    @property
    def next_layer(self) -> int:
        """Return the first layer that is not scheduled."""
        return min([*self.candidates, *self.committed])


@dataclass(frozen=True, slots=True)
class Decision:
    """Says that ``layer`` of ``chain`` goes to the queue of ``engine``. Idle times and start are what is expected."""

    chain: LayerChain
    layer: int
    engine: int
    cost: LayerCost
    after: tuple[int, ...]  #: layers of the chain that must have ended before compute starts
    idle: Idle
    start: float
    passed_over: int
    candidates: int  #: how many there were to choose from

    key: tuple[int, int] = field(init=False)  #: names the layer: the number of its chain, and its own

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", (self.chain.number, self.layer))


class PolicyFailed(RuntimeError):
    """Says that a policy raised ``error`` while it decided for ``chain``; for the oldest, before it had chosen."""

    def __init__(self, chain: LayerChain, error: Exception) -> None:
        super().__init__(chain, error)
        self.chain, self.error = chain, error

    def __str__(self) -> str:
        frames = traceback.extract_tb(self.error.__traceback__)
        where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
        return f"a policy failed: {type(self.error).__name__}: {self.error}{where}"


class LayerScheduler:
    """Schedules the layers of open requests by an order policy and a placement policy.

    Candidates are all layers whose inputs are scheduled: of a model with parallel branches, one of each branch.
    ``by_priority``: only those of the most urgent open requests, as preemption needs. ``graphs``: by model, what each
    layer reads; by default the layer before it. A block of layers is one decision: its layers are priced together, and
    those behind the first are what :meth:`decide` gives next (:attr:`committed`). ``holders``: by model, for each layer
    the earlier one that must end before its weights have a place, where models have on-chip memory of their own.
    ``duration``: what a layer adds to the expected time of its engine's queue, from its reference durations; by default
    its compute. Whoever executes the layers, a device or the synthetic machine, reports when they load and compute:
    forecast and estimates are kept by that.
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

    @property
    def open_chains(self) -> list[LayerChain]:
        """Return the chains with layers that are not scheduled, in order of arrival, without those that are parked."""
        return [chain for chain in self._open.values() if not chain.parked]

    def open(self, chain: LayerChain, graph: LayerGraph | None = None) -> None:
        """Take ``request`` into account from the next decision on. ``graph`` says what the layers of its model read, if
        that is not known yet."""
        if chain.model not in self._graphs:
            self._graphs[chain.model] = graph or LayerGraph.chain(len(self._estimates.layers(chain.model)))
        chain.candidates = dict.fromkeys(self._graphs[chain.model].first(), 0)
        self._open[chain.number] = chain

    @property
    def committed(self) -> bool:
        """Return whether the latest decision took several layers, not all of which have been given."""
        return any(chain.committed for chain in self.open_chains)

    @property
    def yields(self) -> int:
        """Return how often a layer may wait for one on other engines, see ``OrderPolicy``."""
        return getattr(self._order, "yields", 0)

    def remaining(self, numbers: Container[int], side_by_side: int) -> float:
        """Return the cycles that layers of these chains take that are not scheduled yet, ``side_by_side`` at a time on
        engines that several chains use."""
        chains = [chain for number, chain in self._open.items() if number in numbers and not chain.parked]
        sums = [
            [self._estimates.remaining(chain.model, chain.next_layer) for chain in one]
            for one in apart(chains, lambda chain: chain.engines)
        ]
        return max((max(sum(chains) / side_by_side, *chains) for chains in sums), default=0.0)

    def park(self, chain: LayerChain, now: float) -> None:
        """Schedule no layer of ``chain`` for now; those that were are on no engine."""
        self._forecast.park(chain.number, now)
        chain.parked = True

    def unpark(self, chain: LayerChain, now: float) -> None:
        """Go on with ``chain``."""
        self._forecast.unpark(chain.number, now)
        chain.parked = False

    def cancel(self, number: int) -> None:
        """Schedule no more layers of chain ``number``. Layers already scheduled are the caller's to revoke."""
        self._open.pop(number, None)

    def decide(self, now: float, among: Sequence[LayerChain] | None = None) -> Decision | None:
        """Return the next layer, of one of the open chains ``among`` (default: all), or None if all layers of all
        requests are scheduled. Raises :class:`PolicyFailed`."""
        chains = self.open_chains if among is None else among
        if not chains:
            return None
        self._deciding = chains[0]  # on whom a failing policy is to be blamed
        try:
            return self._decide(now, chains)
        except Exception as error:
            raise PolicyFailed(self._deciding, error) from error

    def _decide(self, now: float, chains: Sequence[LayerChain]) -> Decision:
        state = self._forecast.state(now, frozenset().union(*(chain.engines for chain in chains)) or None)
        for chain in self.open_chains:
            if chain.committed:
                layer = chain.committed.popleft()
                passed = chain.candidates.pop(layer, 0)
                return self._schedule(state, self._candidate(chain, layer, passed, state.access_start), 1)
        candidates = self._candidates(state.access_start, chains)
        chosen = self._order.choose(state, candidates)
        if not isinstance(chosen, Candidate):
            raise TypeError(f"{type(self._order).__name__}.choose must return one of its candidates, not {chosen!r}")
        chain = self._open[chosen.request]
        for candidate in candidates:
            if (other := self._open[candidate.request]).meets(chain):
                other.candidates[candidate.layer] += 1
        passed = chain.candidates.pop(chosen.layer) - 1  # this decision counts for the others only
        block = self._graphs[chain.model].rest_of_block(chosen.layer, chain.scheduled)
        if block:  # it was priced as a whole
            chain.committed.extend(block)
            chosen = self._candidate(chain, chosen.layer, passed, state.access_start)
        if chosen.passed_over != passed:
            chosen = replace(chosen, passed_over=passed)
        return self._schedule(state, chosen, len(candidates))

    def _candidates(self, begin: float, chains: Sequence[LayerChain]) -> list[Candidate]:
        if self._by_priority:
            top = max(chain.priority for chain in chains)
            chains = [chain for chain in chains if chain.priority == top]
        return [
            self._whole_block(chain, self._candidate(chain, layer, passed, begin))
            for chain in chains
            for layer, passed in sorted(chain.candidates.items())
        ]

    def _whole_block(self, chain: LayerChain, first: Candidate) -> Candidate:
        """Return ``first`` with all that its block needs: later loads can go on while earlier layers compute."""
        block = self._graphs[chain.model].rest_of_block(first.layer, chain.scheduled)
        if not block:
            return first
        costs = [first.cost, *(self._estimates.layers(chain.model)[layer] for layer in block)]
        load, compute = sum(cost.load for cost in costs), sum(cost.compute for cost in costs)
        overlap = min(load - first.cost.load, compute) + first.cost.overlap
        return replace(first, cost=LayerCost(load, compute, max(cost.bytes for cost in costs), overlap), following=())

    def _candidate(self, chain: LayerChain, layer: int, passed_over: int, begin: float) -> Candidate:
        """Return the candidate for ``layer``; ``begin`` is when its load could begin if it had room."""
        model, estimates, graph = chain.model, self._estimates, self._graphs[chain.model]
        layers = estimates.layers(model)
        following = graph.following(layer, chain.scheduled, self._order.window - 1)
        held = self._forecast.ready((chain.number, i) for i in self._holder(model, layer))
        return Candidate(
            chain.number,
            model,
            layer,
            layers[layer],
            chain.arrival,
            chain.priority,
            chain.deadline,
            estimates.remaining(model, 0),
            estimates.remaining(model, min([layer, *chain.candidates])),
            passed_over,
            self._forecast.ready((chain.number, i) for i in graph.inputs(layer)),
            room=self._forecast.slot(max(begin, held, chain.arrival), chain.engines),
            following=tuple(layers[other] for other in following),
            free=self._forecast.compute_end(chain.engines) if chain.engines else None,
        )

    def _holder(self, model: str, layer: int) -> tuple[int, ...]:
        """Return the earlier layer, if any, that holds the place of the weights of ``layer``."""
        holder = self._holders[model][layer] if model in self._holders else None
        return () if holder is None else (holder,)

    def _schedule(self, state: AcceleratorState, chosen: Candidate, candidates: int) -> Decision:
        chain, layer, cost = self._open[chosen.request], chosen.layer, chosen.cost
        self._deciding, chain.yielded = chain, 0
        for other in self._open.values():
            other.yielded += not other.meets(chain)
        graph = self._graphs[chain.model]
        chain.scheduled.add(layer)
        new = [other for other in graph.freed(layer, chain.scheduled) if other not in chain.committed]
        chain.candidates |= dict.fromkeys(new, 0)
        if len(chain.scheduled) == len(self._estimates.layers(chain.model)):
            del self._open[chain.number]
        key, after = (chain.number, layer), graph.inputs(layer)
        duration = self._duration(self._estimates.reference(chain.model, layer))
        operator = Operator(
            chain.number, layer, duration, state.now, chosen.ready, tuple((chain.number, i) for i in after)
        )
        engine = self._placement.place(operator)
        self._placed[key] = operator, engine
        engines = tuple(chain.engines) or (engine,)
        end, room = self._forecast.compute_end(engines), self._forecast.room(engines, cost, chosen.room)
        here = state if state.compute_end == end else replace(state, compute_end=end)
        placed = chosen if chosen.room == room else replace(chosen, room=room)
        room_after = next(((chain.number, i) for i in self._holder(chain.model, layer)), None)
        inputs, begin = [(chain.number, i) for i in after], max(state.now, chain.arrival)
        self._forecast.add(key, engines, cost, inputs, room_after, begin)
        self._forecast.state(state.now)
        start = self._forecast.expected_start(key)
        idle = idle_times(here, placed)
        turnaround = self._forecast.turnaround
        idle = idle._replace(compute=max(idle.compute, turnaround) + turnaround * (cost.jobs - 1))
        return Decision(chain, layer, engine, cost, after, idle, start, chosen.passed_over, candidates)

    # -- what whoever executes the layers reports ---------------------------------------------------------------
    def load_started(self, layer: Decision, time: float) -> None:
        """Note that the load of ``layer`` began."""
        self._forecast.load_started(layer.key, time)

    def load_ended(self, layer: Decision, time: float, load: float | None = None) -> None:
        """Note that the load of ``layer`` ended; it took ``load``, if that is known."""
        self._forecast.load_ended(layer.key, time)
        self._correct(layer, load, None)

    def load_noticed(self, layer: Decision, since: float, time: float) -> None:
        """Note that the load of ``layer`` ended between ``since`` and ``time``."""
        self._forecast.load_noticed(layer.key, since, time)

    def rolled_back(self, layer: Decision) -> None:
        """Note that ``layer`` will be loaded again."""
        self._forecast.rolled_back(layer.key)

    def started(self, layer: Decision, time: float) -> None:
        """Note that compute of ``layer`` began."""
        self._forecast.started(layer.key, time)

    def ended(self, layer: Decision, time: float, *, load: float | None = None, compute: float | None = None) -> None:
        """Note that ``layer`` has ended, after so much memory access and compute, if that is known."""
        self._forecast.ended(layer.key, time)
        self._leave(layer)
        self._correct(layer, load, compute)

    def dropped(self, layer: Decision) -> None:
        """Note that ``layer``, which was in its queue, will not run."""
        self._forecast.drop(layer.key)
        self._leave(layer)

    def _leave(self, layer: Decision) -> None:
        self._placement.executed(*self._placed.pop(layer.key))

    def _correct(self, layer: Decision, load: float | None, compute: float | None) -> None:
        if load is not None or compute is not None:
            self._estimates.correct(layer.chain.model, layer.layer, load=load, compute=compute)
