"""Says how a model file becomes an image, as the commands that compile take it from the command line."""

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from caesura import api
from caesura.commands.options import Dim, Fallback, ParamsFile, Preset, Set, is_image, seconds, sizes_of
from caesura.compile_flags import Flag, flags_of
from caesura.image_files import image_for
from caesura.machines import machine
from caesura.views import Progress, compiling, say
from caesura.views.order import tell_measured
from compiler import ALL_LV2, OBJECTIVES, ORDERS, STRATEGIES, Options
from hw.contract.params import SocParams
from hw.image import Image
from sim import MODEL

if TYPE_CHECKING:
    from compiler import Compiled, Plan

Engines = Annotated[
    str | None,
    typer.Option(
        help="engines that share each layer: a number, or auto by the model's size, and, with --placed, by what takes "
        "less (default: all)"
    ),
]
Batch = Annotated[
    int | None, typer.Option("--batch", min=1, help="batch of a model whose first dimension is dynamic (default: 1)")
]
Sequences = Annotated[
    int, typer.Option("--sequences", min=1, help="sequences of a step model that share a step, and so its weights")
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", min=1, help="processes that compile at a time (default: one for each CPU)")
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="compile all layers, also those compiled before")]

FromPlan = Annotated[
    Path | None,
    typer.Option("--from-plan", help="compile by this plan of the model (.json); what it leaves out is free"),
]

#: Fields of ``Options`` without a flag that is derived from them: checks alone observe, and ``--engines`` also takes
#: ``auto`` and means all engines of the machine where it is left out.
WITHOUT_FLAG = ("observe", "engines")
#: What a plan does not say: how the model is read, and how it is compiled.
_BESIDE_A_PLAN = ("--fallback", "--dim", "--batch", "--sequences", "--jobs", "--no-cache", "--from-plan")


def lv2_limit(text: str) -> int | str:
    """Return how much LV2 a model may use: bytes, such as ``65536`` or ``64KiB``, or ``all``. Raises
    :class:`caesura.api.UsageError`."""
    if text.strip() == ALL_LV2:
        return ALL_LV2
    found = re.fullmatch(r"(\d{1,12}) ?(KiB|MiB|)", text.strip(), re.ASCII | re.IGNORECASE)
    size = int(found[1]) << {"kib": 10, "mib": 20}.get(found[2].lower(), 0) if found else 0
    if not size:
        raise api.UsageError(f"--lv2-limit must be bytes, such as 65536 or 64KiB, or {ALL_LV2}, not {text!r}")
    return size


def share(text: str) -> float:
    """Return a share from 0 to 1, such as ``5%`` or ``0.05``. Raises :class:`caesura.api.UsageError`."""
    found = re.fullmatch(r"(\d{1,3}(?:\.\d{1,6})?) ?(%?)", text.strip(), re.ASCII)
    value = float(found[1]) / (100 if found[2] else 1) if found else 2.0
    if value > 1:
        raise api.UsageError(f"--trade must be a share, such as 5% or 0.05, not {text!r}")
    return value


OPTION_FLAGS = flags_of(
    Options,
    {
        "lv2_limit": Flag(parse=lv2_limit, form="or all (default: the least that costs little)"),
        "order": Flag(choices=ORDERS),
        "order_seconds": Flag("--budget", parse=seconds, form="such as 10s (default: a fixed number of tries)"),
        "objective": Flag(choices=OBJECTIVES),
        "trade": Flag(parse=share, form="such as 5% (default: 100%)"),
        "cancel_at": Flag(choices=STRATEGIES),
    },
    WITHOUT_FLAG,
)


@dataclass(frozen=True)
class Compilation:
    """Holds all that says how a model file becomes an image: ``preset``, ``params`` and ``changes`` name the
    machine, ``options`` are the compiler's, and the other fields are arguments of :func:`caesura.api.compile`."""

    preset: str | None = None
    params: Path | None = None
    changes: tuple[str, ...] = ()
    engines: int | Literal["auto"] | None = None  #: None: all that the machine has
    fallback: bool = False
    sizes: Mapping[str, int] = field(default_factory=dict)
    batch: int | None = None
    sequences: int = 1
    jobs: int | None = None
    cache: bool = True
    options: Options = field(default_factory=Options)
    plan: Path | None = None
    measure_on: str = MODEL  #: backend on which orders are timed and measured

    @classmethod
    def from_flags(
        cls,
        *,
        preset: Preset = None,
        params: ParamsFile = None,
        changes: Set = None,
        engines: Engines = None,
        fallback: Fallback = False,
        dim: Dim = None,
        batch: Batch = None,
        sequences: Sequences = 1,
        jobs: Jobs = None,
        no_cache: NoCache = False,
        from_plan: FromPlan = None,
        **options: Any,
    ) -> "Compilation":
        """Return what the command line asks for; ``options`` are the compiler's as it gives them, by field.

        Raises :class:`caesura.api.UsageError`.
        """
        chosen = Options(**{flag.field: flag.value(options.get(flag.field)) for flag in OPTION_FLAGS})
        found = cls(
            preset, params, tuple(changes or ()), _engine_count(engines), fallback, sizes_of(dim or ()), batch,
            sequences, jobs, not no_cache, chosen, from_plan,
        )  # fmt: skip
        if from_plan and (given := [name for name in found.compiler_flags() if name not in _BESIDE_A_PLAN]):
            raise api.UsageError(
                f"--from-plan {from_plan}: options are those of the plan: leave out {', '.join(given)}"
            )
        return found

    def machine(self) -> SocParams | None:
        """Return the parameters of the machine, None if none is named. Raises ``ParamError``."""
        return machine(self.preset, self.params, self.changes)

    def keeping_weights(self) -> "Compilation":
        """Return the same for a model whose weights are to stay in LV2: it claims all, unless a limit or a plan is
        told."""
        if self.options.lv2_limit is not None or self.plan:
            return self
        return replace(self, options=replace(self.options, lv2_limit=ALL_LV2))

    def measuring(self, backend: str | None) -> "Compilation":
        """Return the same with orders that are timed and measured on ``backend``, if one is named."""
        return replace(self, measure_on=backend) if backend else self

    def compiler_flags(self) -> list[str]:
        """Return the flags of the compiler whose values are not their defaults, without those of the machine."""
        default = Compilation()
        own = {"engines": "--engines", "fallback": "--fallback", "sizes": "--dim", "batch": "--batch",
               "sequences": "--sequences", "jobs": "--jobs", "cache": "--no-cache", "plan": "--from-plan"}  # fmt: skip
        return [
            *(flag for name, flag in own.items() if getattr(self, name) != getattr(default, name)),
            *(flag.name for flag in OPTION_FLAGS if getattr(self.options, flag.field) != flag.default),
        ]


def takes_compilation(command: Callable[..., None]) -> Callable[..., None]:
    """Return a Typer command that has every flag of a compilation in place of the parameter of that name."""
    own = list(inspect.signature(Compilation.from_flags).parameters.values())[:-1]
    flags = [*own, *(flag.parameter for flag in OPTION_FLAGS)]

    @functools.wraps(command)
    def with_flags(**given: Any) -> None:
        told = {flag.name: given.pop(flag.name) for flag in flags}
        command(**given, compilation=Compilation.from_flags(**told))

    signature = inspect.signature(command)
    places = [
        one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for place in signature.parameters.values()
        for one in (flags if place.name == "compilation" else [place])
    ]
    cast(Any, with_flags).__signature__ = signature.replace(parameters=places)
    return with_flags


def image_of(path: Path, compilation: Compilation) -> Image:
    """Return the image in a file, or compile the model in it.

    Raises :class:`caesura.api.UsageError` for an image with flags of the compiler, and ``ImageError`` for one that was
    built for another machine than the one that is named.
    """
    if not is_image(path):
        return compile_file(path, compilation).image
    refuse_compiler_flags(path, compilation)
    return image_for(path, compilation.machine())


def refuse_compiler_flags(image: Path, compilation: Compilation) -> None:
    """Raise :class:`caesura.api.UsageError` for flags of the compiler, which the file of an image has no use for."""
    if given := compilation.compiler_flags():
        raise api.UsageError(
            f"{image}: an image is compiled already; options of the compiler need the .onnx file: leave out "
            f"{', '.join(given)}"
        )


def compile_file(path: Path, compilation: Compilation) -> "Compiled":
    """Compile the model in a file, for ``tiny`` if no machine is named; a line of progress tells how it goes."""
    plan = _plan_of(compilation)
    params = plan.params if plan else compilation.machine() or api.resolve("tiny")
    batch = _batch_of(path, compilation)
    with Progress() as progress:
        progress.task(compiling(path, params))
        compiled = api.compile_with_report(
            path, params, engines=compilation.engines, fallback=compilation.fallback,
            options=None if plan else compilation.options, plan=plan, told=partial(tell_measured, progress),
            jobs=compilation.jobs, cache=compilation.cache, batch=batch, sizes=compilation.sizes,
            sequences=compilation.sequences, measure_on=compilation.measure_on,
        )  # fmt: skip
    if compiled.choice is not None:
        say(f"{path}: --engines auto: {compiled.choice}", err=True)
    return compiled


def _plan_of(compilation: Compilation) -> "Plan | None":
    """Return the plan that a model is compiled by, if one is named. Raises ``PlanError`` for a file that is none, and
    :class:`caesura.api.UsageError` for one that is for another machine than the one that is named."""
    from compiler import Plan

    if compilation.plan is None:
        return None
    plan, params = Plan.read(compilation.plan), compilation.machine()
    if params not in (None, plan.params):
        raise api.UsageError(
            f"--from-plan {compilation.plan}: the plan is for preset {plan.params.name!r}: leave the machine out"
        )
    return plan


def _batch_of(path: Path, compilation: Compilation) -> int:
    """Return the batch of a model, 1 if it is dynamic and nothing says what it is; a line on standard error tells that.

    Raises :class:`caesura.api.UsageError` if a batch is told and the model in the file has a fixed one.
    """
    from compiler import (
        dynamic_batches,  # the front end is loaded where it is used
        read_model,
    )

    batch, names = compilation.batch, dynamic_batches(read_model(path))
    if batch is not None and not names:
        raise api.UsageError(f"{path}: --batch {batch} is for a dynamic batch, and the model's is fixed: leave it out")
    if batch is None and not set(names) <= set(compilation.sizes):
        say(f"{path}: the batch is dynamic, and 1 here; --batch N sets it", err=True)
    return batch or 1


def _engine_count(engines: str | None) -> int | Literal["auto"] | None:
    """Return what ``--engines`` says, or None if it says nothing."""
    if engines is None:
        return None
    if engines == "auto":
        return "auto"
    if not engines.isdecimal() or not int(engines):
        raise api.UsageError(f"--engines must be a number of engines from 1 on, or auto, not {engines!r}")
    return int(engines)
