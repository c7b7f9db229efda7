"""Defines a model of a scenario that runs operation by operation: in each request a kernel is matched for each
(**Run-time kernel matching**)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

from caesura.lengths import OperationInference, OperationModel
from caesura.samples import Sample
from caesura.scenario.file_table import ScenarioError
from caesura.scenario.model_executor import ModelRun
from caesura.scenario.served_model import Alone, ModelCopies, Part, ServedModel
from caesura.scenario.served_steps import OnDevice
from sw.driver import Device
from sw.runtime import Request, Session


@dataclass(frozen=True)
class ServedOperations(ServedModel):
    """Is a model whose requests are inferences operation by operation."""

    operations: Sequence[OperationModel] = ()

    def alone(self, device: Device, sample: int) -> tuple[Sample, Alone]:
        """Run a sample on ``device`` with nothing else; return its outputs, and how long its parts took."""
        inference, took = self.operations[0].begin(self.samples[sample]), Alone(0, 0, 0)
        while (part := inference.next_part()) is not None:
            model, given = part
            outputs, stats = Session(device, model.loaded).run(given)
            inference.take(outputs, stats.jobs, stats.begin)
            took = Alone(*map(sum, zip(took, Alone.of(model.loaded, stats), strict=True)))
        return inference.outputs, took

    def close(self) -> None:
        """Unload all kernels."""
        for one in self.operations:
            one.close()


class OperationCopies(ModelCopies):
    """Is such a model as it is loaded on a device: a request is an inference of the next copy, whose parts run one
    behind the other."""

    def __init__(self, name: str, model: ServedOperations) -> None:
        super().__init__([])
        self._name, self._models = name, cycle(model.operations)
        self._open: dict[tuple[str, int, int], OperationInference] = {}
        self._next: dict[tuple[str, int, int], Part] = {}

    def part(self, run: ModelRun, sample: Sample) -> Part:
        """Return the kernel, or the program of kernels, that ``run`` runs next, and its inputs. Raises
        :class:`ScenarioError` if the CPU computes all operations."""
        key = _key(run)
        if key not in self._open:
            self._open[key] = next(self._models).begin(sample)
            if not self._goes_on(key):
                raise ScenarioError(
                    f"model {self._name!r}: kernels: none is for an operation of the model; name others"
                )
        return self._next.pop(key)

    def take(self, run: ModelRun, request: Request, outputs: Sample) -> Sample | None:
        """Take the outputs of a part of ``run``; return those of all of it, or None if another part is to run."""
        inference = self._open[_key(run)]
        assert request.started is not None
        inference.take(outputs, request.results, request.started)
        return None if self._goes_on(_key(run)) else inference.outputs

    def _goes_on(self, key: tuple[str, int, int]) -> bool:
        part = self._open[key].next_part()
        if part is not None:
            self._next[key] = OnDevice(part[0].loaded), part[1]
        return part is not None

    def ended(self, run: ModelRun, *, dropped: bool) -> None:
        """Forget the inference of ``run``."""
        self._open.pop(_key(run))


def _key(run: ModelRun) -> tuple[str, int, int]:
    return run.frame.stream, run.frame.number, run.stage
