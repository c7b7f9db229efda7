"""Measures how long requests of each stream take with nothing else on the machine."""

from pathlib import Path
from typing import NamedTuple, Protocol

from caesura.scenario.arrivals import Closed, TraceSpec
from caesura.scenario.lengths import lengths_of
from caesura.scenario.machine_choice import on_devices
from caesura.scenario.outcome import Outcome
from caesura.scenario.policies import Policies
from caesura.scenario.schema import CYCLES, Scenario

_APART = 100_000  #: cycles in which the host ends all that belongs to a request


class ScenarioRunner(Protocol):
    """Runs scenarios."""

    def run(self, scenario: Scenario, policies: Policies, folder: Path) -> Outcome:
        """Serve all requests. ``folder``: where the scenario's file lies, for the paths in it."""
        ...


class TimesAlone(NamedTuple):
    """Holds turnarounds of one request by itself, of each stream, and of each length where its requests have some; that
    of the stream is their mean then."""

    streams: dict[str, float]
    lengths: dict[tuple[str, int], float]


def times_alone(runner: ScenarioRunner, scenario: Scenario, folder: Path) -> TimesAlone:
    """Return how long one request of each stream takes, and one of each length, one after the other."""
    streams: dict[str, float] = {}
    lengths: dict[tuple[str, int], float] = {}
    for stream in scenario.streams:
        known = lengths_of(stream.lengths, scenario.seed, stream.name, stream.arrivals, folder)
        apart = _APART / CYCLES.get(scenario.time_unit, 1)
        single = stream.model_copy(update={"late": "keep", **_one_each(known, apart)})
        alone = on_devices(scenario.without_outputs(), 1).model_copy(
            update={"name": f"one request of {stream.name}", "streams": [single]}
        )
        frames = runner.run(alone, Policies.named("fcfs"), folder).frames
        streams[stream.name] = sum(frame.turnaround for frame in frames) / len(frames)
        lengths |= {(stream.name, frame.length): frame.turnaround for frame in frames if frame.length is not None}
    return TimesAlone(streams, lengths)


def _one_each(lengths: set[int], apart: float) -> dict[str, object]:
    """Return what changes in a stream that sends a request of each length, ``apart`` from the end of the one before, or
    one if there are no lengths."""
    if not lengths:
        return {"arrivals": TraceSpec(kind="trace", times=[0.0])}
    return {"arrivals": Closed(kind="closed", count=len(lengths), think=apart), "lengths": sorted(lengths)}
