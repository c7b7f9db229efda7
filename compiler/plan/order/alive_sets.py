"""Orders for memory: which operators come in which order so that the fewest bytes are alive at a time.

What is alive when an operator runs depends on which operators have come, not on their order, so orders are paths over
*downsets*: sets that hold with each operator all that come before it. The longest step of a path is what counts, and a
path whose longest step is shortest is found as a shortest one is (Dijkstra), the set with the least peak first. Where
that ends, the peak is proved to be the least of all orders; where it is cut short, the least peak among the sets that
wait is a bound that no order is below, and a beam finds an order.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from compiler.plan.order.graph import Order, members

STATES = 40_000  #: sets that are looked at for a proof
_WIDTH = 64  #: sets of a size that are followed where there is none


@dataclass(frozen=True)
class AliveBuffer:
    """Is a buffer by its ``size`` in bytes and a mask of the operators that write or read it. It is alive from the
    first of them that runs to the last. ``always``: before the first operator and behind the last, too."""

    size: int
    users: int
    always: bool = False


@dataclass(frozen=True)
class LeastOrder:
    """Is the best order found: its ``peak`` in bytes, and the ``bound`` that no order of the operators is below."""

    order: Order
    peak: int
    bound: int

    @property
    def proved(self) -> bool:
        """Return whether no order has a smaller peak."""
        return self.peak == self.bound


@dataclass(frozen=True)
class AliveSets:
    """Holds operators, numbered in an order that is possible: by operator a mask of those that come ``before`` it and,
    in ``replaced``, which buffer of its result may take the place of which operand's if that dies there."""

    before: tuple[int, ...]
    buffers: tuple[AliveBuffer, ...]
    replaced: tuple[tuple[tuple[int, int], ...], ...]

    def __len__(self) -> int:
        return len(self.before)

    def alive(self, order: Order) -> list[int]:
        """Return the bytes alive while each operator of ``order`` runs, by position."""
        done, held, found = 0, self._held, list[int]()
        for number in order:
            running, held = self._step(number, done, held)
            done |= 1 << number
            found.append(running)
        return found

    def peak(self, order: Order) -> int:
        """Return the most bytes alive at a time."""
        return max(self.alive(order), default=0)

    def lives(self, order: Order) -> list[tuple[int, int, int]]:
        """Return by buffer, where results take the places of operands that die, its size and the positions of the first
        and the last operator of ``order`` that use it."""
        place = {number: position for position, number in enumerate(order)}
        ends = [
            (min(used), max(used)) if (used := [place[i] for i in members(one.users)]) else (0, -1)
            for one in self.buffers
        ]
        spans = [(one.size, *end) for one, end in zip(self.buffers, ends, strict=True)]
        home = list(range(len(spans)))
        for position, number in enumerate(order):
            for new, old in self.replaced[number]:
                if ends[new][0] == position == ends[old][1] and home[new] == new:
                    home[new] = home[old]
                    size, first, last = spans[home[old]]
                    spans[home[old]] = max(size, spans[new][0]), first, max(last, spans[new][2])
                    break
        return [
            (one.size, 0, len(order) - 1) if one.always else span
            for number, (one, span) in enumerate(zip(self.buffers, spans, strict=True))
            if home[number] == number and span[2] >= 0
        ]

    def reverse_post_order(self) -> Order:
        """Return the order of a depth-first search from the end: an operator comes right behind what it needs, and of
        that the first in the given order comes first."""
        seen, order = 0, list[int]()
        for last in reversed(range(len(self))):
            branch = [] if seen >> last & 1 else [last]
            while branch:
                at = branch[-1]
                missing = self.before[at] & ~seen
                if missing:
                    branch.append(next(members(missing)))
                else:
                    seen |= 1 << at
                    order.append(at)
                    branch.pop()
        return tuple(order)

    def greedy(self) -> Order:
        """Return the order that takes, of the operators that may come next, always one that leaves the fewest bytes
        alive: the rule of the arenas of TensorFlow Lite's tools."""
        done, held, order = 0, self._held, list[int]()
        while len(order) < len(self):
            steps = [(*self._step(number, done, held)[::-1], number) for number in self._ready(done)]
            held, _, number = min(steps)
            done |= 1 << number
            order.append(number)
        return tuple(order)

    def least(self, states: int = STATES) -> LeastOrder:
        """Return the order with the smallest peak, or the best found if that needs more than ``states`` sets."""
        orders = [tuple(range(len(self))), self.reverse_post_order(), self.greedy()]
        best = min(orders, key=self.peak)
        found, bound = self._shortest(states, self.peak(best))
        if found is None and bound < self.peak(best):
            best = min((best, self._followed()), key=self.peak)
        order = found or best
        peak = self.peak(order)
        return LeastOrder(order, peak, min(bound, peak))

    @cached_property
    def _held(self) -> int:
        return sum(one.size for one in self.buffers if one.always)

    @cached_property
    def _touched(self) -> tuple[tuple[AliveBuffer, ...], ...]:
        return tuple(
            tuple(one for one in self.buffers if one.users >> number & 1 and not one.always)
            for number in range(len(self))
        )

    @cached_property
    def _behind(self) -> tuple[int, ...]:
        masks = [0] * len(self)
        for number, before in enumerate(self.before):
            for other in members(before):
                masks[other] |= 1 << number
        return tuple(masks)

    def _ready(self, done: int) -> Iterator[int]:
        return (i for i, before in enumerate(self.before) if not done >> i & 1 and not before & ~done)

    def _step(self, number: int, done: int, held: int) -> tuple[int, int]:
        """Return the bytes alive while ``number`` runs behind ``done``, where ``held`` are, and those behind it."""
        after, begun, ended = done | 1 << number, 0, 0
        for one in self._touched[number]:
            if not one.users & done:
                begun += one.size
            if not one.users & ~after:
                ended += one.size
        return held + begun - self._saved(number, done, after), held + begun - ended

    def _saved(self, number: int, done: int, after: int) -> int:
        saved = 0
        for new, old in self.replaced[number]:
            result, operand = self.buffers[new], self.buffers[old]
            if not result.users & done and not operand.users & ~after:
                saved = max(saved, min(result.size, operand.size))
        return saved

    def _shortest(self, states: int, enough: int) -> tuple[Order | None, int]:
        """Return the order with the least peak, None if that is not below ``enough`` or more than ``states`` sets are
        needed, and a bound of the peak."""
        everything = (1 << len(self)) - 1
        heap = [(0, 0, 0, self._held)]
        came: dict[int, tuple[int, int]] = {0: (0, -1)}  # by set: least peak, the last operator
        closed = set[int]()
        while heap:
            peak, _, done, held = heapq.heappop(heap)
            if peak >= enough:
                return None, enough
            if done in closed:
                continue
            if done == everything:
                return self._back(came), peak
            if len(closed) >= states:
                return None, peak
            closed.add(done)
            for number, worst, behind in self._next(done, held, peak):
                after = done | 1 << number
                if after not in came or worst < came[after][0]:
                    came[after] = worst, number
                    heapq.heappush(heap, (worst, -after.bit_count(), after, behind))
        return None, enough

    def _next(self, done: int, held: int, peak: int) -> list[tuple[int, int, int]]:
        """Return the operators that may come next with the peak up to their end and the bytes held behind them; one
        alone where it raises neither: no order is better that takes it later."""
        found = list[tuple[int, int, int]]()
        for number in self._ready(done):
            running, behind = self._step(number, done, held)
            if running <= peak and behind <= held:
                return [(number, peak, behind)]
            found.append((number, max(peak, running), behind))
        return found

    def _back(self, came: dict[int, tuple[int, int]]) -> Order:
        done, order = (1 << len(self)) - 1, list[int]()
        while done:
            order.append(came[done][1])
            done ^= 1 << order[-1]
        return tuple(reversed(order))

    def _followed(self) -> Order:
        """Return an order found by following ``_WIDTH`` sets of each size: those of the least peak, then of the fewest
        bytes held."""
        level = {0: (0, self._held)}
        came: dict[int, tuple[int, int]] = {}
        for _ in range(len(self)):
            made: dict[int, tuple[int, int]] = {}
            for done, (peak, held) in level.items():
                for number, worst, behind in self._next(done, held, peak):
                    after = done | 1 << number
                    if after not in made or (worst, behind) < made[after]:
                        made[after], came[after] = (worst, behind), (worst, number)
            level = {done: made[done] for done in sorted(made, key=lambda done: (*made[done], done))[:_WIDTH]}
        return self._back(came)
