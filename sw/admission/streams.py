"""Describes streams of requests as the response-time analysis and the abstract machine see them: in cycles alone.

The times are those of the worst case. Where they come from is not said here: of real images they are bounds that are
found in their programs.
"""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class WorkPiece:
    """Is what a request computes from one cancellation point to the next, or one step of it on the CPU.

    ``cycles``: how long it takes; on the engines nothing stops it. ``dump``: from its end, or from anywhere in a step
    on the CPU, until others may have the engines; behind the last piece there is nothing to dump.
    """

    cycles: int
    dump: int = 0
    on_cpu: bool = False

    @property
    def held(self) -> int:
        """Return the cycles for which the piece holds its engines against a more urgent request."""
        return 0 if self.on_cpu else self.cycles


@dataclass(frozen=True)
class RequestStream:
    """Describes the requests of one kind: when they come, and what one takes at the worst, in cycles.

    Parameters
    ----------
    period, jitter, burst : request n is due not before ``max(0, n - burst + 1) * period`` after the first, and is
        released at most ``jitter`` after it is due; without a period they come as they like
    deadline : from when a request is due to its end; None: only its response time is wanted
    pieces : what a request computes, in order
    execution : what all pieces take together at the most, where a tighter bound is known than their sum
    tail : of ``execution``, what is left when nothing can stop the request any more; the rest is a bound of its own
    start : of the host and the loader, until a request that has its engines computes
    restore : from the decision to let a suspended request go on until it does
    refill : cycles a request loses in all by having been suspended, beside dump and restore: prologues start over
    promised : whether it is given a response time; others only stand in the way of those that are
    """

    name: str
    priority: int
    period: int | None
    pieces: tuple[WorkPiece, ...]
    deadline: int | None = None
    jitter: int = 0
    burst: int = 1
    engines: frozenset[int] = frozenset({0})
    start: int = 0
    restore: int = 0
    refill: int = 0
    execution: int | None = None
    tail: int | None = None
    promised: bool = True

    def __post_init__(self) -> None:
        least = {"period": 1, "burst": 1} | dict.fromkeys(("jitter", "start", "restore", "refill"), 0)
        for field, low in least.items():
            value = getattr(self, field)
            if value is not None and value < low:
                raise ValueError(f"stream {self.name!r}: {field} must be at least {low}, not {value}")
        if self.promised and self.period is None:
            raise ValueError(f"stream {self.name!r}: promised without a period; give one, or promise nothing")
        if not self.pieces or min(min(piece.cycles, piece.dump) for piece in self.pieces) < 0:
            raise ValueError(f"stream {self.name!r}: pieces must be one or more, of 0 cycles or more")
        if not self.engines:
            raise ValueError(f"stream {self.name!r}: engines must be one or more")
        if self.computing < self.uninterrupted:
            raise ValueError(f"stream {self.name!r}: tail {self.tail} is longer than execution {self.execution}")

    @property
    def computing(self) -> int:
        """Return what a request takes from its first instruction to its end if nobody else is there."""
        return sum(piece.cycles for piece in self.pieces) if self.execution is None else self.execution

    @property
    def uninterrupted(self) -> int:
        """Return the last cycles of a request, in which nothing can stop it any more."""
        if self.tail is not None:
            return self.tail
        return self.pieces[-1].held if self.execution is None else 0

    @property
    def halt_and_dump(self) -> int:
        """Return the longest time from a pause that meets a request while it computes until its engines are free."""
        return max(piece.held + piece.dump for piece in self.pieces)

    @property
    def dump(self) -> int:
        """Return the longest time from a halt until the engines are free."""
        return max(piece.dump for piece in self.pieces)

    @property
    def cpu_steps(self) -> tuple[int, ...]:
        """Return the cycles of each step on the CPU."""
        return tuple(piece.cycles for piece in self.pieces if piece.on_cpu)

    @property
    def rate(self) -> Fraction:
        """Return requests a cycle in the long run. Raises ValueError without a period."""
        return Fraction(1, self._period)

    def released_before(self, length: int, late: int) -> int:
        """Return how many requests can be released in a half-open interval of ``length`` if each may come up to
        ``late`` after it is due."""
        return self.burst - 1 - (-(length + late) // self._period) if length + late > 0 else 0

    def released_until(self, length: int, late: int) -> int:
        """Return how many can be released in an interval of ``length``, both ends included."""
        return self.burst + (length + late) // self._period

    def due(self, number: int) -> int:
        """Return when request ``number`` is due at the earliest, counted from the first."""
        return max(0, number - self.burst + 1) * self._period

    @property
    def _period(self) -> int:
        if self.period is None:
            raise ValueError(f"stream {self.name!r} has no period")
        return self.period
