"""Loads models of a scenario that have a dynamic dimension."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from onnx import helper

from caesura.api import Device
from caesura.lengths import DynamicModel, OperationModel, by_operation, dynamic, dynamic_ports, is_of_operations
from caesura.samples import Sample, random_samples
from caesura.scenario.file_table import ScenarioError
from caesura.scenario.lengths import lengths_of
from caesura.scenario.model_files import copies
from caesura.scenario.model_images import KernelRecipe
from caesura.scenario.model_spec import ModelSpec
from caesura.scenario.schema import Scenario
from caesura.scenario.served_model import ServedModel, samples_in
from caesura.scenario.served_operations import ServedOperations
from compiler import DynamicDimension
from sw.kernels import NoKernelError


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
    if recipe.archive is not None and is_of_operations(recipe.archive):
        return _by_operation(device, scenario, name, recipe, engines, samples, sorted(lengths))
    models = [
        dynamic(
            recipe.path, device, covered, dimension=spec.dimension, engines=engines, fallback=spec.fallback,
            options=recipe.options, cache=recipe.cache, kernels=recipe.archive,
        )
        for _ in range(copies(scenario, name))
    ]  # fmt: skip
    for model in models if recipe.archive is None else []:
        model.prepare(*lengths)
    if samples:
        return ServedModel(models, engines, samples, {})
    order = sorted(lengths)
    made = [_random_of_length(models[0], length, scenario.seed) for length in order]
    return ServedModel(models, engines, made, {length: at for at, length in enumerate(order)})


def _by_operation(
    device: Device, scenario: Scenario, name: str, recipe: KernelRecipe, engines: Sequence[int],
    samples: list[Sample], lengths: Sequence[int],
) -> ServedOperations:  # fmt: skip
    """Return the model with the kernels of its operations that the library has. Raises :class:`ScenarioError` for a
    length that has none."""
    if scenario.machine.devices > 1:
        raise ScenarioError(
            f"model {name!r} runs operation by operation, on one device: remove machine.devices = "
            f"{scenario.machine.devices}"
        )
    spec = scenario.models[name]
    models = [
        by_operation(
            recipe.path, device, kernels=recipe.archive, dimension=spec.dimension, engines=engines,
            fallback=spec.fallback, options=recipe.options,
        )
        for _ in range(copies(scenario, name))
    ]  # fmt: skip
    try:
        for length in lengths:
            models[0].match(length)
    except NoKernelError as error:
        raise ScenarioError(f"model {name!r}: kernels {recipe.archive}: {error}") from None
    by_length = {} if samples else {length: at for at, length in enumerate(lengths)}
    samples = samples or [_random_inputs(name, models[0], length, scenario.seed) for length in lengths]
    return ServedOperations([], engines, samples, by_length, models)


def _random_inputs(name: str, model: OperationModel, length: int, seed: int) -> Sample:
    """Return random inputs, of 8 bits or numbers. Raises :class:`ScenarioError` for whole numbers, whose range nothing
    says where nothing is compiled."""
    made, rng = dict[str, np.ndarray](), np.random.default_rng(seed)
    for value in model.dimension.fixed(length).graph.input:
        if value.name not in model.dimension.inputs:
            continue  # a constant with a default
        kind = value.type.tensor_type
        dtype, shape = helper.tensor_dtype_to_np_dtype(kind.elem_type), [size.dim_value for size in kind.shape.dim]
        if dtype.itemsize == 1:
            made[value.name] = rng.integers(0, 256, shape, np.uint8).view(dtype)
        elif dtype.kind == "f":
            made[value.name] = rng.standard_normal(shape).astype(dtype)
        else:
            raise ScenarioError(
                f"model {name!r}: input {value.name!r} is {dtype}, whose range nothing says: give inputs = a file"
            )
    return made


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
