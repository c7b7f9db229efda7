"""Loads the real models of a scenario on a device."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from caesura.api import Device
from caesura.samples import random_samples
from caesura.scenario.dynamic_models import load_dynamic
from caesura.scenario.file_table import ScenarioError
from caesura.scenario.model_files import copies
from caesura.scenario.model_images import KernelRecipe, naming
from caesura.scenario.schema import Scenario
from caesura.scenario.served_batches import BatchedSamples
from caesura.scenario.served_model import SAMPLES, ServedModel, samples_in
from caesura.scenario.served_steps import ServedSteps, step_samples, tokens_of
from hw.image import Image
from sw.admission import Admission
from sw.driver import BODY
from sw.runtime import batch_places, step_ports


def load_models(
    device: Device, scenario: Scenario, images: Mapping[str, Image | KernelRecipe], folder: Path,
    certificate: Admission | None = None,
) -> dict[str, ServedModel]:  # fmt: skip
    """Load what ``images`` has for each model. Those whose engines the scenario names come first, so that others get
    the ones that are used least. Bodies may take as long as the ``certificate`` says, if there is one. Raises
    :class:`ScenarioError` for inputs that do not suit."""
    listed = [name for name in images if isinstance(scenario.models[name].engines, list)]
    order = [*listed, *(name for name in images if name not in listed)]
    limits = {} if certificate is None else certificate.body_limits
    most = {stream.models[0]: limits[stream.name] for stream in scenario.streams if stream.name in limits}
    loaded: dict[str, ServedModel] = {}
    for name in order:
        image = images[name]
        if isinstance(image, KernelRecipe):
            with naming(name):
                loaded[name] = load_dynamic(device, scenario, name, image, folder, _free(device, loaded.values()))
        else:
            loaded[name] = _loaded(device, scenario, name, image, folder, most.get(name, BODY))
    return loaded


def _loaded(
    device: Device, scenario: Scenario, name: str, image: Image, folder: Path, most: int | Sequence[int]
) -> ServedModel:
    spec, number = scenario.models[name], copies(scenario, name)
    engines = spec.engines if isinstance(spec.engines, list) else None
    loaded = [
        device.driver.load(image, engines or "least_used", keep_weights=spec.keep_weights, body_cycles=most)
        for _ in range(number)
    ]
    used = sorted({engine for model in loaded for engine in model.engines})
    if step_ports(image)[0]:
        steps, starts = step_samples(scenario, name, image, folder)
        if batch_places(image) > 1:
            return BatchedSamples(loaded, used, steps, {}, starts)
        return ServedSteps(loaded, used, steps, {}, starts)
    if tokens := tokens_of(scenario, name):
        raise ScenarioError(
            f"model {name!r} keeps nothing from one inference to the next, and a stage has {tokens} tokens: remove them"
        )
    samples = samples_in(name, spec.inputs, image.meta.inputs, folder)
    samples = samples or random_samples(image, SAMPLES, scenario.seed)
    return ServedModel(loaded, used, samples, {})


def _free(device: Device, loaded: Iterable[ServedModel]) -> list[int]:
    """Return the engines of the device, those that the fewest of ``loaded`` use first."""
    used = Counter(engine for model in loaded for engine in model.engines)
    return sorted(range(device.params.engines), key=lambda engine: used[engine])
