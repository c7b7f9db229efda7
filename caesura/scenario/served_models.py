"""Loads the real models of a scenario on a device, with the samples that their requests take in turn."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from caesura import api
from caesura.lengths.dynamic_model import DynamicModel, dynamic
from caesura.samples import Input, Sample, random_samples, samples_of
from caesura.scenario.file_table import ScenarioError
from caesura.scenario.lengths import lengths_of
from caesura.scenario.model_images import KernelRecipe, copies
from caesura.scenario.model_spec import ModelSpec
from caesura.scenario.schema import Scenario
from compiler import DynamicDimension
from hw.image import Image
from sw.driver import Device as Driver, LoadedModel
from sw.runtime import InputError, RunStats, Session

_SAMPLES = 2  #: random inputs of each model, used in turn; of those in files as many run alone first


@dataclass(frozen=True)
class ServedModel:
    """Is a model that is loaded once or more; requests take the ``copies`` in turn, and the ``samples``, or the one
    ``by_length``. ``engines``: those of all copies."""

    copies: Sequence[LoadedModel | DynamicModel]
    engines: Sequence[int]
    samples: Sequence[Sample]
    by_length: Mapping[int, int]

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
        return loaded, *Session(device, loaded).run(self.samples[sample])

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
    loaded: dict[str, ServedModel] = {}
    for name in order:
        image = images[name]
        if isinstance(image, KernelRecipe):
            loaded[name] = _dynamic(device, scenario, name, image, folder, _free(device, loaded.values()))
        else:
            loaded[name] = _loaded(device, scenario, name, image, folder)
    return loaded


def _loaded(device: api.Device, scenario: Scenario, name: str, image: Image, folder: Path) -> ServedModel:
    spec, number = scenario.models[name], copies(scenario, name)
    engines = spec.engines if isinstance(spec.engines, list) else None
    loaded = [device.driver.load(image, engines or "least_used", keep_weights=spec.keep_weights) for _ in range(number)]
    samples = _from_files(name, spec.inputs, image.meta.inputs, folder)
    samples = samples or random_samples(image, _SAMPLES, scenario.seed)
    used = sorted({engine for model in loaded for engine in model.engines})
    return ServedModel(loaded, used, samples, {})


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


def _free(device: api.Device, loaded: Iterable[ServedModel]) -> list[int]:
    """Return the engines of the device, those that the fewest of ``loaded`` use first."""
    used = Counter(engine for model in loaded for engine in model.engines)
    return sorted(range(device.params.engines), key=lambda engine: used[engine])


def _dynamic(
    device: api.Device, scenario: Scenario, name: str, recipe: KernelRecipe, folder: Path, free: Sequence[int]
) -> ServedModel:
    """Return a model with a dynamic dimension: on the engines that it names, or on as many of those that are ``free``
    as it is compiled for."""
    spec = scenario.models[name]
    samples = _files_of_any_length(name, spec, recipe.path, folder)
    streams = [stream for stream in scenario.streams if name in stream.models]
    lengths = sorted(
        {*samples}
        or {
            length
            for one in streams
            for length in lengths_of(one.lengths, scenario.seed, one.name, one.arrivals, folder)
        }
    )
    engines = spec.engines if isinstance(spec.engines, list) else sorted(free[: recipe.options.engines])
    models = [
        dynamic(
            recipe.path, device, range(lengths[0], lengths[-1] + 1), dimension=spec.dimension,
            engines=engines, fallback=spec.fallback, options=recipe.options,
        )
        for _ in range(copies(scenario, name))
    ]  # fmt: skip
    for model in models:
        model.prepare(*lengths)
    if samples:
        return ServedModel(models, engines, [sample for same in samples.values() for sample in same], {})
    made = [_random_of_length(models[0], length, scenario.seed) for length in lengths]
    return ServedModel(models, engines, made, {length: at for at, length in enumerate(lengths)})


def _random_of_length(model: DynamicModel, length: int, seed: int) -> Sample:
    image = model.at(length).image
    model.release(length)
    return random_samples(image, 1, seed)[0]
