"""Defines a model of a scenario whose requests are conversations that share their steps, and the weights of these."""

from collections.abc import Sequence
from dataclasses import dataclass

from caesura.scenario.model_executor import ModelRun
from caesura.scenario.served_model import ModelCopies, ServedModel
from caesura.scenario.served_operations import OperationCopies, ServedOperations
from caesura.scenario.served_steps import AnyConversation, ServedSteps, StepCopies
from sw.driver import Device, LoadedModel
from sw.runtime import BatchedConversation, ConversationBatch


@dataclass(frozen=True)
class BatchedSamples(ServedSteps):
    """Is a model that was compiled for several sequences."""

    def begun(self, device: Device, loaded: LoadedModel) -> AnyConversation:
        """Return a conversation that runs by itself, in a batch of its own."""
        return ConversationBatch(device, loaded).join()

    def over(self, conversation: AnyConversation) -> None:
        """End a conversation that ran by itself, with its batch."""
        assert isinstance(conversation, BatchedConversation)
        conversation.batch.close()


class BatchCopies(StepCopies):
    """Is such a model as it is loaded on a device. A request joins a batch that has a place left; where there is none,
    another batch begins, on the next copy. It leaves with its last token, and the last to leave ends the batch."""

    def __init__(self, device: Device, model: ServedModel) -> None:
        super().__init__(device, model)
        self._batches: list[ConversationBatch] = []

    def begun(self) -> AnyConversation:
        """Return the conversation of a request that begins."""
        batch = next((batch for batch in self._batches if batch.free_places), None)
        if batch is None:
            loaded = self.on(0)
            assert isinstance(loaded, LoadedModel)
            batch = ConversationBatch(self._device, loaded)
            self._batches.append(batch)
        return batch.join()

    def ended(self, run: ModelRun, *, dropped: bool) -> None:
        """End the conversation of ``run`` as :class:`StepCopies` does, and batches without any."""
        super().ended(run, dropped=dropped)
        for batch in [each for each in self._batches if each.free_places == each.places]:
            batch.close()
            self._batches.remove(batch)


def copies_on(name: str, devices: Sequence[Device], models: Sequence[ServedModel]) -> ModelCopies:
    """Return the model ``name`` as it is loaded on ``devices``, each with what is in its place in ``models``."""
    if isinstance(models[0], ServedOperations):
        return OperationCopies(name, models[0])
    if isinstance(models[0], BatchedSamples):
        return BatchCopies(devices[0], models[0])
    if isinstance(models[0], ServedSteps):
        return StepCopies(devices[0], models[0])
    return ModelCopies(models)
