"""The worked example of **Cancellation points** as a pure schedule: given durations, no hardware.

Perception of one frame follows that of the frame before without a gap. Its result is parsed on the CPU, then planning
runs on the accelerator. A frame's latency runs from the start of its perception to the end of its planning.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

What = Literal["perception", "parsing", "planning", "dump", "restore"]
Way = Literal["alone", "without preemption", "with preemption"]
WAYS: tuple[Way, ...] = ("alone", "without preemption", "with preemption")


@dataclass(frozen=True)
class Times:
    """Durations, all in one unit of the caller's choice."""

    perception: float = 30
    parsing: float = 15
    planning: float = 10
    dump: float = 1
    restore: float = 1


@dataclass(frozen=True)
class Slot:
    """The accelerator, or with parsing the CPU, worked for ``frame`` (the first is 0) from ``start`` to ``end``. A dump
    is for the planning that it makes room for."""

    what: What
    frame: int
    start: float
    end: float


@dataclass
class FrameSchedule:
    """``slots``: what ran when. ``latencies``: of each frame that was planned, the first frame first."""

    slots: list[Slot] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)

    def add(self, what: What, frame: int, start: float, duration: float) -> float:
        """Append a slot, unless it is empty; returns its end."""
        if duration:
            self.slots.append(Slot(what, frame, start, start + duration))
        return start + duration


def schedule(way: Way, times: Times | None = None, frames: int = 3) -> FrameSchedule:
    """Perception of ``frames`` frames and planning of all that another frame follows (alone: of all).

    With preemption the pause is sent one dump time ahead of the end of parsing, which is known, so that a dump overlaps
    parsing.
    """
    return _WAYS[way](times or Times(), frames)


def _alone(times: Times, frames: int) -> FrameSchedule:
    """A frame starts when the one before has been planned."""
    result, now = FrameSchedule(), 0.0
    for frame in range(frames):
        start = now
        now = result.add("perception", frame, now, times.perception)
        now = result.add("parsing", frame, now, times.parsing)
        now = result.add("planning", frame, now, times.planning)
        result.latencies.append(now - start)
    return result


def _without(times: Times, frames: int) -> FrameSchedule:
    """A perception that has begun runs to its end; planning that is ready goes before the next perception."""
    result, now = FrameSchedule(), 0.0
    waiting: deque[tuple[int, float, float]] = deque()  #: frame, its start, end of its parsing
    for frame in range(frames):
        start = now
        now = result.add("perception", frame, now, times.perception)
        waiting.append((frame, start, result.add("parsing", frame, now, times.parsing)))
        while waiting and waiting[0][2] <= now:
            planned, began, _ = waiting.popleft()
            now = result.add("planning", planned, now, times.planning)
            result.latencies.append(now - began)
    return result


def _with(times: Times, frames: int) -> FrameSchedule:
    """Planning takes the accelerator from the perception that runs."""
    result, now = FrameSchedule(), 0.0
    waiting: deque[tuple[int, float, float]] = deque()
    for frame in range(frames):
        start, left = now, times.perception
        while waiting and max(now, waiting[0][2] - times.dump) < now + left:
            planned, began, ready = waiting.popleft()
            pause = max(now, ready - times.dump)
            left -= pause - now
            result.add("perception", frame, now, pause - now)
            now = max(ready, result.add("dump", planned, pause, times.dump))
            now = result.add("planning", planned, now, times.planning)
            result.latencies.append(now - began)
            now = result.add("restore", frame, now, times.restore)
        now = result.add("perception", frame, now, left)
        waiting.append((frame, start, result.add("parsing", frame, now, times.parsing)))
    return result


_WAYS: dict[Way, Callable[[Times, int], FrameSchedule]] = {
    "alone": _alone,
    "without preemption": _without,
    "with preemption": _with,
}
