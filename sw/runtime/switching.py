"""Decides whether and when to switch to a more urgent request (of **Cancellation points**).

To one whose arrival was announced, the switch begins ahead, so that it finds the engines free: the published schedule
sends the pause one dump time before the CPU has ended the step in between. Here the time that a switch takes is
measured, and corrected by every switch.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sw.driver import LoadedModel
from sw.driver.preempt.state_transfer import StateTransfer
from sw.runtime.preemption_mechanism import Mechanism, Situation
from sw.runtime.request import Request


@dataclass
class Switching:
    """Decides on switches, and learns from them how long they take to each model.

    ``rule``: what to do, from an estimate of the situation. ``gain``: how far a measurement moves what is expected.
    """

    rule: Callable[[Situation], Mechanism]
    gain: float
    expected: set[int] = field(default_factory=set)  #: numbers of requests to which a switch began before they arrived
    _decided: set[int] = field(default_factory=set)  #: requests not to be decided on again before they arrive
    _declined: set[int] = field(default_factory=set)  #: arrivals that wait for a running request to end
    _leads: dict[int, float] = field(default_factory=dict)  #: by number of the model
    _begun: dict[int, int] = field(default_factory=dict)  #: switches that have not ended, by number of the request
    _dumping: list[tuple[Request, StateTransfer, int]] = field(default_factory=list)

    def decided(self, request: Request) -> bool:
        """Return whether what to do for ``request`` was decided before it arrived, so that nothing more is decided
        until it does."""
        return request.number in self._decided

    def declined(self, request: Request) -> bool:
        """Return whether ``request`` waits, as was decided when it arrived."""
        return request.number in self._declined

    def reconsider(self) -> None:
        """Decide again on all that wait, as a running request has ended."""
        self._declined.clear()

    def forget(self, request: Request) -> None:
        """Forget ``request``, which has ended."""
        for numbers in (self._decided, self.expected, self._declined):
            numbers.discard(request.number)
        self._begun.pop(request.number, None)

    def decide(self, request: Request, now: Situation) -> Mechanism:
        """Return what to do for ``request``. To wait is final until :meth:`reconsider`, or, if that was decided before
        it arrived, until it does."""
        choice = Mechanism.WAIT if now.notice and now.remaining <= now.notice else self.rule(now)
        if now.notice:
            self._decided.add(request.number)
            if choice is not Mechanism.WAIT:
                self.expected.add(request.number)
        elif choice is Mechanism.WAIT:
            self._declined.add(request.number)
        return choice

    def foreseen(
        self, waiting: Iterable[Request], now: int, situation: Callable[[Request], Situation]
    ) -> tuple[Request, int] | None:
        """Return the next announced one of ``waiting`` requests, for each of which others are to be stopped, and the
        cycle at which to begin the switch to it. ``situation`` is the one in which a request would arrive now."""
        later = [r for r in waiting if r.announced and r.arrival > now and not self.decided(r)]
        if not later:
            return None
        request = min(later, key=lambda r: (r.arrival, r.number))
        return request, request.arrival - round(self.lead(request.model, lambda: situation(request)))

    def lead(self, model: LoadedModel, situation: Callable[[], Situation]) -> float:
        """Return the cycles before an arrival for ``model`` at which to begin: as long as switches to it took, or as
        estimated from the ``situation`` before any has been seen."""
        self._learn()
        if model.number not in self._leads:
            now = situation()
            return now.halt + now.switch + now.dump_bytes / now.bandwidth
        return self._leads[model.number]

    def begin(self, request: Request, cycle: int) -> None:
        """Begin the switch to ``request``, with the decision on it."""
        self._begun[request.number] = cycle

    def admitted(self, request: Request, dump: StateTransfer | None, cycle: int) -> None:
        """Note that the host has done its part; ``dump`` may still run."""
        begun = self._begun.pop(request.number, None)
        if begun is None:
            return
        if dump is None:
            self._correct(request, cycle - begun)
        else:
            self._dumping.append((request, dump, begun))

    def _learn(self) -> None:
        """Take dumps that have ended. Of one that failed there are no results."""
        for request, dump, begun in [entry for entry in self._dumping if not entry[1].running]:
            if dump.results:
                self._correct(request, max(result.end for result in dump.results) - begun)
        self._dumping = [entry for entry in self._dumping if entry[1].running]

    def _correct(self, request: Request, measured: float) -> None:
        before = self._leads.get(request.model.number, measured)
        self._leads[request.model.number] = before + self.gain * (measured - before)
