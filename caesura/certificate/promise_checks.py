"""Refuses promises that no certificate can be given for, whatever the models are."""

from collections.abc import Mapping

from caesura.scenario.arrivals import Periodic
from caesura.scenario.file_table import ScenarioError
from caesura.scenario.model_images import KernelRecipe, copies
from caesura.scenario.promises import Sporadic
from caesura.scenario.schema import Scenario, Stream
from hw.image import Image
from sw.runtime import step_ports


def check_promises(scenario: Scenario) -> None:
    """Raise :class:`ScenarioError` for promises that no certificate can be given for, and names the way out."""
    if all(stream.promise == "none" for stream in scenario.streams):
        raise ScenarioError("no stream is promised anything; add promise = 'hard' to those that keep their deadlines")
    if scenario.machine.devices > 1:
        raise ScenarioError(
            f"machine.devices = {scenario.machine.devices}: a certificate is for one device; leave devices out, and "
            "give each device a scenario of its own"
        )
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
    if (tokens := stream.stages[0].tokens) is not None:
        raise ScenarioError(
            f"stream {stream.name!r} has {tokens} tokens a request; a certificate is for requests of one inference, so "
            "leave the stream out, or remove them"
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


def images_by_stream(scenario: Scenario, images: Mapping[str, Image | KernelRecipe]) -> dict[str, Image]:
    """Return the image of the model of each stream. Raises :class:`ScenarioError` for a model of any length, and for
    one that keeps a state: beginning and ending a conversation is not in the analysis."""
    found = {}
    for stream in scenario.streams:
        image = images[stream.models[0]]
        if isinstance(image, KernelRecipe):
            raise ScenarioError(
                f"model {stream.models[0]!r} has a dynamic dimension; a certificate is for one size: give sizes instead"
            )
        if step_ports(image)[0]:
            raise ScenarioError(
                f"model {stream.models[0]!r} keeps a state, so its requests are conversations; a certificate is for "
                "requests of one inference: leave its stream out"
            )
        found[stream.name] = image
    return found
