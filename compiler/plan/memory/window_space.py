"""Weight windows wherever LV2 is free: where each job's weights go, and which job must retire before they may.

A window is held from the moment at which its load may begin until its job has ended. Meanwhile it may lie on any bytes
that nothing else needs: those of tensors whose last reader has ended or whose writer has not begun, staging areas that
no layer uses just then, and bytes that belong to the windows of its engine alone.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal, NamedTuple


class WindowWay(NamedTuple):
    """Which of the places where its load can begin first a window gets: with the ``least room`` around it, the
    ``lowest``, or the ``next`` behind the window before. ``apart``: each engine has some bytes for its own windows
    alone, so that there always is a place; else those of all engines lie anywhere."""

    apart: bool
    place: Literal["least room", "lowest", "next"]


#: What is tried, the usual one first. Which one keeps loads ahead depends on sizes and lives: a schedule decides.
WAYS = (
    WindowWay(True, "least room"), WindowWay(True, "next"),
    WindowWay(False, "lowest"), WindowWay(False, "next"), WindowWay(False, "least room"),
)  # fmt: skip


class NoRoom(ValueError):
    """Says that windows beside one leave no room for it."""


@dataclass(frozen=True)
class HeldBytes:
    """Bytes ``low`` to ``high`` of LV2 that the layers from ``first`` to ``last`` need; ``engines``: those whose jobs
    of the last one touch them."""

    low: int
    high: int
    first: int
    last: int
    engines: Set[int]

    def meets(self, low: int, high: int) -> bool:
        """Return whether some of its bytes lie between ``low`` and ``high``."""
        return self.low < high and low < self.high


@dataclass
class _Engine:
    """The jobs of an engine. ``layers``: of all of them; ``windows``: held by those that have claimed one;
    ``areas``: where they may lie; ``ready``: number of the job that must retire before the
    latest load may begin."""

    areas: list[tuple[int, int]]
    layers: list[int] = field(default_factory=list)
    windows: list[HeldBytes] = field(default_factory=list)
    ready: int = -1


class WindowSpace:
    """The windows of ``jobs``, given as (engine, layer) in ring order of each engine.

    LV2 begins with ``shared`` bytes, which tensors and staging areas need as ``held`` says and where windows of all
    engines may lie; behind them come ``home`` bytes for each engine. ``slots``: jobs that an engine holds: its loader
    is never further ahead.
    """

    def __init__(
        self, jobs: Sequence[tuple[int, int]], held: Sequence[HeldBytes], shared: int, home: int, slots: int,
        way: WindowWay = WAYS[0],
    ) -> None:  # fmt: skip
        self._held, self._home, self._slots, self._way = held, home, slots, way
        self._end = shared + home * (1 + max((engine for engine, _ in jobs), default=0))
        self._engines: dict[int, _Engine] = {}
        for engine, layer in jobs:
            start = shared + engine * home
            areas = [(0, shared), (start, start + home)] if way.apart else [(0, self._end)]
            self._engines.setdefault(engine, _Engine(areas)).layers.append(layer)

    def claim(self, engine: int, size: int) -> tuple[int, int]:
        """(offset, ``window_after``) of a window of ``size`` bytes for the next job of ``engine``.

        Jobs claim in the order of their layers. ``window_after`` is the distance to the latest earlier job of the
        engine whose end implies that of every earlier user, 0 if there was none. Of the places where the load can begin
        first, the window gets that of the space's way, the lowest of equals. With the least room around it, what is
        left stays in one piece for large windows. ValueError if the window exceeds what the engine has alone;
        :class:`NoRoom` where windows do not lie apart and those beside it leave none.
        """
        mine = self._engines[engine]
        number = len(mine.windows)
        if size > self._home:
            raise ValueError(f"a window of {size} bytes does not fit the {self._home} of engine {engine}")
        # Loads are made in order, and only of jobs that the engine holds: a place that is free before is no better.
        soon = max(mine.ready, number - self._slots)
        users = [*self._users(engine, number)]
        late = [(one, ready) for one, ready in users if ready > soon]
        start = mine.areas[-1][0]
        if size:
            obstacles = [one for one, _ in late]
            behind = mine.windows[-1].high if mine.windows else 0
            start = min(
                self._starts(obstacles, mine.areas, size),
                key=lambda at: (
                    _latest(late, at, at + size), self._rank(obstacles, mine.areas, at, at + size, behind), at
                ),
            )  # fmt: skip
        ready = _latest(users, start, start + size)
        if ready >= number:
            raise NoRoom(f"no room for a window of {size} bytes of engine {engine} beside those of its layer")
        mine.ready = max(mine.ready, ready)
        layer = mine.layers[number]
        mine.windows.append(HeldBytes(start, start + size, layer, layer, {engine}))
        return start, number - ready if ready >= 0 else 0

    def again(self, engine: int, number: int) -> int:
        """``window_after`` of job ``number`` of ``engine`` when the same jobs run a second time right behind the first:
        distance to the last job of the first time, or to the latest that used any of its window if only windows of this
        engine did. Harmless the first time: what lies before the start of a ring counts as retired."""
        mine = self._engines[engine]
        window, last = mine.windows[number], len(mine.layers) - 1
        others = (other for e, one in self._engines.items() if e != engine for other in one.windows)
        if not any(other.meets(window.low, window.high) for other in (*self._held, *others)):
            own = (i for i, other in enumerate(mine.windows) if other.meets(window.low, window.high))
            last = max(own, default=number)
        return number + len(mine.layers) - last

    def _starts(self, obstacles: Iterable[HeldBytes], areas: Sequence[tuple[int, int]], size: int) -> set[int]:
        """Return where a window may sensibly start: at the edge of an area, or beside an obstacle."""
        places = {at for low, high in areas for at in (low, high - size)}
        places |= {at for one in obstacles for at in (one.low - size, one.high)}
        return {at for at in places if any(low <= at <= high - size for low, high in areas)}

    def _rank(
        self, obstacles: Sequence[HeldBytes], areas: Sequence[tuple[int, int]], low: int, high: int, behind: int
    ) -> int:
        """Return what the way has against a window from ``low`` to ``high``; ``behind``: the end of the one before."""
        if self._way.place == "least room":  # the bytes between the obstacles, or ends of an area, next to it
            begin, end = next(area for area in areas if area[0] <= low and high <= area[1])
            below = max((one.high for one in obstacles if one.high <= low), default=0)
            above = min((one.low for one in obstacles if one.low >= high), default=end)
            return min(above, end) - max(below, begin)
        return low if self._way.place == "lowest" else (low - behind) % self._end

    def _users(self, engine: int, number: int) -> Iterator[tuple[HeldBytes, int]]:
        """Yield who needs bytes before job ``number`` of ``engine`` ends, and after which job of the engine no longer;
        that is no earlier job if bytes are needed while this one runs."""
        layer = self._engines[engine].layers[number]
        for held in self._held:
            if held.first <= layer:
                yield held, number if held.last >= layer else self._released(held, engine)
        for other, queue in self._engines.items():
            for i, window in enumerate(queue.windows):
                yield window, i if other == engine else self._released(window, engine)

    def _released(self, held: HeldBytes, engine: int) -> int:
        """Return the number of the job of ``engine`` whose end implies that nobody needs ``held``: the last one up to
        that layer, or the first one behind it, which waited for the other engines."""
        behind = bisect_right(self._engines[engine].layers, held.last)
        return behind if held.engines - {engine} else behind - 1


def _latest(users: Iterable[tuple[HeldBytes, int]], low: int, high: int) -> int:
    """Return the last of the jobs that must retire before the bytes from ``low`` to ``high`` are free; -1 if there is
    none."""
    return max((ready for one, ready in users if one.meets(low, high)), default=-1)
