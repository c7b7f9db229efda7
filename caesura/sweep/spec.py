"""Reads sweep files: what varies, and what is run. They are TOML, validated.

A file names ``models`` (ONNX files), ``workloads`` (of ``benchmarks``), or ``scenarios`` with ``policies``. In
``machine`` and ``options`` a list stands for values that vary; all combinations are run, the last key fastest.
"""

import itertools
import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pydantic
from pydantic import Field

from caesura.api import UsageError
from caesura.bench import benchmarks
from caesura.machines import machine
from hw.contract.params import ParamError, SocParams
from sim import BACKENDS

_MOST_POINTS = 100_000

Value = int | float | str | bool
Values = Value | Annotated[list[Value], Field(min_length=1)]


class SweepError(UsageError):
    """Says why a sweep cannot be run; names the file, the key and the way out."""


class Sweep(pydantic.BaseModel):
    """Holds a whole sweep file."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    name: str = ""
    backend: str = "model"  #: one of ``sim.backends.BACKENDS``; for scenarios also ``synthetic``
    machine: dict[str, Values] = {"preset": "tiny"}  #: ``preset`` and parameters of the hardware
    models: list[Path] = []
    workloads: list[str] = []  #: names of models that are generated, as in scenarios
    options: dict[str, Values] = {}  #: of the compiler: fields of ``compiler.plan.options.Options``
    fallback: bool = False  #: of models: run on the CPU what the accelerator cannot
    scenarios: list[Path] = []
    policies: list[str] = ["idle_time"]
    placements: list[str] = ["queue_time"]

    @pydantic.model_validator(mode="after")
    def _runs_something(self) -> "Sweep":
        if bool(self.models or self.workloads) == bool(self.scenarios):
            raise ValueError("must have either models or scenarios; workloads are models, too")
        if self.scenarios and self.options:
            raise ValueError("has scenarios and options; options are those of models, so remove them")
        if self.scenarios and self.fallback:
            raise ValueError("has scenarios and fallback; it stands in the scenarios' own files, [models.NAME]")
        known = BACKENDS if not self.scenarios else ("synthetic", *BACKENDS)
        if self.backend not in known:
            raise ValueError(f"backend is {self.backend!r}; use {', '.join(known)}")
        return self


@dataclass(frozen=True)
class Point:
    """Describes one run. ``labels``: what of it varies, for the table, in the order of the file."""

    number: int
    backend: str
    params: SocParams | None  #: None: those of the scenario
    labels: dict[str, Value]
    model: Path | None = None
    fallback: bool = False
    options: tuple[tuple[str, Value], ...] = ()
    scenario: Path | None = None
    policy: str = ""
    placement: str = ""


def load_sweep(path: Path) -> tuple[Sweep, list[Point]]:
    """Return a sweep file and its points. Raises :class:`SweepError`."""
    try:
        sweep = Sweep.model_validate(tomllib.loads(path.read_text()))
    except OSError as error:
        raise SweepError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SweepError(f"{path}: not a TOML file: {error}") from None
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the sweep"
        told = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            told = "is not a known key; remove it or correct its spelling (docs/sweeps.md lists all keys)"
        raise SweepError(f"{path}: {place}: {told}") from None
    found = [path.parent / one for one in (*sweep.models, *sweep.scenarios)]
    for one in found:
        if not one.is_file():
            raise SweepError(f"{path}: there is no file {one}")
    return sweep, _points(path, sweep)


def _points(path: Path, sweep: Sweep) -> list[Point]:
    models = len(sweep.models) + len(sweep.workloads)
    runs = models * _count(sweep.options) or len(sweep.scenarios) * len(sweep.policies) * len(sweep.placements)
    if (count := _count(sweep.machine) * runs) > _MOST_POINTS:  # before any is made
        raise SweepError(f"{path}: {count:,} points, {_MOST_POINTS:,} at most; vary fewer values")
    files = _model_files(path, sweep)
    machines, options = list(_combinations(sweep.machine)), list(_combinations(sweep.options))
    varied = {key for table in (sweep.machine, sweep.options) for key, value in table.items() if _varies(value)}
    made: list[Point] = []
    for fields in machines:
        params = _machine(path, fields, sweep)
        shown = {key: value for key, value in fields.items() if key in varied}
        for run, labels in _runs(path.parent, sweep, files, options, varied):
            made.append(Point(len(made), sweep.backend, params, {**shown, **labels}, **run))
    return made


def _runs(
    folder: Path, sweep: Sweep, files: list[tuple[str, Path]], options: list[dict[str, Value]], varied: set[str]
) -> list[tuple[dict[str, Any], dict[str, Value]]]:
    """Return what is run on each machine: fields of a point, and labels."""
    if not sweep.scenarios:
        return [
            (
                {"model": model, "options": tuple(chosen.items()), "fallback": sweep.fallback},
                {"model": name, **{key: value for key, value in chosen.items() if key in varied}},
            )
            for (name, model), chosen in itertools.product(files, options)
        ]
    return [
        (
            {"scenario": folder / scenario, "policy": policy, "placement": placement},
            {
                "scenario": scenario.stem,
                "policy": policy,
                **({"placement": placement} if len(sweep.placements) > 1 else {}),
            },
        )
        for scenario, policy, placement in itertools.product(sweep.scenarios, sweep.policies, sweep.placements)
    ]


def _model_files(path: Path, sweep: Sweep) -> list[tuple[str, Path]]:
    """Return models by what the table calls them; those of workloads are generated."""
    found = [(model.stem, path.parent / model) for model in sweep.models]
    for name in sweep.workloads:
        workloads = benchmarks("workloads", f"{path}: workload {name!r}")
        try:
            found.append((name, workloads.workload(name)))
        except workloads.UnknownWorkload as error:
            raise SweepError(f"{path}: workloads: {error}") from None
    return found


def _count(table: dict[str, Any]) -> int:
    """Return how many combinations there are."""
    return math.prod(len(value) for value in table.values() if _varies(value))


def _combinations(table: dict[str, Any]) -> list[dict[str, Value]]:
    lists = [value if _varies(value) else [value] for value in table.values()]
    return [dict(zip(table, chosen, strict=True)) for chosen in itertools.product(*lists)]


def _varies(value: object) -> bool:
    return isinstance(value, list)


def _machine(path: Path, fields: dict[str, Value], sweep: Sweep) -> SocParams | None:
    """Return the machine, or None where a scenario keeps its own."""
    if sweep.scenarios and fields == {"preset": "tiny"} and "machine" not in sweep.model_fields_set:
        return None
    if sweep.backend == "synthetic":
        raise SweepError(f"{path}: machine: the synthetic machine has no hardware to vary; choose a backend")
    preset = str(fields.get("preset", "tiny"))
    try:
        return machine(preset, None, [f"{key}={value}" for key, value in fields.items() if key != "preset"])
    except ParamError as error:
        raise SweepError(f"{path}: machine: {error}") from None
