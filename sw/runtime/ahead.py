"""Switching ahead of an arrival that was announced, so that it finds the engines free (of **Cancellation points**).

The published schedule sends the pause one dump time before the CPU has ended the step in between. Here the time that a
switch takes is measured, and corrected by every switch.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from sw.driver import LoadedModel
from sw.driver.supervisor import Operation
from sw.runtime.choice import Situation


class Incoming(Protocol):
    """A request of either run time."""

    number: int

    @property
    def model(self) -> LoadedModel:
        """The model it runs."""
        ...


@dataclass
class Ahead:
    """What is known of switches, by incoming model. ``gain``: how far a measurement moves what is expected."""

    gain: float
    decided: set[int] = field(default_factory=set)  #: requests not to be decided on again before they arrive
    expected: set[int] = field(default_factory=set)  #: requests for which a switch has begun before they arrived
    _leads: dict[int, float] = field(default_factory=dict)  #: by number of the model
    _begun: dict[int, int] = field(default_factory=dict)  #: switches that have not ended, by number of the request
    _dumping: list[tuple[Incoming, Operation, int]] = field(default_factory=list)

    def lead(self, model: LoadedModel, situation: Callable[[], Situation]) -> float:
        """Cycles before an arrival for ``model`` at which to begin: as long as switches to it took, or as estimated
        from the ``situation`` before any has been seen."""
        self._learn()
        if model.number not in self._leads:
            now = situation()
            return now.halt + now.switch + now.dump_bytes / now.bandwidth
        return self._leads[model.number]

    def begin(self, request: Incoming, cycle: int) -> None:
        """The switch to ``request`` begins, with the decision on it."""
        self._begun[request.number] = cycle

    def admitted(self, request: Incoming, dump: Operation | None, cycle: int) -> None:
        """The host has done its part; ``dump`` may still run."""
        begun = self._begun.pop(request.number, None)
        if begun is None:
            return
        if dump is None:
            self._correct(request, cycle - begun)
        else:
            self._dumping.append((request, dump, begun))

    def _learn(self) -> None:
        """Take dumps that have ended. Of one that failed there are no results."""
        for request, dump, begun in [entry for entry in self._dumping if not entry[1].jobs]:
            if dump.results:
                self._correct(request, max(result.end for result in dump.results) - begun)
        self._dumping = [entry for entry in self._dumping if entry[1].jobs]

    def _correct(self, request: Incoming, measured: float) -> None:
        before = self._leads.get(request.model.number, measured)
        self._leads[request.model.number] = before + self.gain * (measured - before)
