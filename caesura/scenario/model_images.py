"""Compiles the real models of a scenario, to lie side by side in LV2 where that has room."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from caesura import api
from caesura.image_files import check_machine
from caesura.model_cycles import model_cycles
from caesura.scenario.file_table import ScenarioError
from caesura.scenario.model_files import copies, model_file
from caesura.scenario.model_spec import ModelSpec
from caesura.scenario.schema import Scenario
from caesura.views.progress import Progress, compiling
from compiler import (
    ALL_LV2,
    CLAIM_LOSS,
    CompileError,
    OpenDimension,
    Options,
    UnsupportedModel,
    dynamic_batches,
    read_model,
)
from hw.contract.params import SocParams
from hw.image import Image, ImageError

Engines = int | Literal["auto"]


@contextmanager
def naming(model: str) -> Iterator[None]:
    """Name ``model`` in errors of the compiler."""
    try:
        yield
    except CompileError as error:
        named = str(error).startswith(f"model {model!r}")
        raise CompileError(str(error) if named else f"model {model!r}: {error}") from error


@dataclass(frozen=True)
class KernelRecipe:
    """Says how the kernels of a model with a dynamic dimension are compiled, each for a length; ``archive``: the file
    where they are found, if the scenario names one."""

    path: Path
    options: Options
    cache: bool = True
    archive: Path | None = None


class ModelImages:
    """Compiles models of scenarios, each once for a machine and a share of LV2. ``jobs`` and ``cache`` are as for
    ``caesura.compile``."""

    def __init__(self, progress: Progress, jobs: int | None = None, *, cache: bool = True) -> None:
        self._progress, self._jobs, self._cache = progress, jobs, cache
        self._images: dict[tuple[object, ...], Image] = {}

    def of(self, scenario: Scenario, params: SocParams, folder: Path) -> dict[str, Image | KernelRecipe]:
        """Return what the models that streams run are compiled to; of one with a dynamic dimension how it will be.
        ``folder``: where the scenario's file lies.

        Copies of models share what is left of LV2 evenly, unless the scenario or an image says how much they may use.
        A model keeps its own claim where its share costs more cycles than that, by more than a claim may cost.
        Raises :class:`ScenarioError` for what cannot be read or compiled.
        """
        specs = {name: scenario.models[name] for name in scenario.used_models}
        number = {name: copies(scenario, name) for name in specs}
        done: dict[str, Image] = {}
        for name, spec in specs.items():
            if _is_planned(spec):
                with naming(name):
                    done[name] = self._fixed(name, spec, params, folder)
        claims = {name: image.meta.lv2_bytes for name, image in done.items()}
        claims |= {
            name: params.lv2_bytes if spec.lv2_limit == "all" else spec.lv2_limit
            for name, spec in specs.items()
            if spec.lv2_limit is not None
        }
        left = params.lv2_bytes - sum(size * number[name] for name, size in claims.items())
        shares = sum(number[name] for name in specs if name not in claims)
        share = max(0, left) // max(1, shares) // params.lv1_word * params.lv1_word
        found: dict[str, Image | KernelRecipe] = {}
        for name, spec in specs.items():
            with naming(name):
                found[name] = done.get(name) or self._shared(
                    name, spec, params, folder, placed=scenario.machine.placed, share=share
                )
        return found

    def _fixed(self, name: str, spec: ModelSpec, params: SocParams, folder: Path) -> Image:
        """Return the image of a model that is compiled, or planned, already."""
        if spec.image is None:
            assert spec.plan is not None
            return self._image(name, spec, model_file(name, spec, folder), params, None, None, folder / spec.plan)
        path = folder / spec.image
        try:
            image = Image.load(path)
        except ImageError as error:
            raise ScenarioError(f"model {name!r}: {error}") from None
        try:
            check_machine(path, image, params)
        except ImageError as error:
            told = (
                f"model {name!r}: {path}: {error}, or set machine.preset and machine.params to what it was compiled for"
            )
            raise ScenarioError(told) from None
        return image

    def _shared(
        self, name: str, spec: ModelSpec, params: SocParams, folder: Path, *, placed: bool, share: int
    ) -> Image | KernelRecipe:
        path, engines = model_file(name, spec, folder), _engines(name, spec, params, placed=placed)
        options = replace(api.options_of(spec.options), placed=spec.placed)
        alone = ALL_LV2 if spec.keep_weights else None
        limited = replace(options, lv2_limit=spec.lv2_limit or (share if share < params.lv2_bytes else alone))
        if spec.dimension is not None:
            assert engines != "auto"
            archive = None if spec.kernels is None else folder / spec.kernels
            return KernelRecipe(path, replace(limited, engines=engines or params.engines), self._cache, archive)
        if spec.lv2_limit is not None or share >= params.lv2_bytes:
            return self._image(name, spec, path, params, engines, limited)
        claiming = self._image(name, spec, path, params, engines, options)
        if claiming.meta.lv2_bytes <= share:
            return claiming
        try:
            shared = self._image(name, spec, path, params, engines, limited)
        except CompileError:  # its share is too small
            return claiming
        # Who would lose more by the share than a claim may cost takes turns with the others.
        return shared if model_cycles(shared) <= (1 + CLAIM_LOSS) * model_cycles(claiming) else claiming

    def _image(
        self, name: str, spec: ModelSpec, path: Path, params: SocParams, engines: Engines | None,
        options: Options | None, plan: Path | None = None,
    ) -> Image:  # fmt: skip
        sizes, batch, sequences = tuple(spec.sizes.items()), spec.batch or 1, spec.sequences or 1
        if spec.batch is not None and not dynamic_batches(read_model(path)):
            raise ScenarioError(
                f"model {name!r}: batch = {batch} is for a dynamic one, and that of {path} is fixed: remove it"
            )
        # All of params: estimates depend on the DRAM's timing, digests do not.
        key = (path, params, engines, options, spec.fallback, batch, sizes, sequences, plan)
        if key not in self._images:
            self._progress.task(compiling(path, params))
            try:
                self._images[key] = api.compile(
                    path, params, engines=engines, fallback=spec.fallback, options=options, plan=plan, batch=batch,
                    sizes=dict(sizes), sequences=sequences, jobs=self._jobs, cache=self._cache,
                )  # fmt: skip
            except UnsupportedModel as error:
                raise ScenarioError(f"model {name!r}: {error.told(f'fallback = true in [models.{name}]')}") from None
            except OpenDimension as error:
                label = json.dumps(error.label)
                way = f"sizes = {{ {label} = N }} in [models.{name}], dimension = {label} there for lengths that vary,"
                raise ScenarioError(f"model {name!r}: {error.told(way)}") from None
        return self._images[key]


def _is_planned(spec: ModelSpec) -> bool:
    return spec.image is not None or spec.plan is not None


def _engines(name: str, spec: ModelSpec, params: SocParams, *, placed: bool) -> Engines | None:
    """Return how many engines a model is compiled for, None for all. Raises :class:`ScenarioError` for some that the
    machine has not."""
    if spec.engines is None or spec.engines == "auto":
        return spec.engines or (1 if placed and not spec.placed else None)
    listed = isinstance(spec.engines, list)
    if not (max(spec.engines) < params.engines if isinstance(spec.engines, list) else spec.engines <= params.engines):
        raise ScenarioError(
            f"model {name!r}: engines = {spec.engines}: {params.name} has {params.engines}"
            f"{f', numbered from 0 to {params.engines - 1}' if listed else ''}; name fewer, or set machine.params"
        )
    return len(spec.engines) if isinstance(spec.engines, list) else spec.engines
