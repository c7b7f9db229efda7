"""Tells for ``caesura retime`` what one run of a model would take with another DRAM, or with other units."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group

from caesura import api, inputs
from caesura.machine import changed
from caesura.terminal import line, table
from hw.contract.image import Image
from hw.contract.isa import Unit
from hw.contract.params import DRAM_TIMING, SocParams
from sim.bus import Progress
from sim.model.bus import ModelBus
from sim.retiming.recorded import RecordedRun, cycles_of

_UNITS = {unit.name.lower(): unit for unit in Unit}
_TAKES = f"--change takes {', '.join(DRAM_TIMING)} with a number, or {', '.join(_UNITS)} with a factor of its durations"


@dataclass(frozen=True)
class Change:
    """Says what differs from the recorded run: the machine's DRAM, and factors of the durations of units."""

    name: str
    params: SocParams
    durations: Mapping[Unit, float]


@dataclass(frozen=True)
class Variation:
    """Holds cycles under a change, and the seconds that the answer took. ``simulated``: cycles of a run of the model
    with the same DRAM, where that was wanted."""

    change: str
    cycles: int
    seconds: float
    simulated: int | None = None

    @property
    def error(self) -> float | None:
        """Return the error in percent of the simulated cycles."""
        return None if self.simulated is None else 100 * (self.cycles - self.simulated) / self.simulated


def record_run(image: Image, progress: Progress | None = None) -> RecordedRun:
    """Run one inference of ``image`` on the fast model, without data, and return it ready to be priced again and
    again."""
    return RecordedRun(image.params, _ran(image, image.params, progress).history)


def read_change(text: str, params: SocParams) -> Change:
    """Return a change such as ``dram_latency=200,mac=0.5``. Raises :class:`UsageError` or ``ParamError``."""
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
    check: bool = False,
    progress: Progress | None = None,
    told: Callable[[str], None] = lambda change: None,
) -> list[Variation]:
    """Return the recorded run first, then the same under each of the ``changes``; see :func:`read_change`. ``check``:
    run the model under each change, too, where only the DRAM changes; ``told`` is called with its name before that."""
    wanted = [Change("as recorded", image.params, {}), *(read_change(text, image.params) for text in changes)]
    run = record_run(image, progress)
    result = []
    for change in wanted:
        begin = time.perf_counter()
        cycles = run.price(change.params, change.durations).cycles
        seconds = time.perf_counter() - begin
        compared = check and not change.durations
        if compared:
            told(change.name)
        result.append(Variation(change.name, cycles, seconds, _simulated(image, change.params) if compared else None))
    return result


def to_fields(image: Image, variations: Sequence[Variation]) -> dict[str, Any]:
    """Return the variations as data for JSON."""
    return {
        "model": image.meta.model, "params": image.params.name,
        "variations": [
            {
                "change": one.change, "cycles": one.cycles, "seconds": round(one.seconds, 4),
                **({} if one.simulated is None else {"simulated": one.simulated, "error": one.error}),
            }
            for one in variations
        ],
    }  # fmt: skip


def to_table(image: Image, variations: Sequence[Variation]) -> Group:
    """Return the variations as a table for a terminal."""
    checked = any(one.simulated is not None for one in variations)
    rows = table("", "change", ">cycles", ">against the recorded", *([">simulated", ">error"] if checked else []))
    for one in variations:
        cells = [one.change, f"{one.cycles:,}", f"{100 * (one.cycles / variations[0].cycles - 1):+.1f} %"]
        if checked:
            cells += ["", ""] if one.error is None else [f"{one.simulated:,}", f"{one.error:+.2f} %"]
        rows.add_row(*cells)
    return Group(line(f"{image.meta.model} on {image.params.name}, one inference", "bold"), rows)


def _factor(part: str, value: str) -> float:
    try:
        factor = float(value)
    except ValueError:
        factor = -1.0
    if not 0 <= factor <= 1000:
        raise api.UsageError(f"{part!r}: the durations of a unit change by a factor from 0 to 1000, such as 0.5")
    return factor


def _simulated(image: Image, params: SocParams) -> int:
    return cycles_of(_ran(image, params, None).history)


def _ran(image: Image, params: SocParams, progress: Progress | None) -> ModelBus:
    bus = ModelBus(image.params, data=False, progress=progress)
    bus.set_dram_timing(params)
    bus.record(bursts=True)
    with api.Device(bus) as device:
        device.load(image).run(inputs.random_samples(image, 1, 0)[0])
    return bus
