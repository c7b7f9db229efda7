"""Which tensors are on chip while an order runs: the most bytes alive at a time, and what is spilled if they do not
fit."""

from bisect import bisect_right

from compiler.plan.order.graph import Order, OrderGraph, members

NEVER = 1 << 60
RESERVE = 0.125  #: of on-chip memory, for code, parameters of other operators and what is on its way


def threshold(on_chip_bytes: int, reserve: float = RESERVE) -> int:
    """Return what the data of one operator may take: on-chip memory less a reserve."""
    return int(on_chip_bytes * (1 - reserve))


def alive_bytes(graph: OrderGraph, order: Order) -> list[int]:
    """By position the bytes alive while that operator runs: its result and parameters, and every tensor made or held
    before that it or a later operator reads, or that is needed after the last one."""
    place = {number: position for position, number in enumerate(order)}
    changes = [0] * (len(order) + 1)
    for number, node in enumerate(graph.operators):
        changes[place[number]] += node.out_bytes
        changes[_last(graph, place, number) + 1] -= node.out_bytes
    for tensor in graph.held:
        last = len(order) - 1 if tensor.survives else max(place[reader] for reader in tensor.readers)
        changes[0] += tensor.size
        changes[last + 1] -= tensor.size
    alive, total = [], 0
    for position, number in enumerate(order):
        total += changes[position]
        alive.append(total + graph.operators[number].param_bytes)
    return alive


def total_bytes(graph: OrderGraph) -> int:
    """Return the bytes of all that the graph holds or makes, with the largest parameters: no order has more alive."""
    made = sum(node.out_bytes for node in graph.operators) + sum(tensor.size for tensor in graph.held)
    return made + max((node.param_bytes for node in graph.operators), default=0)


def peak_bytes(graph: OrderGraph, order: Order) -> int:
    """Return the most bytes alive at a time."""
    return max(alive_bytes(graph, order), default=0)


def spills(graph: OrderGraph, order: Order, capacity: int) -> list[int]:
    """By position the bytes that pass between chip and DRAM before that operator because ``capacity`` bytes do not hold
    what is alive; empty if they do.

    Whole tensors are spilled, the one first whose next reader is furthest (Belady's rule). A tensor goes out once and
    comes back for each reader that does not find it. What an operator cannot hold even alone is streamed.
    """
    if peak_bytes(graph, order) <= capacity:
        return []
    return _Spilling(graph, order, capacity).traffic()


def _last(graph: OrderGraph, place: dict[int, int], number: int) -> int:
    """Return the position of the last operator that needs the result of ``number``."""
    if number in graph.kept:
        return len(place) - 1
    return max((place[reader] for reader in members(graph.successors[number])), default=place[number])


class _Spilling:
    """The walk over an order. Tensors are numbered: results as their operators, then what is held."""

    def __init__(self, graph: OrderGraph, order: Order, capacity: int) -> None:
        self._graph, self._order, self._capacity = graph, order, capacity
        place = {number: position for position, number in enumerate(order)}
        self._sizes = [node.out_bytes for node in graph.operators] + [tensor.size for tensor in graph.held]
        readers = [set(members(mask)) for mask in graph.successors] + [set(t.readers) for t in graph.held]
        needed = [i in graph.kept for i in range(len(graph))] + [t.survives for t in graph.held]
        #: By tensor the positions of its readers, ascending; beyond the end if it is needed after the last operator.
        self._uses = [
            sorted(place[reader] for reader in read) + [len(order)] * late
            for read, late in zip(readers, needed, strict=True)
        ]
        self._operands: list[list[int]] = [[] for _ in order]
        for tensor, uses in enumerate(self._uses):
            for position in uses:
                if position < len(order):
                    self._operands[position].append(tensor)
        self._on_chip = {len(graph) + i for i in range(len(graph.held))}
        self._in_dram: set[int] = set()

    def traffic(self) -> list[int]:
        """See :func:`spills`."""
        moved = [self._step(position, number) for position, number in enumerate(self._order)]
        end = len(self._order)
        moved[-1] += sum(
            self._sizes[tensor] for tensor, uses in enumerate(self._uses) if end in uses and tensor not in self._on_chip
        )  # whoever comes next brings them back
        return moved

    def _step(self, position: int, number: int) -> int:
        operands = self._operands[position]
        fixed = {*operands, number}
        missing = [tensor for tensor in operands if tensor not in self._on_chip]
        moved = sum(self._sizes[tensor] for tensor in missing)
        self._on_chip |= fixed
        parameters = self._graph.operators[number].param_bytes
        need = parameters + sum(self._sizes[tensor] for tensor in self._on_chip)
        others = list[int]()
        if need > self._capacity:
            others = sorted(
                self._on_chip - fixed, key=lambda tensor: (self._next(tensor, position), self._sizes[tensor])
            )
        while need > self._capacity and others:
            tensor = others.pop()
            need -= self._sizes[tensor]
            moved += self._put_out(tensor)
        if need > self._capacity:  # the operator alone does not fit: the rest of its data passes through
            moved += 2 * (need - self._capacity)
        self._on_chip -= {tensor for tensor in fixed if self._next(tensor, position) == NEVER}
        return moved

    def _put_out(self, tensor: int) -> int:
        """Return the bytes that go to DRAM for it: none if it was there before."""
        self._on_chip.discard(tensor)
        again = tensor in self._in_dram
        self._in_dram.add(tensor)
        return 0 if again else self._sizes[tensor]

    def _next(self, tensor: int, position: int) -> int:
        uses = self._uses[tensor]
        place = bisect_right(uses, position)
        return uses[place] if place < len(uses) else NEVER
