"""What no order can beat: a quick bound, and an exact one by constraint programming, the yardstick of the search."""

import math
from typing import Any

from benchmarks.order_search.price import ChipModel
from compiler import LowerBound, OperatorNode, OrderGraph, members

UNITS = ("load", "matrix", "vector")
SCALE = 64  #: of the solver's integers, per cycle; durations are rounded down, which keeps the bound one


class NoSolverError(RuntimeError):
    """The constraint solver is not installed; says how to get it."""


def quick_bound(graph: OrderGraph, chip: ChipModel) -> float:
    """Return the longest chain of operators, and for each unit all its work with the least that comes before and after
    it."""
    if not len(graph):
        return 0.0
    first, ended = _unhindered(graph, chip.tile)
    tails = _tails(graph, chip.tile)
    bound = max(ended)
    for unit in UNITS:
        users = [number for number, node in enumerate(graph.operators) if getattr(node, unit)]
        if users:
            work = sum(getattr(graph.operators[number], unit) for number in users)
            head = min(_head(graph, first, chip.tile, number, unit) for number in users)
            tail = min(_after(graph.operators[number], chip.tile, unit) + tails[number] for number in users)
            bound = max(bound, head + work + tail)
    return bound


def exact_bound(graph: OrderGraph, chip: ChipModel, seconds: float = 10.0, workers: int = 1) -> LowerBound:
    """Return the smallest price of any order, where nothing is spilled, ``chip.window`` is 1 and loads may run ahead as
    far as they like; otherwise a bound, as these only make orders cost more. After ``seconds`` the bound reached so
    far. Raises :class:`NoSolverError`."""
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise NoSolverError(
            "the exact bound of an order search needs the constraint solver ortools: make setup, or "
            "pip install 'caesura-npu[dev]'"
        ) from None
    model = _Model(cp_model, graph, chip)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = workers
    status = solver.solve(model.model)
    bound = solver.best_objective_bound / SCALE
    return LowerBound(max(bound, quick_bound(graph, chip)), status == cp_model.OPTIMAL)


class _Model:
    """The orders of a graph as a constraint problem. A maximum in the price is a pair of inequalities here: for each
    order the least solution is its price, so the least over all orders is the optimum."""

    def __init__(self, cp_model: Any, graph: OrderGraph, chip: ChipModel) -> None:
        self._graph, self._chip = graph, chip
        self.model = cp_model.CpModel()
        total = sum(node.load + node.matrix + node.vector for node in graph.operators)
        self._horizon = math.ceil(total * SCALE) + 1
        self._begin: list[dict[str, Any]] = []
        self._end: list[dict[str, Any]] = []
        self._first: list[Any] = []  # linear expressions: first tile and last tile of the result
        self._last: list[Any] = []
        self._issue: list[Any] = []
        for number, node in enumerate(graph.operators):
            self._operator(number, node)
        self._ordered()
        makespan = self._time("makespan")
        for number in graph.source:
            self.model.add(makespan >= self._last[number])
            for end in self._end[number].values():
                self.model.add(makespan >= end)
        self.model.minimize(makespan)

    def _time(self, name: str) -> Any:
        return self.model.new_int_var(0, self._horizon, name)

    def _operator(self, number: int, node: OperatorNode) -> None:
        begin, end = {}, {}
        there, complete = [0], [0]  # lower bounds of the first and last tile of what the next unit needs
        for producer in members(self._graph.predecessors[number]):
            there.append(self._first[producer])
            complete.append(self._last[producer])
        if node.load:
            begin["load"] = self._time(f"load {number}")
            end["load"] = begin["load"] + _scaled(node.load)
            there.append(begin["load"] + _scaled(self._chip.tile * node.load))
            complete.append(end["load"])
        issue = self._time(f"issue {number}")
        self._not_before(issue, there)
        there = [issue]
        for unit in ("matrix", "vector"):
            cycles = getattr(node, unit)
            if not cycles:
                continue
            begin[unit] = issue if not there[1:] and there[0] is issue else self._time(f"{unit} {number}")
            end[unit] = self._time(f"{unit} end {number}")
            self._not_before(begin[unit], there)
            tile = _scaled(self._chip.tile * cycles)
            self._not_before(end[unit], [begin[unit] + _scaled(cycles), *(last + tile for last in complete)])
            there, complete = [begin[unit] + tile], [end[unit]]
        first, last = self._time(f"first {number}"), self._time(f"last {number}")
        self._not_before(first, there)
        self._not_before(last, [*complete, first])
        self._begin.append(begin)
        self._end.append(end)
        self._issue.append(issue)
        self._first.append(first)
        self._last.append(last)

    def _ordered(self) -> None:
        """One order for all units: who is issued first comes first on every unit that both use."""
        graph, model = self._graph, self.model
        place = [model.new_int_var(0, len(graph) - 1, f"place {number}") for number in graph.source]
        model.add_all_different(place)
        for one in graph.source:
            for other in range(one + 1, len(graph)):
                if (graph.descendants[one] >> other) & 1:
                    self._before(place, one, other, None)
                else:
                    earlier = model.new_bool_var(f"{one} before {other}")
                    self._before(place, one, other, earlier)
                    self._before(place, other, one, ~earlier)

    def _before(self, place: list[Any], one: int, other: int, condition: Any) -> None:
        constraints = [self.model.add(place[one] + 1 <= place[other])]
        if self._chip.window == 1:
            constraints.append(self.model.add(self._issue[one] <= self._issue[other]))
        for unit in self._begin[one].keys() & self._begin[other].keys():
            constraints.append(self.model.add(self._end[one][unit] <= self._begin[other][unit]))
        for constraint in constraints if condition is not None else []:
            constraint.only_enforce_if(condition)

    def _not_before(self, time: Any, bounds: list[Any]) -> None:
        for bound in bounds:
            if bound is not time:
                self.model.add(time >= bound)


def _scaled(cycles: float) -> int:
    return math.floor(cycles * SCALE)


def _unhindered(graph: OrderGraph, tile: float) -> tuple[list[float], list[float]]:
    """By operator its first and last tile if no unit were ever taken."""
    first, ended = [0.0] * len(graph), [0.0] * len(graph)
    for number, node in enumerate(graph.operators):
        producers = list(members(graph.predecessors[number]))
        there = max((first[producer] for producer in producers), default=0.0)
        complete = max((ended[producer] for producer in producers), default=0.0)
        there, complete = max(there, tile * node.load), max(complete, node.load)
        for cycles in (node.matrix, node.vector):
            complete = max(there + cycles, complete + tile * cycles) if cycles else complete
            there += tile * cycles
        first[number], ended[number] = there, complete
    return first, ended


def _head(graph: OrderGraph, first: list[float], tile: float, number: int, unit: str) -> float:
    """Return when ``unit`` may begin with an operator at the earliest."""
    if unit == "load":
        return 0.0
    node = graph.operators[number]
    there = max((first[producer] for producer in members(graph.predecessors[number])), default=0.0)
    there = max(there, tile * node.load)
    return there + (tile * node.matrix if unit == "vector" else 0.0)


def _after(node: OperatorNode, tile: float, unit: str) -> float:
    """Return the least that follows inside an operator when ``unit`` has ended."""
    later = UNITS[UNITS.index(unit) + 1 :]
    return tile * sum(getattr(node, other) for other in later)


def _tails(graph: OrderGraph, tile: float) -> list[float]:
    """By operator the least that follows when it has ended: the last tiles of a chain of readers."""
    tails = [0.0] * len(graph)
    for number in reversed(graph.source):
        for reader in members(graph.successors[number]):
            node = graph.operators[reader]
            tails[number] = max(tails[number], tile * (node.matrix + node.vector) + tails[reader])
    return tails
