"""Loads models of a scenario that have a dynamic dimension."""

from collections.abc import Sequence
from pathlib import Path

from caesura.api import Device
from caesura.lengths import DynamicModel, dynamic, dynamic_ports
from caesura.samples import Sample, random_samples
from caesura.scenario.lengths import lengths_of
from caesura.scenario.model_files import copies
from caesura.scenario.model_images import KernelRecipe
from caesura.scenario.model_spec import ModelSpec
from caesura.scenario.schema import Scenario
from caesura.scenario.served_model import ServedModel, samples_in
from compiler import DynamicDimension


def load_dynamic(
    device: Device, scenario: Scenario, name: str, recipe: KernelRecipe, folder: Path, free: Sequence[int]
) -> ServedModel:
    """Load a model with a dynamic dimension on the engines that it names, or on as many of those that are ``free`` as
    it is compiled for. It has kernels for all lengths that requests, or the samples in files, have."""
    spec = scenario.models[name]
    samples, lengths = _in_files(name, spec, recipe.path, folder)
    for stream in [] if samples else scenario.streams:
        if name in stream.models:
            lengths |= lengths_of(stream.lengths, scenario.seed, stream.name, stream.arrivals, folder)
    covered = range(min(lengths), max(lengths) + 1) if lengths else range(1, 2)  # no request arrives
    engines = spec.engines if isinstance(spec.engines, list) else sorted(free[: recipe.options.engines])
    models = [
        dynamic(
            recipe.path, device, covered, dimension=spec.dimension, engines=engines, fallback=spec.fallback,
            options=recipe.options, cache=recipe.cache,
        )
        for _ in range(copies(scenario, name))
    ]  # fmt: skip
    for model in models:
        model.prepare(*lengths)
    if samples:
        return ServedModel(models, engines, samples, {})
    order = sorted(lengths)
    made = [_random_of_length(models[0], length, scenario.seed) for length in order]
    return ServedModel(models, engines, made, {length: at for at, length in enumerate(order)})


def _random_of_length(model: DynamicModel, length: int, seed: int) -> Sample:
    image = model.at(length).image
    model.release(length)
    return random_samples(image, 1, seed)[0]


def _in_files(name: str, spec: ModelSpec, model: Path, folder: Path) -> tuple[list[Sample], set[int]]:
    """Return the samples of the files that a model names, and their lengths."""
    if not spec.inputs:
        return [], set()
    dimension = DynamicDimension.of(model, spec.dimension)
    ports = dynamic_ports(dimension)
    samples = samples_in(name, spec.inputs, ports, folder, dict(dimension.axes))
    first, axis = dimension.axes[0]
    return samples, {sample[first].shape[axis] for sample in samples}
