"""Weight windows wherever LV2 is free: where each job's weights go, and which job must retire before they may.

A window is held from the moment at which its load may begin until its job has ended. Meanwhile it may lie on any bytes
that nothing else needs: those of tensors whose last reader has ended or whose writer has not begun, staging areas that
no layer uses just then, and bytes that belong to the windows of its engine alone.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field


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
    ``home``: bytes that no other engine's windows may have; ``ready``: number of the job that must retire before the
    latest load may begin."""

    home: tuple[int, int]
    layers: list[int] = field(default_factory=list)
    windows: list[HeldBytes] = field(default_factory=list)
    ready: int = -1


class WindowSpace:
    """The windows of ``jobs``, given as (engine, layer) in ring order of each engine.

    LV2 begins with ``shared`` bytes, which tensors and staging areas need as ``held`` says and where windows of all
    engines may lie; behind them each engine has ``home`` bytes for its own. ``slots``: jobs that an engine holds: its
    loader is never further ahead.
    """

    def __init__(
        self, jobs: Iterable[tuple[int, int]], held: Sequence[HeldBytes], shared: int, home: int, slots: int
    ) -> None:
        self._held, self._shared, self._home, self._slots = held, shared, home, slots
        self._engines: dict[int, _Engine] = {}
        for engine, layer in jobs:
            start = shared + engine * home
            self._engines.setdefault(engine, _Engine((start, start + home))).layers.append(layer)

    def claim(self, engine: int, size: int) -> tuple[int, int]:
        """(offset, ``window_after``) of a window of ``size`` bytes for the next job of ``engine``.

        Jobs claim in the order of their layers. ``window_after`` is the distance to the latest earlier job of the
        engine whose end implies that of every earlier user, 0 if there was none. Of the places where the load can begin
        first, the window gets the one with the least room around it, the lowest of equals: so what is left stays in
        one piece for large windows. ValueError if it exceeds what the engine has alone.
        """
        mine = self._engines[engine]
        number = len(mine.windows)
        if size > self._home:
            raise ValueError(f"a window of {size} bytes does not fit the {self._home} of engine {engine}")
        # Loads are made in order, and only of jobs that the engine holds: a place that is free before is no better.
        soon = max(mine.ready, number - self._slots)
        users = [*self._users(engine, number)]
        late = [(one, ready) for one, ready in users if ready > soon]
        start = mine.home[0]
        if size:
            obstacles = [one for one, _ in late]
            starts = self._starts(obstacles, mine.home, size)
            start = min(
                starts,
                key=lambda at: (_latest(late, at, at + size), self._room(obstacles, mine.home, at, at + size), at),
            )
        ready = _latest(users, start, start + size)
        assert ready < number
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

    def _starts(self, obstacles: Iterable[HeldBytes], home: tuple[int, int], size: int) -> set[int]:
        """Return where a window may sensibly start: at the edge of an area, or beside an obstacle."""
        areas = [(0, self._shared), home]
        places = {at for low, high in areas for at in (low, high - size)}
        places |= {at for one in obstacles for at in (one.low - size, one.high)}
        return {at for at in places if any(low <= at <= high - size for low, high in areas)}

    def _room(self, obstacles: Sequence[HeldBytes], home: tuple[int, int], low: int, high: int) -> int:
        """Return the bytes between the obstacles, or ends of an area, next to a window from ``low`` to ``high``."""
        begin, end = home if home[0] <= low else (0, self._shared)
        below = max((one.high for one in obstacles if one.high <= low), default=0)
        above = min((one.low for one in obstacles if one.low >= high), default=end)
        return min(above, end) - max(below, begin)

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
