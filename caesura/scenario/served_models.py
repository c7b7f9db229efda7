"""Loads the real models of a scenario on a device, with the samples that their requests take in turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from caesura import api
from caesura.lengths.dynamic_model import DynamicModel, dynamic
from caesura.samples import Input, Sample, random_samples, samples_of
from caesura.scenario.arrivals import request_count
from caesura.scenario.file_table import ScenarioError
from caesura.scenario.lengths import length_of
from caesura.scenario.model_images import KernelRecipe, copies
from caesura.scenario.model_spec import ModelSpec
from caesura.scenario.schema import Scenario, Stream
from compiler import DynamicDimension
from hw.image import Image
from sw.driver import Device as Driver, LoadedModel
from sw.runtime import InputError, RunStats, Session

_SAMPLES = 2  #: random inputs of each model, used in turn; of those in files as many run alone first


@dataclass(frozen=True)
class ServedModel:
    """Is a model that is loaded once or more; requests take the ``copies`` in turn, and the ``samples``, or the one
    ``by_length``. ``engines``: those of each request for a model that does not know them by itself."""

    copies: Sequence[LoadedModel | DynamicModel]
    samples: Sequence[Sample]
    by_length: Mapping[int, int]
    engines: Sequence[int] | None = None

    def sample_for(self, number: int, length: int | None) -> int:
        """Return the number of the sample that request ``number`` takes, whose inputs shall have ``length``."""
        return number % len(self.samples) if length is None or not self.by_length else self.by_length[length]

    def first(self) -> range | Sequence[int]:
        """Return the numbers of the samples that run alone before anything is served."""
        return range(len(self.samples)) if self.by_length else range(len(self.samples))[:_SAMPLES]

    def loaded(self, sample: int) -> LoadedModel:
        """Return the model that runs a sample, as it is loaded."""
        one = self.copies[0]
        return one if isinstance(one, LoadedModel) else one.loaded_for(self.samples[sample])

    def alone(self, device: Driver, sample: int) -> tuple[LoadedModel, Sample, RunStats]:
        """Run a sample on ``device`` with nothing else; return what ran, its outputs, and how long that took."""
        loaded = self.loaded(sample)
        return loaded, *Session(device, loaded).run(self.samples[sample], self.engines)

    def close(self) -> None:
        """Compile no more kernels."""
        for one in self.copies:
            if isinstance(one, DynamicModel):
                one.close()


def load_models(
    device: api.Device, scenario: Scenario, images: Mapping[str, Image | KernelRecipe], folder: Path
) -> dict[str, ServedModel]:
    """Load what ``images`` has for each model. Those whose engines the scenario names come first, so that others get
    the ones that are used least. Raises :class:`ScenarioError` for inputs that do not suit."""
    listed = [name for name in images if isinstance(scenario.models[name].engines, list)]
    order = [*listed, *(name for name in images if name not in listed)]
    return {name: _loaded(device, scenario, name, images[name], folder) for name in order}


def _loaded(
    device: api.Device, scenario: Scenario, name: str, image: Image | KernelRecipe, folder: Path
) -> ServedModel:
    spec, number = scenario.models[name], copies(scenario, name)
    if isinstance(image, KernelRecipe):
        return _dynamic(device, scenario, name, image, folder)
    engines = spec.engines if isinstance(spec.engines, list) else None
    loaded = [device.driver.load(image, engines or "least_used", keep_weights=spec.keep_weights) for _ in range(number)]
    samples = _from_files(name, spec.inputs, image.meta.inputs, folder) or random_samples(
        image, _SAMPLES, scenario.seed
    )
    return ServedModel(loaded, samples, {})


def _from_files(
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


@dataclass
class _Port:
    name: str
    shape: list[int]


def _files_of_any_length(name: str, spec: ModelSpec, model: Path, folder: Path) -> dict[int, list[Sample]]:
    """Return the samples of the files that a model with a dynamic dimension names, by their length there."""
    if not spec.inputs:
        return {}
    dimension = DynamicDimension.of(model, spec.dimension)
    ports = [
        _Port(value.name, [size.dim_value or 1 for size in value.type.tensor_type.shape.dim])
        for value in dimension.proto.graph.input
        if value.name in dimension.inputs
    ]
    found: dict[int, list[Sample]] = {}
    first, axis = dimension.axes[0]
    for sample in _from_files(name, spec.inputs, ports, folder, dict(dimension.axes)):
        found.setdefault(sample[first].shape[axis], []).append(sample)
    return found


def _dynamic(device: api.Device, scenario: Scenario, name: str, recipe: KernelRecipe, folder: Path) -> ServedModel:
    spec = scenario.models[name]
    samples = _files_of_any_length(name, spec, recipe.path, folder)
    streams = [stream for stream in scenario.streams if name in stream.models]
    lengths = sorted({*samples} or {length for one in streams for length in _lengths(scenario, one, folder)})
    models = [
        dynamic(
            recipe.path, device, range(lengths[0], lengths[-1] + 1), dimension=spec.dimension,
            engines=recipe.options.engines, fallback=spec.fallback, options=recipe.options,
        )
        for _ in range(copies(scenario, name))
    ]  # fmt: skip
    engines = spec.engines if isinstance(spec.engines, list) else None
    for model in models:
        model.prepare(*lengths)
    if samples:
        return ServedModel(models, [sample for same in samples.values() for sample in same], {}, engines)
    made = [_random_of_length(models[0], length, scenario.seed) for length in lengths]
    return ServedModel(models, made, {length: at for at, length in enumerate(lengths)}, engines)


def _lengths(scenario: Scenario, stream: Stream, folder: Path) -> set[int]:
    """Return the lengths of all requests of ``stream``."""
    if stream.lengths is None:
        return set()
    numbers = range(request_count(stream.arrivals, folder))
    return {length_of(stream.lengths, scenario.seed, stream.name, number) for number in numbers}


def _random_of_length(model: DynamicModel, length: int, seed: int) -> Sample:
    image = model.at(length).image
    model.release(length)
    return random_samples(image, 1, seed)[0]
