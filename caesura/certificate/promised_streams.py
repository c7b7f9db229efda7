"""Makes the streams of the response-time analysis from a scenario whose models are compiled."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from caesura.certificate.image_costs import ImageCosts, Neighbours
from caesura.certificate.image_stream import image_terms
from caesura.scenario.arrivals import Periodic
from caesura.scenario.device_executor import cycles_per_unit
from caesura.scenario.file_table import ScenarioError
from caesura.scenario.model_images import KernelRecipe, copies
from caesura.scenario.promises import Sporadic
from caesura.scenario.schema import Scenario, Stream
from hw.contract.params import SocParams
from hw.image import Image
from sw.admission import RequestStream


@dataclass(frozen=True)
class PromisedStreams:
    """Holds the ``streams`` of a scenario in cycles. ``section``: the longest work of the host that nothing breaks.
    ``apart``: the models lie side by side in LV2, so that nothing there is dumped."""

    streams: list[RequestStream]
    section: int
    apart: bool


def promised_streams(
    scenario: Scenario, params: SocParams, images: Mapping[str, Image | KernelRecipe]
) -> PromisedStreams:
    """Return the streams of ``scenario`` on the machine of ``params``. Raises :class:`ScenarioError` for what cannot be
    answered for, which names the way out."""
    found = _Terms(scenario, params, {stream.name: _image(stream, images) for stream in scenario.streams})
    return PromisedStreams([found.stream(stream) for stream in scenario.streams], found.section, found.apart)


def check_promises(scenario: Scenario) -> None:
    """Raise :class:`ScenarioError` for promises that no certificate can be given for, whatever the models are."""
    if all(stream.promise == "none" for stream in scenario.streams):
        raise ScenarioError("no stream is promised anything; add promise = 'hard' to those that keep their deadlines")
    if scenario.machine.preemption is None:
        raise ScenarioError("[machine.preemption] is missing; without it, priorities have no effect to answer for")
    if scenario.machine.placed:
        raise ScenarioError("machine.placed lets a policy choose engines; remove it, and name engines for each model")
    users: dict[str, str] = {}
    for stream in scenario.streams:
        _check_stages(scenario, stream)
        name = stream.models[0]
        if name in users:
            raise ScenarioError(
                f"streams {users[name]!r} and {stream.name!r} run one model, {name!r}, and wait for each other; give "
                "it twice, under two names"
            )
        users[name] = stream.name


def _check_stages(scenario: Scenario, stream: Stream) -> None:
    if len(stream.stages) > 1 or not stream.models:
        raise ScenarioError(
            f"stream {stream.name!r} has {len(stream.stages)} stages; give each model a stream of its own, with the "
            "response time of the one before it as jitter"
        )
    if (number := copies(scenario, stream.models[0])) > 1:
        raise ScenarioError(
            f"model {stream.models[0]!r} is loaded {number} times; add copies = 1: its requests follow each other"
        )
    if stream.promise == "hard" and stream.deadline is None:
        raise ScenarioError(f"stream {stream.name!r} is promised its deadline and has none; add deadline = ...")
    if stream.promise == "hard" and stream.police is None and not isinstance(stream.arrivals, Periodic | Sporadic):
        raise ScenarioError(
            f"stream {stream.name!r} is promised its deadline, and its arrivals ({stream.arrivals.kind}) have no least "
            "distance; add police = { period = ..., burst = ... }, or promise nothing"
        )


def _image(stream: Stream, images: Mapping[str, Image | KernelRecipe]) -> Image:
    image = images[stream.models[0]]
    if isinstance(image, KernelRecipe):
        raise ScenarioError(
            f"model {stream.models[0]!r} has a dynamic dimension; a certificate is for one size: give sizes instead"
        )
    return image


class _Terms:
    """Finds the terms of each stream beside all others. ``images``: by stream."""

    def __init__(self, scenario: Scenario, params: SocParams, images: Mapping[str, Image]) -> None:
        self._scenario, self._params, self._images = scenario, params, images
        self._ticks = cycles_per_unit(scenario)
        self._engines = {stream.name: self._engines_of(stream) for stream in scenario.streams}
        self.apart = sum(image.meta.lv2_bytes for image in images.values()) <= params.lv2_bytes
        brief = {name: ImageCosts(image, len(self._engines[name]), Neighbours()) for name, image in images.items()}
        self._switching = {name: one.switching for name, one in brief.items()}
        self.section = max(one.section for one in brief.values()) + max(map(self._host_wait, images))

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
        return max((cycles for other, cycles in self._switching.items() if not self._engines[other] & mine), default=0)

    def _neighbours(self, name: str) -> Neighbours:
        mine = self._engines[name]
        every = frozenset(range(self._params.engines))
        used = every if self._scenario.certificate.dram == "unlimited" else frozenset().union(*self._engines.values())
        others = [image.meta.lv2_bytes for other, image in self._images.items() if other != name]
        return Neighbours(len(used - mine), 0 if self.apart else max(others, default=0), self._host_wait(name))

    def stream(self, stream: Stream) -> RequestStream:
        """Return ``stream`` in cycles. Models that cannot lie side by side in LV2 meet as if on the same engines."""
        mine = self._engines[stream.name]
        terms = image_terms(self._images[stream.name], len(mine), self._neighbours(stream.name))
        period, jitter, burst = self._rate(stream)
        priority = stream.stages[0].priority
        return RequestStream(
            stream.name, stream.priority if priority is None else priority, period, terms.pieces,
            deadline=None if stream.deadline is None else math.floor(stream.deadline * self._ticks),
            jitter=jitter, burst=burst, engines=mine if self.apart else frozenset(range(self._params.engines)),
            start=terms.start, restore=terms.restore, refill=terms.refill, execution=terms.execution, tail=0,
            promised=stream.promise == "hard",
        )  # fmt: skip

    def _rate(self, stream: Stream) -> tuple[int | None, int, int]:
        """Return period, jitter and burst of a stream, where it has them."""
        if stream.police is not None:
            return self._period(stream.name, stream.police.period), 0, stream.police.burst
        match stream.arrivals:
            case Periodic(period=period):
                return self._period(stream.name, period), 0, 1
            case Sporadic(period=period, jitter=jitter, burst=burst):
                return self._period(stream.name, period), math.ceil(jitter * self._ticks), burst
        return None, 0, 1

    def _period(self, name: str, period: float) -> int:
        cycles = math.floor(period * self._ticks)
        if not cycles:
            raise ScenarioError(f"stream {name!r}: a period of {period} is less than a cycle; lengthen it")
        return cycles
