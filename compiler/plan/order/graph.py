"""What the order search sees of a model: operators with their times on the units and their bytes, and the flow of data.

Operators are numbered in a topological order, the *source order*. A set of operators is a bit mask: bit i for operator
i.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import networkx as nx

MANY = 160  #: operators of a graph beyond which searches look at fewer orders, so that they take about as long
Order = tuple[int, ...]  #: numbers of operators, each once, in the order in which they are issued


class Price(Protocol):
    """Says what an order costs. The search needs no more, so a compiled program or a measurement can be a price too."""

    def __call__(self, order: Order) -> float:
        """Cycles; less is better. ``order`` is a topological order of the graph that the price is for."""


@dataclass(frozen=True)
class OperatorNode:
    """An operator as work: cycles on the load, matrix and vector unit, bytes of its result, and bytes of parameters,
    which are on chip while it runs. A reader finds the whole result in one tensor."""

    name: str
    kind: str = ""
    load: float = 0.0
    matrix: float = 0.0
    vector: float = 0.0
    out_bytes: int = 0
    param_bytes: int = 0

    @property
    def cycles(self) -> float:
        """Of its busiest unit."""
        return max(self.load, self.matrix, self.vector)


@dataclass(frozen=True)
class HeldTensor:
    """A tensor that is on chip before the first operator runs. ``survives``: it is needed after the last one, too."""

    size: int  #: bytes
    readers: frozenset[int] = frozenset()
    survives: bool = False


@dataclass(frozen=True)
class OrderGraph:
    """Holds operators and the flow of data between them: ``edges`` are (producer, reader). The results of ``kept``
    operators are needed after the last operator. ValueError if an edge does not lead from a lower number to a
    higher."""

    name: str
    operators: tuple[OperatorNode, ...]
    edges: frozenset[tuple[int, int]]
    held: tuple[HeldTensor, ...] = ()
    kept: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        for producer, reader in self.edges:
            if not 0 <= producer < reader < len(self.operators):
                raise ValueError(
                    f"graph {self.name!r}: edge {producer} -> {reader} is not from an earlier to a later of "
                    f"{len(self.operators)} operators; number them in a topological order"
                )

    def __len__(self) -> int:
        return len(self.operators)

    @property
    def source(self) -> Order:
        """Return the source order."""
        return tuple(range(len(self)))

    @property
    def everything(self) -> int:
        """Return all operators, as a mask."""
        return (1 << len(self)) - 1

    @cached_property
    def predecessors(self) -> tuple[int, ...]:
        """By operator a mask of those whose results it reads."""
        return self._masks((reader, producer) for producer, reader in self.edges)

    @cached_property
    def successors(self) -> tuple[int, ...]:
        """By operator a mask of those that read its result."""
        return self._masks(self.edges)

    @cached_property
    def ancestors(self) -> tuple[int, ...]:
        """By operator a mask of all that must come before it."""
        found: list[int] = []
        for before in self.predecessors:
            found.append(before)
            for producer in members(before):
                found[-1] |= found[producer]
        return tuple(found)

    @cached_property
    def descendants(self) -> tuple[int, ...]:
        """By operator a mask of all that must come after it."""
        found = list(self.successors)
        for number in reversed(self.source):
            for reader in members(self.successors[number]):
                found[number] |= found[reader]
        return tuple(found)

    def ready(self, done: int) -> list[int]:
        """Return the operators that may come next when those of mask ``done`` have come."""
        return [i for i, before in enumerate(self.predecessors) if not (done >> i) & 1 and before & ~done == 0]

    def opened(self, number: int, done: int) -> int:
        """Return a mask of the operators that may come next because ``number`` has come, the last of mask ``done``."""
        return sum(1 << i for i in members(self.successors[number]) if self.predecessors[i] & ~done == 0)

    def ready_behind(self, ready: int, number: int, done: int) -> int:
        """Return a mask of the operators that may come next, from those of ``ready`` before ``number`` came, the last
        of mask ``done``."""
        return ready ^ 1 << number | self.opened(number, done)

    def is_order(self, order: Iterable[int]) -> bool:
        """Return whether ``order`` names every operator once, each behind all that it reads."""
        done = 0
        for number in order:
            if not 0 <= number < len(self) or (done >> number) & 1 or self.predecessors[number] & ~done:
                return False
            done |= 1 << number
        return done == self.everything

    def flow(self) -> nx.DiGraph:
        """Return the numbers as nodes of a graph to walk."""
        flow: nx.DiGraph = nx.DiGraph()
        flow.add_nodes_from(self.source)
        flow.add_edges_from(sorted(self.edges))
        return flow

    def part(self, numbers: Iterable[int], name: str) -> "OrderGraph":
        """Return the operators ``numbers`` as a graph of their own, numbered anew in source order, where all that must
        come before them has come and nothing else. What earlier operators leave for these or later ones is held."""
        inside = sorted(numbers)
        place = {number: i for i, number in enumerate(inside)}
        mask = sum(1 << number for number in inside)
        earlier = 0
        for number in inside:
            earlier |= self.ancestors[number]
        earlier &= ~mask
        held = []
        for number in members(earlier):
            held.append(
                HeldTensor(
                    self.operators[number].out_bytes,
                    frozenset(place[reader] for reader in members(self.successors[number] & mask)),
                    number in self.kept or bool(self.successors[number] & ~mask & ~earlier),
                )
            )
        for tensor in self.held:
            later = tensor.survives or any(not ((mask | earlier) >> reader) & 1 for reader in tensor.readers)
            held.append(HeldTensor(tensor.size, frozenset(place[r] for r in tensor.readers if r in place), later))
        edges = frozenset((place[a], place[b]) for a, b in self.edges if a in place and b in place)
        kept = frozenset(place[i] for i in inside if i in self.kept or self.successors[i] & ~mask)
        operators = tuple(self.operators[number] for number in inside)
        return OrderGraph(name, operators, edges, tuple(t for t in held if t.readers or t.survives), kept)

    def _masks(self, pairs: Iterable[tuple[int, int]]) -> tuple[int, ...]:
        masks = [0] * len(self)
        for number, other in pairs:
            masks[number] |= 1 << other
        return tuple(masks)


def members(mask: int) -> Iterator[int]:
    """Yield the operators of a mask, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
