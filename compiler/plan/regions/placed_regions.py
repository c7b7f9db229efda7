"""Which layers of a placed model become one step: layers that one engine computes side by side, while other engines
compute others."""

from collections.abc import Callable, Iterator, Sequence, Set

import networkx as nx

from compiler.plan.regions.queue_schedule import QueuedStep, by_critical_path, makespan

Members = tuple[int, ...]  #: numbers of the layers of a step, in rising order
_ROUNDS = 4  #: times that all pairs of steps are looked at, at most


class LayerGrouping:
    """Holds the steps of layers with these ``edges``, makers and readers of a result, which are numbered in a
    topological order. ``cycles``: of layers as one step on one engine; infinite if they cannot be one."""

    def __init__(
        self, layers: int, edges: Set[tuple[int, int]], cycles: Callable[[Members], float], engines: int
    ) -> None:  # fmt: skip
        self._edges, self._cycles, self._engines = edges, cycles, engines
        self.steps: list[Members] = [(layer,) for layer in range(layers)]

    def merge(self, most: int, over: Callable[[], bool]) -> None:
        """Join steps to regions of at most ``most`` layers with cycles, wherever queues end sooner then or engines have
        less to do in all, until nothing is gained or time is ``over``."""
        best = self._price(self.steps)
        for _ in range(_ROUNDS):
            before = best
            for joined in [*self._candidates()]:
                if over() or sum(self._cycles((layer,)) > 0 for layer in joined) > most:
                    continue
                whole = [step for step in self.steps if not joined.issuperset(step)]
                if sum(map(len, whole)) + len(joined) == sum(map(len, self.steps)):
                    steps = [*whole, tuple(sorted(joined))]
                    price = self._price(steps)
                    if price < best:
                        self.steps, best = steps, price
            if best == before:
                break

    def dissolve(self, region: Members) -> None:
        """Let the members of ``region`` be steps of their own."""
        self.steps = [step for step in self.steps if step != region] + [(layer,) for layer in region]

    def flow(self, steps: Sequence[Members] | None = None) -> "nx.DiGraph":
        """Return ``steps``, by default those that are held, and which of them read which."""
        steps = self.steps if steps is None else steps
        of = {layer: step for step in steps for layer in step}
        flow: nx.DiGraph = nx.DiGraph()
        flow.add_nodes_from(sorted(steps))
        flow.add_edges_from((of[a], of[b]) for a, b in sorted(self._edges) if of[a] != of[b])
        return flow

    def queued(self, flow: "nx.DiGraph") -> dict[int, QueuedStep]:
        """Return the steps of ``flow`` as they are queued, numbered in a topological order."""
        number = {step: i for i, step in enumerate(nx.lexicographical_topological_sort(flow))}
        return {
            i: QueuedStep(self._cycles(step), tuple(sorted(number[other] for other in flow.predecessors(step))))
            for step, i in number.items()
        }

    def _price(self, steps: Sequence[Members]) -> float:
        """Return the cycles until all queues have ended, and what an engine has to do on average."""
        if any(self._cycles(step) == float("inf") for step in steps):
            return float("inf")
        flow = self.flow(steps)
        if not nx.is_directed_acyclic_graph(flow):
            return float("inf")
        queued = self.queued(flow)
        ends = makespan(queued, by_critical_path(queued, self._engines), self._engines)
        return ends + sum(step.cycles for step in queued.values()) / self._engines

    def _candidates(self) -> Iterator[frozenset[int]]:
        """Yield the layers of two steps each of which one reads the other, or which read or are read by the same, with
        the layers without cycles that lie between them."""
        flow, seen = self.flow(), set[frozenset[int]]()
        idle = {step for step in flow if not self._cycles(step)}
        for step in [one for one in flow if one not in idle]:
            behind = _reached(flow, step, idle)
            beside = {other for maker in flow.predecessors(step) for other in flow.successors(maker)}
            beside |= {other for reader in flow.successors(step) for other in flow.predecessors(reader)}
            found = [frozenset((*step, *other)) for other in sorted(beside - idle - {step})]
            for other in sorted(behind - idle):
                ahead = _reached(flow.reverse(copy=False), other, idle)
                between = behind & ahead & idle
                found.append(frozenset((*step, *other, *(layer for one in between for layer in one))))
            for joined in found:
                if joined not in seen:
                    seen.add(joined)
                    yield joined


def _reached(flow: "nx.DiGraph", step: Members, idle: Set[Members]) -> set[Members]:
    """Return the steps that ``flow`` leads to from ``step`` with idle ones alone between."""
    found, left = set[Members](), [step]
    while left:
        for other in flow.successors(left.pop()):
            if other not in found:
                found.add(other)
                left += [other] if other in idle else []
    return found
