"""Defines options that several commands take, and what follows from them."""

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from caesura import api
from caesura.order_table import tell_measured
from caesura.progress import Progress, compiling
from caesura.terminal import say
from compiler.backend.options import ORDERS, STRATEGIES, Options
from compiler.dynamic_dimension import dynamic_batches
from compiler.frontend.load import read_model
from hw.contract.image import MAGIC, Image
from hw.contract.params import PRESETS, SocParams
from sim.backends import BACKENDS_HELP

Preset = Annotated[str | None, typer.Option("--preset", help=f"parameters of the hardware: {', '.join(PRESETS)}")]
ParamsFile = Annotated[Path | None, typer.Option("--params", help="a TOML file with parameters, instead of a preset")]
Set = Annotated[list[str] | None, typer.Option("--set", help="change a parameter, such as lv2_bytes=4MiB; repeatable")]
Backend = Annotated[str, typer.Option("--backend", help=BACKENDS_HELP)]
AnyBackend = Annotated[
    str | None,
    typer.Option("--backend", help=f"{BACKENDS_HELP}; by default native if it is built for the preset, else model"),
]
Page = Annotated[Path | None, typer.Option("--report", help="write a page with timeline, plots and tables (.html)")]
Json = Annotated[bool, typer.Option("--json", help="print one JSON object")]
Engines = Annotated[
    str | None, typer.Option(help="engines that share each layer: a number, or auto by the model's size (default: all)")
]
Csv = Annotated[bool, typer.Option("--csv", help="print the table as comma-separated values")]
Interval = Annotated[int | None, typer.Option(min=0, help="cycles a pause may wait for HALTED (0: no points)")]
MaxLive = Annotated[int | None, typer.Option(min=0, help="dirty bytes that a point should not exceed (0: any)")]
CancelAt = Annotated[str, typer.Option(help=f"where cancellation points lie: {', '.join(STRATEGIES)}")]
SpillBound = Annotated[int | None, typer.Option(min=0, help="bytes spilled to DRAM before a point at spills (0: none)")]
Placed = Annotated[bool, typer.Option("--placed", help="run each layer on one engine, branches side by side")]
Order = Annotated[str, typer.Option(help=f"order of layers and regions: {', '.join(ORDERS)}")]
Budget = Annotated[
    str | None, typer.Option(help="time for the order search, such as 10s (default: a fixed number of tries)")
]
NoRegions = Annotated[bool, typer.Option("--no-regions", help="let no two layers run side by side")]
NoSplit = Annotated[bool, typer.Option("--no-split", help="split no operator, even if its tensors do not fit on chip")]
Jobs = Annotated[
    int | None, typer.Option("--jobs", min=1, help="processes that compile at a time (default: one for each CPU)")
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="compile all layers, also those compiled before")]
Lv2Limit = Annotated[int | None, typer.Option(min=1, help="bytes of LV2 the model may use")]
Batch = Annotated[
    int | None, typer.Option("--batch", min=1, help="batch of a model whose first dimension is dynamic (default: 1)")
]
Dim = Annotated[list[str] | None, typer.Option("--dim", help="size of a dynamic dimension, such as seq=64; repeatable")]
Fallback = Annotated[bool, typer.Option("--fallback", help="run on the CPU what the accelerator cannot")]


def compile_options(
    interval: int | None, max_live: int | None, at: str, spill_bound: int | None, lv2_limit: int | None, *,
    placed: bool = False, order: str = "search", budget: str | None = None, no_regions: bool = False,
    no_split: bool = False,
) -> Options:  # fmt: skip
    """Return the options of the compiler; None stands for its default."""
    default = Options()
    return Options(
        cancel_interval=default.cancel_interval if interval is None else interval,
        cancel_max_live=max_live or 0,
        cancel_at=at,
        cancel_spill_bound=default.cancel_spill_bound if spill_bound is None else spill_bound,
        lv2_limit=lv2_limit or 0,
        placed=placed,
        order=order,
        order_seconds=math.inf if budget is None else seconds(budget),
        regions=not no_regions,
        split=not no_split,
    )


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


def engine_count(engines: str | None) -> int | Literal["auto"] | None:
    """Return what ``--engines`` says, or None if it says nothing."""
    if engines is None:
        return None
    if engines == "auto":
        return "auto"
    if not engines.isdecimal() or not int(engines):
        raise api.UsageError(f"--engines must be a number of engines from 1 on, or auto, not {engines!r}")
    return int(engines)


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


def batch_of(path: Path, batch: int | None, sizes: Mapping[str, int]) -> int:
    """Return the batch of the model in a file: 1 if nothing says what a dynamic one is, which a line on standard error
    tells. Raises :class:`caesura.api.UsageError` if ``batch`` is told and the model has a fixed one."""
    names = dynamic_batches(read_model(path))
    if batch is not None and not names:
        raise api.UsageError(f"{path}: --batch {batch} is for a dynamic batch, and the model's is fixed: leave it out")
    if batch is None and not set(names) <= set(sizes):
        say(f"{path}: the batch is dynamic, and 1 here; run and compile have --batch N", err=True)
    return batch or 1


def is_image(path: Path) -> bool:
    """Return whether a file is a compiled image, by its first bytes or its name."""
    if not path.is_file():
        return path.suffix == ".cimg"
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC or path.suffix == ".cimg"


def image_of(
    path: Path,
    params: SocParams | None,
    engines: str | None,
    fallback: bool,
    options: Options,
    batch: int | None = None,
    dims: Sequence[str] = (),
) -> Image:
    """Return the image in a file, or the model in it compiled for ``params`` (None: ``tiny``, or those of the image),
    which a line of progress tells."""
    if not is_image(path):
        sizes, hardware = sizes_of(dims), api.resolve(params or "tiny")
        batch = batch_of(path, batch, sizes)
        with Progress() as progress:
            progress.task(compiling(path, hardware))
            return api.compile_with_report(
                path, hardware, engines=engine_count(engines), fallback=fallback, options=options, batch=batch,
                sizes=sizes, told=partial(tell_measured, progress),
            ).image  # fmt: skip
    if options != Options() or batch is not None or dims or engines is not None or fallback:
        raise api.UsageError(f"{path}: an image is compiled already; options of the compiler need the .onnx file")
    image = Image.load(path)
    if params is not None:
        image.check_params(params)
    return image
