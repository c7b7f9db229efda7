"""Measures what a run time does: how long engines were busy and idle, and how long decisions took."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sw.driver import JobResult


@dataclass
class Measurements:
    """Holds measurements of one run time, of all priority levels together."""

    decision_seconds: deque[float] = field(
        default_factory=deque
    )  #: wall time of decisions on this computer, newest last
    compute_busy: dict[int, int] = field(default_factory=dict)  #: cycles in bodies, by engine
    load_busy: dict[int, int] = field(default_factory=dict)  #: cycles in prologues, by engine
    turnaround: int = 0  #: cycles from one body to the next on an engine: the least that was measured
    _computed: dict[int, int] = field(default_factory=dict)
    _loaded: dict[int, int] = field(default_factory=dict)

    def last_end(self, engines: Iterable[int]) -> int:
        """Return when the last body on all of ``engines`` ended."""
        return max((self._computed.get(engine, 0) for engine in engines), default=0)

    def computed(self, engine: int, cycles: int) -> None:
        """Add that ``engine`` was in a body for so long."""
        self.compute_busy[engine] = self.compute_busy.get(engine, 0) + cycles

    def idle(self, results: Sequence[JobResult], decided: int) -> tuple[float, float]:
        """Return for how long compute and memory access were idle before and between these jobs, since they were
        ``decided`` on; it is the mean over their engines. To be called in the order in which groups end."""
        compute: dict[int, int] = {}
        access: dict[int, int] = {}
        for r in sorted(results, key=lambda result: result.start):
            begin = max(self._computed.get(r.engine, 0), decided)
            if self._computed.get(r.engine, decided) > decided and r.start > begin:
                self.turnaround = min(self.turnaround or r.start - begin, r.start - begin)
            compute[r.engine] = compute.get(r.engine, 0) + max(0, r.start - begin)
            self._computed[r.engine] = max(r.end, self._computed.get(r.engine, 0))
            self.computed(r.engine, r.end - r.start)
            if r.prologue_start:
                begin = max(self._loaded.get(r.engine, 0), decided)
                access[r.engine] = access.get(r.engine, 0) + max(0, r.prologue_start - begin)
                self._loaded[r.engine] = r.prologue_end
                self.load_busy[r.engine] = self.load_busy.get(r.engine, 0) + r.prologue_end - r.prologue_start
        return _mean(compute), _mean(access)


def _mean(by_engine: dict[int, int]) -> float:
    return sum(by_engine.values()) / len(by_engine) if by_engine else 0.0
