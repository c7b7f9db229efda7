"""Defines a model of a scenario that keeps a state: each request is a conversation, token by token."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from caesura.samples import Sample, random_of
from caesura.scenario.file_table import ScenarioError
from caesura.scenario.model_executor import ModelRun
from caesura.scenario.schema import Scenario
from caesura.scenario.served_model import SAMPLES, Alone, ModelCopies, ServedModel
from caesura.step_samples import sequences_of
from hw.image import Image
from sw.driver import Device, LoadedModel
from sw.runtime import (
    BatchedConversation,
    Conversation,
    InputError,
    batch_places,
    counts_steps,
    most_steps,
    single_ports,
    step_ports,
)

AnyConversation = Conversation | BatchedConversation


@dataclass(frozen=True)
class ServedSteps(ServedModel):
    """Is a model whose requests are conversations. ``samples`` are the steps of all its sequences, which requests take
    in turn; ``starts``: the first of each sequence, and the end of the last."""

    starts: Sequence[int] = ()
    _alone: list[AnyConversation] = field(default_factory=list)  #: the one that runs with nothing else, if one does

    def sample_for(self, number: int, run: ModelRun) -> int:
        """Return the number of the step that a run is."""
        return self.starts[run.frame.number % (len(self.starts) - 1)] + run.token

    def first(self) -> range:
        """Return the numbers of all steps, which run alone in this order."""
        return range(len(self.samples))

    def alone(self, device: Device, sample: int) -> tuple[Sample, Alone]:
        """Run a step on ``device`` with nothing else, behind those of its sequence before it, which ran just now;
        return its outputs, and how long that took."""
        loaded = self.loaded(sample)
        if sample in self.starts:
            self._alone[:] = [self.begun(device, loaded)]
        outputs, stats = self._alone[0].step(self.samples[sample])
        if sample + 1 in self.starts:
            self.over(self._alone.pop())
        return outputs, Alone.of(loaded, stats)

    def begun(self, device: Device, loaded: LoadedModel) -> AnyConversation:
        """Return a conversation that runs by itself."""
        return Conversation(device, loaded)

    def over(self, conversation: AnyConversation) -> None:
        """End a conversation that ran by itself."""
        conversation.close()


Served = TypeVar("Served")


@dataclass(frozen=True, eq=False)
class OnDevice(Generic[Served]):
    """Is what serves a request on the only device: a conversation, say."""

    served: Served

    def on(self, device: int) -> Served:
        """Return it, whatever the device."""
        return self.served


class StepCopies(ModelCopies):
    """Is a model whose requests are conversations, as it is loaded on a device: each begins with the first token of a
    request, on the next copy, and ends with the last."""

    def __init__(self, device: Device, model: ServedModel) -> None:
        super().__init__([model])
        self._device = device
        self._open: dict[tuple[str, int, int], AnyConversation] = {}

    def serving(self, run: ModelRun) -> OnDevice[AnyConversation]:
        """Return the conversation that ``run`` goes on with."""
        key = run.frame.stream, run.frame.number, run.stage
        if not run.token:
            self._open[key] = self.begun()
        return OnDevice(self._open[key])

    def begun(self) -> AnyConversation:
        """Return the conversation of a request that begins."""
        loaded = self.on(0)
        assert isinstance(loaded, LoadedModel)
        return Conversation(self._device, loaded)

    def ended(self, run: ModelRun, *, dropped: bool) -> None:
        """End the conversation of ``run`` if that was its last token, or is one that will have no result."""
        if dropped or run.next_token() is None:
            self._open.pop((run.frame.stream, run.frame.number, run.stage)).close()


def tokens_of(scenario: Scenario, name: str) -> int:
    """Return the most tokens that a request has for the model ``name``; 0 if no stage says how many."""
    stages = [stage for stream in scenario.streams for stage in stream.stages if stage.model == name]
    return max((stage.tokens or 0 for stage in stages), default=0)


def step_samples(scenario: Scenario, name: str, image: Image, folder: Path) -> tuple[list[Sample], list[int]]:
    """Return the steps of all sequences that requests of a model take in turn, and where each begins, and the end:
    those in the files that it names, or random ones. Raises :class:`ScenarioError` for one that is too short, or longer
    than the model's memory."""
    spec, tokens = scenario.models[name], max(1, tokens_of(scenario, name))
    if scenario.machine.devices > 1:
        raise ScenarioError(
            f"model {name!r} keeps a state, which is on one device: remove machine.devices = {scenario.machine.devices}"
        )
    if tokens > (most := most_steps(image)):
        raise ScenarioError(
            f"model {name!r} has memory for {most} tokens, and a stage has {tokens}; compile it for a longer past, or "
            "lower tokens"
        )
    ports = step_ports(image)[0] if batch_places(image) == 1 else single_ports(image)
    try:
        sequences = [one for file in spec.inputs for one in sequences_of(folder / file, ports)]
    except InputError as error:
        raise ScenarioError(f"model {name!r}: inputs: {error}") from None
    if min(map(len, sequences), default=tokens) < tokens:
        raise ScenarioError(
            f"model {name!r}: inputs: a sequence has {min(map(len, sequences))} steps, and a stage {tokens} tokens; "
            "lower tokens, or name others"
        )
    given = [port for port in ports if not counts_steps(port)]
    sequences = sequences or [random_of(image, given, tokens, scenario.seed + number) for number in range(SAMPLES)]
    starts, samples = [0], list[Sample]()
    for sequence in sequences:
        samples += sequence[:tokens]
        starts.append(len(samples))
    return samples, starts
