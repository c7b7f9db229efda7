"""Defines ``caesura retime``, which runs a model under another DRAM, or with other units."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group

from caesura import api
from caesura.commands.options import Json
from caesura.compilation import Compilation, image_of, takes_compilation
from caesura.machines import changed
from caesura.samples import random_samples
from caesura.views import Column, ColumnTable, Progress, json_text, line, tell, write
from hw.contract.isa import Unit
from hw.contract.params import DRAM_TIMING, SocParams
from hw.image import Image
from sim.cost import inference

_UNITS = {unit.name.lower(): unit for unit in Unit}
_TAKES = f"--change takes {', '.join(DRAM_TIMING)} with a number, or {', '.join(_UNITS)} with a factor of its durations"
_COLUMNS = (
    Column("change"),
    Column("cycles", number=True),
    Column("seconds", number=True, text="{:.2f}".format),
    Column("against_first", "against the first", number=True, text="{:+.1f} %".format),
)
_UNLIMITED = (1 << 32) - 1  #: cycles of a job, the most that the hardware counts


@dataclass(frozen=True)
class Change:
    """Says what differs from the machine of an image: its DRAM, and factors of the durations of its units."""

    name: str
    params: SocParams
    durations: Mapping[Unit, float]


@dataclass(frozen=True)
class Variation:
    """Holds the cycles of an inference under a change, and the seconds that the answer took."""

    change: str
    cycles: int
    seconds: float


@takes_compilation
def retime(
    model: Annotated[Path, typer.Argument(help="an ONNX model, or a compiled image (.cimg)")],
    compilation: Compilation,
    change: Annotated[
        list[str] | None,
        typer.Option(help="such as dram_latency=200 or dram_bandwidth=50,mac=0.5; repeatable, a run each"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a model on the fast model as it is, and with another DRAM or with other units; tell what each takes."""
    image = image_of(model, compilation)
    with Progress() as progress:
        found = variations(
            image,
            change or (),
            progress=progress.cycles,
            told=lambda what: progress.task(f"running {what}", cycle=0, expected=inference(image.meta.layers).in_turn),
        )
    table = variation_table(found)
    if as_json:
        write(json_text({"model": image.meta.model, "params": image.params.name, "variations": table.fields()}))
    else:
        head = line(f"{image.meta.model} on {image.params.name}, one inference", "bold")
        tell(Group(head, table.rich()))


def read_change(text: str, params: SocParams) -> Change:
    """Read a change such as ``dram_latency=200,mac=0.5``. Raises :class:`UsageError` or ``ParamError``."""
    fields, durations = [], {}
    for part in text.split(","):
        name, _, value = (one.strip() for one in part.partition("="))
        if name in _UNITS:
            durations[_UNITS[name]] = _factor(part, value)
        elif name in DRAM_TIMING:
            fields.append(part)
        else:
            raise api.UsageError(
                f"{part!r} cannot be retimed: {_TAKES}; other machines need a run of their own (--set)"
            )
    return Change(text, changed(params, fields), durations)


def variations(
    image: Image,
    changes: Sequence[str],
    *,
    progress: Callable[[int], None] | None = None,
    told: Callable[[str], None] = lambda change: None,
) -> list[Variation]:
    """Run one inference of ``image`` on the fast model, without data: first as it is, then under each of the
    ``changes``; see :func:`read_change`. ``told`` is called with the name of each before it runs."""
    wanted = [Change("unchanged", image.params, {}), *(read_change(text, image.params) for text in changes)]
    result = []
    for change in wanted:
        told(change.name)
        begin = time.perf_counter()
        cycles = _cycles(image, change, progress)
        result.append(Variation(change.name, cycles, time.perf_counter() - begin))
    return result


def variation_table(found: Sequence[Variation]) -> ColumnTable:
    """Return a table of variations, with how many percent of the first's cycles they take more: none if nothing runs on
    the accelerator."""
    first = found[0].cycles
    rows = [
        {
            "change": one.change, "cycles": one.cycles, "seconds": round(one.seconds, 4),
            "against_first": round(100 * (one.cycles - first) / max(1, first), 4),
        }
        for one in found
    ]  # fmt: skip
    return ColumnTable("", _COLUMNS, rows)


def _factor(part: str, value: str) -> float:
    try:
        factor = float(value)
    except ValueError:
        factor = -1.0
    if not 0 <= factor <= 1000:
        raise api.UsageError(f"{part!r}: the durations of a unit change by a factor from 0 to 1000, such as 0.5")
    return factor


def _cycles(image: Image, change: Change, progress: Callable[[int], None] | None) -> int:
    """Return the cycles from the first job to begin until the last has ended."""
    from sim.model import StretchedBus  # only loaded where it is used

    bus = StretchedBus(image.params, change.durations, data=False, progress=progress)
    bus.set_dram_timing(change.params)
    with api.Device(bus) as device:
        model = device.load(_without_bounds(image), body_cycles=_UNLIMITED)
        _, stats = model.run(random_samples(image, 1, 0)[0])
    return stats.cycles


def _without_bounds(image: Image) -> Image:
    """Return a copy for one run: bounds on the cycles of jobs do not hold on a changed machine, and durations that the
    run measures are not those of the image's machine."""
    jobs = [replace(job, worst_cycles=0) for job in image.meta.jobs]
    layers = [replace(layer) for layer in image.meta.layers]
    return replace(image, meta=replace(image.meta, jobs=jobs, layers=layers))
