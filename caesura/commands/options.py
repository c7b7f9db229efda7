"""Defines options that several commands take, and what follows from them."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from caesura import api
from caesura.commands import option_choices
from caesura.views import say
from hw.contract.params import PRESETS, SocParams
from hw.image import MAGIC
from sim import BACKENDS_HELP, DEFAULT_BACKEND, MODEL

Preset = Annotated[
    str | None,
    typer.Option(
        "--preset", help=f"parameters of the hardware: {', '.join(PRESETS)}", autocompletion=option_choices.presets
    ),
]
ParamsFile = Annotated[Path | None, typer.Option("--params", help="a TOML file with parameters, instead of a preset")]
Set = Annotated[list[str] | None, typer.Option("--set", help="change a parameter, such as lv2_bytes=4MiB; repeatable")]
Backend = Annotated[str, typer.Option("--backend", help=BACKENDS_HELP, autocompletion=option_choices.backends)]
AnyBackend = Annotated[
    str | None,
    typer.Option(
        "--backend",
        help=f"{BACKENDS_HELP}; by default native if it is built for the preset, else model",
        autocompletion=option_choices.backends,
    ),
]
MeasuringBackend = Annotated[
    str | None,
    typer.Option(
        "--backend",
        help=f"where --order timed and measured run programs: {BACKENDS_HELP} (default: model)",
        autocompletion=option_choices.backends,
    ),
]
Page = Annotated[Path | None, typer.Option("--report", help="write a page with timeline, plots and tables (.html)")]
Json = Annotated[bool, typer.Option("--json", help="print one JSON object")]
Live = Annotated[bool, typer.Option("--live", help="while it runs, show engines, queues and requests, as top does")]
Devices = Annotated[int | None, typer.Option("--devices", help="how many devices serve, all alike, 1 to 16")]
Csv = Annotated[bool, typer.Option("--csv", help="print the table as comma-separated values")]
Dim = Annotated[list[str] | None, typer.Option("--dim", help="size of a dynamic dimension, such as seq=64; repeatable")]
Fallback = Annotated[
    bool, typer.Option("--fallback", help="run on the CPU what the accelerator cannot, also amid the network")
]


PolicyOptions = Annotated[list[str] | None, typer.Option("--option", help="option of the policy, such as window=3")]
CheckOutputs = Annotated[
    bool, typer.Option("--check", help="compare the outputs of every request with those of its model alone")
]
Placement = Annotated[str, typer.Option(help="which engine a layer goes to", autocompletion=option_choices.placements)]


def policy_options(texts: Sequence[str] | None) -> dict[str, int | float]:
    """Return the options of a policy by name, as ``--option`` gives them. Raises :class:`caesura.api.UsageError`."""
    return dict(_policy_option(text) for text in texts or ())


def _policy_option(text: str) -> tuple[str, int | float]:
    name, _, value = text.partition("=")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    raise api.UsageError(f"--option {text!r}: must be name=number, such as window=3")


def seconds(budget: str, option: str = "--budget") -> float:
    """Return a time such as ``10s``, ``0.5`` or ``2m``, in seconds; raises :class:`caesura.api.UsageError`, which names
    the ``option`` that it is of."""
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)\s*(ms|s|m|)", budget.strip(), re.ASCII)
    if not found:
        raise api.UsageError(f"{option} must be a time such as 10s or 500ms, not {budget!r}")
    return float(found[1]) * {"ms": 0.001, "m": 60.0}.get(found[2], 1.0)


def check_writable(*paths: Path | None) -> None:
    """Raise :class:`caesura.api.UsageError` for a file that cannot be written: a folder, or one in a folder that does
    not exist. Files are written when all else is done, so this is asked before."""
    for path in paths:
        if path is not None and path.is_dir():
            raise api.UsageError(f"{path}: is a folder; name a file")
        if path is not None and not path.parent.is_dir():
            raise api.UsageError(f"{path}: there is no folder {path.parent}")


def check_form(as_json: bool, as_csv: bool) -> None:
    """Raise :class:`caesura.api.UsageError` unless output has one form."""
    if as_json and as_csv:
        raise api.UsageError("--json and --csv are two forms of the same output: give one")


def sizes_of(dims: Sequence[str]) -> dict[str, int]:
    """Return the sizes of dynamic dimensions by name, as ``--dim`` gives them. Raises
    :class:`caesura.api.UsageError`."""
    sizes = {}
    for text in dims:
        name, _, size = text.rpartition("=")
        if not name or not (size.isascii() and size.isdecimal()) or not int(size):
            raise api.UsageError(f"--dim {text!r}: must be NAME=SIZE, such as seq=64")
        sizes[name] = int(size)
    return sizes


def is_image(path: Path) -> bool:
    """Return whether a file is a compiled image, by its first bytes or its name."""
    if not path.is_file():
        return path.suffix == ".cimg"
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC or path.suffix == ".cimg"


VARIABLE = "CAESURA_BACKEND"  #: environment variable that names the backend where a command is given none


def chosen_backend(given: str | None, params: SocParams) -> str:
    """Return ``given``, what :data:`VARIABLE` says, or the default: the fast model while no simulator of the RTL is
    built for ``params``, which one line on standard error tells."""
    if given or os.environ.get(VARIABLE):
        return given or os.environ[VARIABLE]
    if _is_built(params):
        return DEFAULT_BACKEND
    say(
        f"no simulator is built for {params.name} yet: running on the fast model, cycles within a few percent; "
        f"--backend {DEFAULT_BACKEND} builds one and is exact",
        err=True,
    )
    return MODEL


def _is_built(params: SocParams) -> bool:
    from sim.rtl import is_built  # Amaranth is only loaded where it is used

    return is_built(params)
