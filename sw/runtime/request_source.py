"""Defines what brings requests to a run time while it serves them."""

from typing import Protocol


class RequestSource(Protocol):
    """Is work outside the accelerator, in simulated time, that submits requests: arrivals, a simulated CPU, closed
    loops.

    The run time asks whenever it looks at what has arrived. So each request arrives at its own cycle, also at one that
    passed while the host was busy, and no sooner does the run time know of it.
    """

    def next_cycle(self) -> int | None:
        """Return when the source next does something by itself, or None if only after a request has ended."""
        ...

    def run_until(self, cycle: int) -> None:
        """Do what is due by ``cycle``, submissions included."""
        ...
