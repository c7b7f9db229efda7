"""Makes the streams of the response-time analysis from a scenario whose models are compiled."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from caesura.certificate.dram_demand import DramUser, demand_beside
from caesura.certificate.image_costs import Neighbours
from caesura.certificate.image_stream import ImageTerms, image_terms, lesser_terms
from caesura.certificate.stream_arrivals import rate
from caesura.scenario.file_table import ScenarioError
from caesura.scenario.schema import Scenario, Stream
from hw.contract.params import SocParams
from hw.image import Image
from sw.admission import RequestStream


@dataclass(frozen=True)
class PromisedStreams:
    """Holds the ``streams`` of a scenario in cycles. ``section``: the longest work of the host that nothing breaks.
    ``apart``: the models lie side by side in LV2, so that nothing there is dumped. ``bodies``: bounds on each body of
    the model of a stream."""

    streams: list[RequestStream]
    section: int
    apart: bool
    bodies: Mapping[str, Sequence[int]]


class StreamTerms:
    """Finds the terms of each stream of ``scenario`` beside all others, on the machine of ``params``.
    ``images``: by stream.

    Raises :class:`ScenarioError` for what cannot be answered for, which names the way out.
    """

    def __init__(self, scenario: Scenario, params: SocParams, images: Mapping[str, Image]) -> None:
        self._scenario, self._params, self._ticks = scenario, params, scenario.cycles_per_unit
        self._images = images
        self._found: dict[tuple[str, Neighbours], ImageTerms] = {}
        self._engines = {stream.name: self._engines_of(stream) for stream in scenario.streams}
        self._apart = sum(image.meta.lv2_bytes for image in self._images.values()) <= params.lv2_bytes
        self._users = {stream.name: self._user(stream) for stream in scenario.streams}
        self._bounds = {name: self._bounded(name) for name in self._users}

    def streams(self, ends: Mapping[str, int] | None = None) -> PromisedStreams:
        """Return all streams. ``ends``: by when requests of each are known to end, if sooner than by their deadlines:
        so much less of them meets others at the DRAM."""
        users = {
            name: replace(user, deadline=(ends or {}).get(name, user.deadline)) for name, user in self._users.items()
        }
        section = max(one.alone.section for one in users.values()) + max(map(self._host_wait, users))
        bodies = {name: always.bodies for name, (always, _) in self._bounds.items()}
        found = [self._stream(stream, users) for stream in self._scenario.streams]
        return PromisedStreams(found, section, self._apart, bodies)

    def _user(self, stream: Stream) -> DramUser:
        """Return ``stream`` as it is if nobody else is there."""
        mine, hard = self._engines[stream.name], stream.promise == "hard"
        period, _, burst = rate(stream, self._ticks)
        alone = self._beside(stream.name, Neighbours(0, self._window(stream.name)))
        deadline = self._deadline(stream) if hard else None  # without a promise nothing says when it ends
        return DramUser(stream.name, _priority(stream), mine, alone, period, burst, deadline)

    def _engines_of(self, stream: Stream) -> frozenset[int]:
        name = stream.models[0]
        engines, image = self._scenario.models[name].engines, self._images[stream.name]
        if isinstance(engines, list):
            return frozenset(engines)
        used = image.meta.parts or 1 + max((job.engine for job in image.meta.jobs), default=0)
        if used < self._params.engines:
            raise ScenarioError(
                f"model {name!r} runs on {used} of {self._params.engines} engines, and nothing says on which; name "
                f"them: engines = {list(range(used))} in [models.{name}]"
            )
        return frozenset(range(self._params.engines))

    def _host_wait(self, name: str) -> int:
        """Return how long the host may be at work on a switch of streams on other engines."""
        mine = self._engines[name]
        apart = [user for name, user in self._users.items() if not self._engines[name] & mine]
        return max((user.alone.switching for user in apart), default=0)

    def _neighbours(self, name: str) -> Neighbours:
        mine = self._engines[name]
        every = frozenset(range(self._params.engines))
        used = every if self._scenario.certificate.dram == "unlimited" else frozenset().union(*self._engines.values())
        return Neighbours(len(used - mine), self._window(name), self._host_wait(name))

    def _window(self, name: str) -> int:
        """Return the bytes of LV2 that others may overwrite."""
        others = [image.meta.lv2_bytes for other, image in self._images.items() if other != name]
        return 0 if self._apart else max(others, default=0)

    def _deadline(self, stream: Stream) -> int | None:
        return None if stream.deadline is None else math.floor(stream.deadline * self._ticks)

    def _bounded(self, name: str) -> tuple[ImageTerms, ImageTerms]:
        """Return the terms of a stream beside neighbours that are busy all the time, and without their traffic."""
        beside = self._neighbours(name)
        return self._beside(name, beside), self._beside(name, replace(beside, counted=beside.engines > 0))

    def _beside(self, name: str, neighbours: Neighbours) -> ImageTerms:
        if (name, neighbours) not in self._found:
            terms = image_terms(self._images[name], len(self._engines[name]), neighbours)
            self._found[name, neighbours] = terms
        return self._found[name, neighbours]

    def _terms(self, name: str, users: Mapping[str, DramUser]) -> ImageTerms:
        demand = None if self._scenario.certificate.dram == "unlimited" else demand_beside(name, users)
        always, counted = self._bounds[name]
        return always if demand is None else lesser_terms(always, counted, demand)

    def _stream(self, stream: Stream, users: Mapping[str, DramUser]) -> RequestStream:
        """Return ``stream`` in cycles. Models that cannot lie side by side in LV2 meet as if on the same engines."""
        mine, name = self._engines[stream.name], stream.name
        terms = self._terms(name, users)
        period, jitter, burst = rate(stream, self._ticks)
        return RequestStream(
            name, _priority(stream), period, terms.pieces, deadline=self._deadline(stream), jitter=jitter, burst=burst,
            engines=mine if self._apart else frozenset(range(self._params.engines)), start=terms.start,
            restore=terms.restore, refill=terms.refill, execution=terms.execution, tail=0,
            promised=stream.promise == "hard",
        )  # fmt: skip


def _priority(stream: Stream) -> int:
    own = stream.stages[0].priority
    return stream.priority if own is None else own
