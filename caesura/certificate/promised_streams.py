"""Makes the streams of the response-time analysis from a scenario whose models are compiled."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from caesura.certificate.image_costs import ImageCosts, Neighbours
from caesura.certificate.image_stream import image_terms
from caesura.certificate.stream_arrivals import rate
from caesura.scenario.device_executor import cycles_per_unit
from caesura.scenario.file_table import ScenarioError
from caesura.scenario.model_images import KernelRecipe
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
        period, jitter, burst = rate(stream, self._ticks)
        priority = stream.stages[0].priority
        return RequestStream(
            stream.name, stream.priority if priority is None else priority, period, terms.pieces,
            deadline=None if stream.deadline is None else math.floor(stream.deadline * self._ticks),
            jitter=jitter, burst=burst, engines=mine if self.apart else frozenset(range(self._params.engines)),
            start=terms.start, restore=terms.restore, refill=terms.refill, execution=terms.execution, tail=0,
            promised=stream.promise == "hard",
        )  # fmt: skip
