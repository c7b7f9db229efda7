"""Tells for ``caesura retime`` what one program takes with another DRAM, or with other units."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Group

from caesura import api, inputs
from caesura.machines import changed
from caesura.terminal import line, table
from hw.contract.bus import Progress
from hw.contract.isa import Unit
from hw.contract.params import DRAM_TIMING, SocParams
from hw.image import Image
from sim.model import StretchedBus

_UNITS = {unit.name.lower(): unit for unit in Unit}
_TAKES = f"--change takes {', '.join(DRAM_TIMING)} with a number, or {', '.join(_UNITS)} with a factor of its durations"
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


def retime(
    image: Image,
    changes: Sequence[str],
    *,
    progress: Progress | None = None,
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


def to_fields(image: Image, variations: Sequence[Variation]) -> dict[str, Any]:
    """Return the variations as data for JSON."""
    return {
        "model": image.meta.model, "params": image.params.name,
        "variations": [
            {
                "change": one.change, "cycles": one.cycles, "seconds": round(one.seconds, 4),
                "against_first": round(_against(variations[0], one), 4),
            }
            for one in variations
        ],
    }  # fmt: skip


def to_table(image: Image, variations: Sequence[Variation]) -> Group:
    """Return the variations as a table for a terminal."""
    rows = table("", "change", ">cycles", ">seconds", ">against the first")
    for one in variations:
        against = f"{_against(variations[0], one):+.1f} %"
        rows.add_row(one.change, f"{one.cycles:,}", f"{one.seconds:.2f}", against)
    return Group(line(f"{image.meta.model} on {image.params.name}, one inference", "bold"), rows)


def _against(first: Variation, other: Variation) -> float:
    """Return by how many percent of the first's cycles the other differs: none if nothing runs on the accelerator."""
    return 100 * (other.cycles - first.cycles) / max(1, first.cycles)


def _factor(part: str, value: str) -> float:
    try:
        factor = float(value)
    except ValueError:
        factor = -1.0
    if not 0 <= factor <= 1000:
        raise api.UsageError(f"{part!r}: the durations of a unit change by a factor from 0 to 1000, such as 0.5")
    return factor


def _cycles(image: Image, change: Change, progress: Progress | None) -> int:
    """Return the cycles from the first job to begin until the last has ended."""
    bus = StretchedBus(image.params, change.durations, data=False, progress=progress)
    bus.set_dram_timing(change.params)
    with api.Device(bus) as device:
        model = device.load(_without_bounds(image), body_cycles=_UNLIMITED)
        _, stats = model.run(inputs.random_samples(image, 1, 0)[0])
    return stats.cycles


def _without_bounds(image: Image) -> Image:
    """Return a copy for one run: bounds on the cycles of jobs do not hold on a changed machine, and durations that the
    run measures are not those of the image's machine."""
    jobs = [replace(job, worst_cycles=0) for job in image.meta.jobs]
    layers = [replace(layer) for layer in image.meta.layers]
    return replace(image, meta=replace(image.meta, jobs=jobs, layers=layers))
