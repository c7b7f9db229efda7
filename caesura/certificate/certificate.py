"""Admits a scenario or refuses it: the worst-case response time of each stream that is promised its deadline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from caesura.api import resolve
from caesura.certificate.dump_room import check_dump_room
from caesura.certificate.priority_search import searched
from caesura.certificate.promise_checks import check_promises, images_by_stream
from caesura.certificate.promised_streams import PromisedStreams, StreamTerms
from caesura.certificate.remedies import breaking_term, remedies
from caesura.scenario.model_images import ModelImages
from caesura.scenario.schema import Scenario, load_scenario
from caesura.views.progress import Progress
from sw.admission import RequestStream, Response, WorstStorm, responses, worst_phases


@dataclass(frozen=True)
class Certificate:
    """Holds the worst case of each promised stream of a scenario, in cycles, and what it was computed from.

    ``streams``: all of them, with their priorities; ``section``: the host's longest work that nothing breaks;
    ``assumptions``: sentences that say under which conditions it holds; ``body_limits``: of each stream's model, the
    most cycles that each of its bodies takes.
    """

    scenario: str
    machine: str
    streams: Sequence[RequestStream]
    responses: Sequence[Response]
    section: int
    assumptions: Sequence[str]
    body_limits: Mapping[str, Sequence[int]]

    @property
    def accepted(self) -> bool:
        """Return whether every promise is kept."""
        return all(response.accepted for response in self.responses)

    @property
    def refused(self) -> list[Response]:
        """Return the streams that may miss their deadlines."""
        return [response for response in self.responses if not response.accepted]

    def of(self, name: str) -> Response:
        """Return the worst case of the promised stream ``name``. Raises ``KeyError`` for another."""
        return {response.stream.name: response for response in self.responses}[name]

    def breaking_term(self, name: str) -> str:
        """Return the largest term of the response time of stream ``name``, in words."""
        return breaking_term(self.of(name))

    def remedies(self, name: str) -> list[str]:
        """Return changes, each of which alone would let stream ``name`` keep its promise."""
        return remedies(self.streams, self.section, self.of(name))

    def storm(self, name: str, rounds: int, seed: int = 0) -> WorstStorm:
        """Return the worst phases that ``rounds`` runs of the abstract machine find for stream ``name``."""
        return worst_phases(self.streams, self.of(name).stream, rounds=rounds, seed=seed, section=self.section)


def admit(
    scenario: Scenario | Path | str,
    *,
    folder: Path | str | None = None,
    jobs: int | None = None,
    cache: bool = True,
    progress: Progress | None = None,
) -> Certificate:
    """Return the certificate of a scenario, or of a file that holds one: whether every stream with ``promise = "hard"``
    keeps its deadline whatever the phases, from bounds on the programs of all models.

    ``folder``: where the paths in the scenario begin; that of its file by default. Models are compiled; ``jobs`` and
    ``cache`` are as for ``caesura.compile``. Raises :class:`ScenarioError` for a scenario that no certificate can be
    computed for, and what the compiler raises.
    """
    if not isinstance(scenario, Scenario):
        folder, scenario = folder or Path(scenario).parent, load_scenario(scenario)
    check_promises(scenario)
    params = resolve(scenario.machine.preset).replace(**scenario.machine.params)
    progress = progress or Progress()
    images = ModelImages(progress, jobs, cache=cache).of(scenario, params, Path(folder or "."))
    progress.task("bounding programs")
    by_stream = images_by_stream(scenario, images)
    check_dump_room(params, by_stream.values())
    terms = StreamTerms(scenario, params, by_stream)
    found = terms.streams()
    streams, told = _answered(scenario, found)
    if all(response.accepted for response in told):  # so that requests end sooner than by their deadlines
        ends = {one.stream.name: one.response for one in told if one.response is not None}
        streams, told = _answered(scenario, found := terms.streams(ends))
    return Certificate(
        scenario.name,
        params.name,
        streams,
        told,
        found.section,
        _assumptions(scenario, apart=found.apart),
        found.bodies,
    )


def _answered(scenario: Scenario, found: PromisedStreams) -> tuple[Sequence[RequestStream], list[Response]]:
    """Return the streams with their priorities, and what is found for them."""
    search = scenario.certificate.priorities == "search"
    streams = searched(found.streams, found.section) if search else found.streams
    return streams, responses(streams, found.section)


def _assumptions(scenario: Scenario, *, apart: bool) -> list[str]:
    return [
        "Engines that other streams use load, store and fetch as often as their requests may come, or all the time."
        if scenario.certificate.dram == "pair"
        else "All engines beside a stream load, store and fetch all the time.",
        "Models lie side by side in LV2: nothing there is dumped."
        if apart
        else "Models do not fit in LV2 together, so they take turns even on different engines, and LV2 is dumped.",
        "Priorities are those of the scenario."
        if scenario.certificate.priorities == "given"
        else "Priorities were searched for.",
        "No engine fails, and the host's own traffic to DRAM is not counted.",
        "Requests that come sooner than their stream may send them count from when it may.",
    ]
