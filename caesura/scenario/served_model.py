"""Defines a model of a scenario as it is on a device: its copies, and the samples that requests take in turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from caesura.lengths import DynamicModel
from caesura.samples import Input, Sample, samples_of
from caesura.scenario.file_table import ScenarioError
from caesura.scenario.model_executor import ModelRun
from sw.driver import Device, LoadedModel
from sw.runtime import InputError, ModelOnDevices, Request, RunStats, Session, durations

Part = tuple[ModelOnDevices, Sample]  #: what a request to the run time runs, and its inputs


class Alone(NamedTuple):
    """Holds cycles of one inference that runs by itself: memory access and compute of all layers, and as the host sees
    it."""

    load: int
    compute: int
    latency: int

    @classmethod
    def of(cls, loaded: LoadedModel, stats: RunStats) -> "Alone":
        """Return those of a run of a loaded model."""
        layers = durations(loaded.image, stats.jobs).values()
        return cls(sum(layer.load for layer in layers), sum(layer.compute for layer in layers), stats.latency)


SAMPLES = 2  #: random inputs of each model, used in turn; of those in files as many run alone first


@dataclass(frozen=True)
class ServedModel:
    """Is a model that is loaded on a device, once or more; requests take the ``copies`` in turn, and the ``samples``,
    or the one ``by_length``. ``engines``: those of all copies."""

    copies: Sequence[LoadedModel | DynamicModel]
    engines: Sequence[int]
    samples: Sequence[Sample]
    by_length: Mapping[int, int]

    def sample_for(self, number: int, run: ModelRun) -> int:
        """Return the number of the sample that ``run`` takes, the request ``number`` for the model."""
        length = run.frame.length
        return number % len(self.samples) if length is None or not self.by_length else self.by_length[length]

    def first(self) -> range | Sequence[int]:
        """Return the numbers of the samples that run alone before anything is served."""
        return range(len(self.samples)) if self.by_length else range(len(self.samples))[:SAMPLES]

    def loaded(self, sample: int) -> LoadedModel:
        """Return the model that runs a sample, as it is loaded."""
        one = self.copies[0]
        return one if isinstance(one, LoadedModel) else one.loaded_for(self.samples[sample])

    def alone(self, device: Device, sample: int) -> tuple[Sample, Alone]:
        """Run a sample on ``device`` with nothing else; return its outputs, and how long that took."""
        loaded = self.loaded(sample)
        outputs, stats = Session(device, loaded).run(self.samples[sample])
        return outputs, Alone.of(loaded, stats)

    def close(self) -> None:
        """Compile no more kernels."""
        for one in self.copies:
            if isinstance(one, DynamicModel):
                one.close()


class ModelCopies:
    """Is a model as it is loaded on several devices, ``models`` by number: requests on a device take its copies in
    turn."""

    def __init__(self, models: Sequence[ServedModel]) -> None:
        self._copies = [cycle(model.copies) for model in models]

    def on(self, device: int) -> LoadedModel | DynamicModel:
        """Return the copy that the next request on a device runs."""
        return next(self._copies[device])

    def serving(self, run: ModelRun) -> ModelOnDevices:
        """Return what serves ``run``."""
        return self

    def part(self, run: ModelRun, sample: Sample) -> Part:
        """Return what is to be run first, or next, for ``run``, which takes ``sample``."""
        return self.serving(run), sample

    def take(self, run: ModelRun, request: Request, outputs: Sample) -> Sample | None:
        """Take the outputs of a part of ``run``; return those of all of it, or None if another part is to run."""
        return outputs

    def ended(self, run: ModelRun, *, dropped: bool) -> None:
        """Say that ``run`` has ended, with a result unless it was ``dropped``."""


def samples_in(
    name: str, files: Sequence[Path], ports: Sequence[Input], folder: Path, axes: Mapping[str, int] | None = None
) -> list[Sample]:
    """Return the samples of all ``files`` that a model names. Raises :class:`ScenarioError`."""
    try:
        found = [sample for file in files for sample in samples_of(folder / file, ports, axes=axes)]
    except InputError as error:
        raise ScenarioError(f"model {name!r}: inputs: {error}") from None
    if files and not found:
        raise ScenarioError(f"model {name!r}: inputs: {', '.join(map(str, files))} hold no sample; name others")
    return found
