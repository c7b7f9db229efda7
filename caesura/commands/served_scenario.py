"""Finds what ``caesura serve`` serves: the scenario in a file, or models alone."""

from dataclasses import fields
from pathlib import Path
from typing import Literal

import pydantic

from caesura.api import UsageError, resolve
from caesura.commands.options import is_image
from caesura.compilation import Compilation, refuse_compiler_flags
from caesura.scenario import (
    MachineSpec,
    ModelSpec,
    Scenario,
    ScenarioError,
    closed_loops,
    explained,
    hardware_of,
    load_scenario,
    on_devices,
    on_machine,
)
from compiler import Options
from hw.image import Image

_KEYS = ("observe", "engines", "placed", "lv2_limit")  #: options that are keys of a model


def scenario_of(
    files: list[Path], compilation: Compilation, requests: int | None, devices: int | None = None
) -> tuple[Scenario, Path]:
    """Return the scenario that is asked for, and the folder for paths in it. Raises :class:`UsageError`."""
    scenario, folder = _asked_for(files, compilation, requests)
    return scenario if devices is None else on_devices(scenario, devices), folder


def _asked_for(files: list[Path], compilation: Compilation, requests: int | None) -> tuple[Scenario, Path]:
    if not any(file.suffix == ".toml" for file in files):
        return _of_models(files, compilation, requests or 10), Path()
    if len(files) > 1:
        raise UsageError(f"{files[0]}: a scenario file has its models in it: give it alone, or models alone")
    flags = [flag for flag in compilation.compiler_flags() if flag not in ("--jobs", "--no-cache")]
    if given := [*flags, *(["--requests"] if requests else [])]:
        raise UsageError(
            f"{files[0]}: the scenario says what is served and how it is compiled: leave {', '.join(given)} out"
        )
    return _from_file(files[0], compilation), files[0].parent


def _from_file(file: Path, compilation: Compilation) -> Scenario:
    """Return the scenario in a file, on the machine that the command line names if it names one."""
    scenario = load_scenario(file)
    for name in scenario.used_models:
        if not scenario.models[name].given(("onnx", "image", "workload")):
            raise ScenarioError(
                f"{file}: model {name!r} has only layers with durations: caesura scenario runs it; give onnx or image"
            )
    if compilation.machine() is None:
        return scenario
    return on_machine(scenario, compilation.preset, compilation.params, compilation.changes)


def _of_models(files: list[Path], compilation: Compilation, requests: int) -> Scenario:
    """Return a scenario of models alone, each in a closed loop. The machine is the one that is named, or that of the
    first image, or ``tiny``."""
    if all(map(is_image, files)):
        refuse_compiler_flags(files[0], compilation)
    names = [file.stem for file in files]
    if len(set(names)) < len(names):
        raise UsageError(f"two models are called {max(names, key=names.count)!r}: give files of different names")
    params = compilation.machine() or next((Image.load(file).params for file in files if is_image(file)), None)
    found = hardware_of(params or resolve("tiny"))
    try:
        machine = MachineSpec(**found, placed=compilation.options.placed)
        models = {name: _model(file, compilation) for name, file in zip(names, files, strict=True)}
        return closed_loops(models, machine, requests, ", ".join(names))
    except pydantic.ValidationError as error:
        raise UsageError(explained(", ".join(map(str, files)), error)) from None


def _model(file: Path, compilation: Compilation) -> ModelSpec:
    """Return a model of the command line: an image, or one that is compiled as the flags say."""
    if is_image(file):
        return ModelSpec(image=file)
    chosen, default = compilation.options, Options()
    options = {one.name: getattr(chosen, one.name) for one in fields(Options) if one.name not in _KEYS}
    return ModelSpec(
        onnx=file, engines=compilation.engines, placed=chosen.placed, lv2_limit=_limit(chosen.lv2_limit),
        fallback=compilation.fallback, batch=compilation.batch, sizes=dict(compilation.sizes), plan=compilation.plan,
        options={name: value for name, value in options.items() if value != getattr(default, name)},
    )  # fmt: skip


def _limit(chosen: int | str | None) -> int | Literal["all"] | None:
    """Return the bytes of LV2 that a flag names."""
    return chosen or None if not isinstance(chosen, str) else "all"
