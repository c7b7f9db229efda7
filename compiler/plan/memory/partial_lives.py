"""Which buffers stay in LV2 between which of their uses, where not all can: the fewest bytes that go to DRAM and back.

Layers run in a given order. A buffer that leaves LV2 is stored once, unless DRAM has it already, and comes back before
its next use. Nothing leaves before something else has no room, so choices are sets that leave at a step; the best are
followed from the first step to the last, by what is in LV2 behind each (a beam). What leaves pays for its way out and
back at once, so choices with the same in LV2 are compared as they stand. A step whose own buffers have no room
together passes some of them through a staging area instead.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from compiler.plan.order.graph import members

WIDTH = 200  #: choices that are followed
_LEAVING = 9  #: buffers that may leave at a step, those used again last
_NEVER = 1 << 60


@dataclass(frozen=True)
class PartialLife:
    """Is a buffer of ``size`` bytes that the steps ``users``, ascending, read or write. ``writes``: those that give it
    something new, the first among them. ``leaves``: by user but the last whether the buffer may leave LV2 behind it;
    ``passes``: by user whether it may pass it through a staging area."""

    size: int
    users: tuple[int, ...]
    writes: frozenset[int]
    leaves: tuple[bool, ...]
    passes: tuple[bool, ...]

    @cached_property
    def after(self) -> dict[int, int]:
        """Return by user the next one; the last has none."""
        return dict(zip(self.users, self.users[1:], strict=False))


@dataclass(frozen=True)
class Residency:
    """Says what leaves: ``moved`` bytes in all; ``gone``: a buffer, and the user behind which it leaves; ``passed``: a
    buffer, and the user that passes it through a staging area."""

    moved: int
    gone: frozenset[tuple[int, int]]
    passed: frozenset[tuple[int, int]]


@dataclass(frozen=True)
class _Choice:
    """Is what is in LV2, a mask, and what DRAM has as it is, after ``moved`` bytes; ``gone`` and ``passed`` came last,
    behind what ``before`` chose."""

    moved: int
    inside: int
    kept: int
    gone: int = 0
    passed: int = 0
    step: int = -1
    before: "_Choice | None" = None


def least_moved(
    lives: Sequence[PartialLife], rooms: Sequence[int], area: int, width: int = WIDTH
) -> Residency | int:  # fmt: skip
    """Return which of ``lives`` leave LV2 when; ``rooms``: by step the bytes that it has for buffers, of which
    ``area`` go where something passes through a staging area. Returns the step instead that finds no room."""
    problem = _Problem(lives, area)
    level = [_Choice(0, 0, 0)]
    for step, room in enumerate(rooms):
        made: dict[tuple[int, int], _Choice] = {}
        for choice in level:
            for one in problem.next(choice, step, room):
                key = one.inside, one.kept
                if key not in made or one.moved < made[key].moved:
                    made[key] = one
        if not made:
            return step
        level = _best(made.values(), width)
    return problem.told(min(level, key=lambda one: one.moved))


def _best(choices: Iterable[_Choice], width: int) -> list[_Choice]:
    """Return the ``width`` with the fewest bytes moved, those left out that another has all of for as few."""
    found, by_inside = list[_Choice](), dict[int, list[_Choice]]()
    for one in sorted(choices, key=lambda one: (one.moved, -one.kept.bit_count(), -one.inside.bit_count())):
        alike = by_inside.setdefault(one.inside, [])
        if not any(not one.kept & ~other.kept for other in alike):
            alike.append(one)
            found.append(one)
            if len(found) >= width:
                break
    return found


class _Problem:
    """Holds the lives, and by step masks of the buffers that it uses, writes, and uses last."""

    def __init__(self, lives: Sequence[PartialLife], area: int) -> None:
        self._lives, self._area = lives, area
        self._used: dict[int, int] = {}
        self._written: dict[int, int] = {}
        self._last: dict[int, int] = {}
        for number, one in enumerate(lives):
            for step in one.users:
                self._used[step] = self._used.get(step, 0) | 1 << number
            for step in one.writes:
                self._written[step] = self._written.get(step, 0) | 1 << number
            self._last[one.users[-1]] = self._last.get(one.users[-1], 0) | 1 << number

    def next(self, choice: _Choice, step: int, room: int) -> Iterator[_Choice]:
        """Yield what ``choice`` may become behind ``step``, which has ``room``."""
        used = self._used.get(step, 0)
        found = False
        for gone in self._leaving(choice.inside & ~used, self._bytes(choice.inside | used) - room, step):
            found = True
            yield self._behind(choice, step, gone, 0)
        if found:
            return
        able = [i for i in members(used) if self._passes(i, step)]
        for count in range(1, len(able) + 1):
            for some in combinations(able, count):
                passed = sum(1 << i for i in some)
                if any(choice.inside >> i & 1 and not self._may_leave(i, step) for i in some):
                    continue
                excess = self._bytes((choice.inside | used) & ~passed) - (room - self._area)
                for gone in self._leaving(choice.inside & ~used, excess, step):
                    found = True
                    yield self._behind(choice, step, gone, passed)
            if found:
                return

    def told(self, choice: _Choice) -> Residency:
        """Return what led to ``choice``."""
        gone, passed, at = set[tuple[int, int]](), set[tuple[int, int]](), choice
        while at.before is not None:
            gone |= {(i, self._previous(i, at.step)) for i in members(at.gone)}
            passed |= {(i, at.step) for i in members(at.passed)}
            at = at.before
        return Residency(choice.moved, frozenset(gone), frozenset(passed))

    def _behind(self, choice: _Choice, step: int, gone: int, passed: int) -> _Choice:
        """Return ``choice`` behind ``step``, ahead of which ``gone`` leaves, and which passes ``passed``."""
        moved, inside, kept = choice.moved, choice.inside, choice.kept
        used, written = self._used.get(step, 0), self._written.get(step, 0)
        leaving = gone | passed & inside  # what passes is brought by the step itself
        for i in members(leaving):
            moved += self._lives[i].size * (1 if kept >> i & 1 else 2)
        kept = (kept | leaving) & ~written
        for i in members(passed):
            moved += self._lives[i].size * (bool(written >> i & 1) + (step in self._lives[i].after))
        kept |= passed
        last = self._last.get(step, 0)
        inside = ((inside & ~gone | used) & ~passed) & ~last
        return _Choice(moved, inside, kept & ~last, gone | passed & choice.inside, passed, step, choice)

    def _leaving(self, others: int, excess: int, step: int) -> Iterator[int]:
        """Yield the least sets of ``others`` that have ``excess`` bytes."""
        if excess <= 0:
            yield 0
            return
        able = [i for i in members(others) if self._may_leave(i, step)]
        able.sort(key=lambda i: (-self._next(i, step), -self._lives[i].size))
        if sum(self._lives[i].size for i in able) < excess:
            return
        few = able[:_LEAVING]
        while sum(self._lives[i].size for i in few) < excess:
            few.append(able[len(few)])
        for count in range(1, len(few) + 1):
            for some in combinations(few, count):
                size = sum(self._lives[i].size for i in some)
                if size >= excess and size - min(self._lives[i].size for i in some) < excess:
                    yield sum(1 << i for i in some)

    def _bytes(self, mask: int) -> int:
        return sum(self._lives[i].size for i in members(mask))

    def _previous(self, number: int, step: int) -> int:
        return max(user for user in self._lives[number].users if user < step)

    def _next(self, number: int, step: int) -> int:
        return min((user for user in self._lives[number].users if user >= step), default=_NEVER)

    def _may_leave(self, number: int, step: int) -> bool:
        one = self._lives[number]
        return one.leaves[one.users.index(self._previous(number, step))]

    def _passes(self, number: int, step: int) -> bool:
        one = self._lives[number]
        return one.passes[one.users.index(step)]
