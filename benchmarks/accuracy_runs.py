"""The same inference on the RTL and on the fast model, and by how much their cycles differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import caesura
from hw.contract.bus import Bus
from hw.contract.isa import Unit
from hw.image import Image
from sim import DEFAULT_BACKEND
from sim.model import ModelBus
from sim.rtl import open_bus
from sw.runtime import RunStats

Arrays = Mapping[str, npt.NDArray]
_UNITS = tuple(unit.name.lower() for unit in Unit)
LONG = 1_000  #: cycles of a layer from which on it is counted


def error(rtl: float, model: float) -> float:
    """By how much the model's figure is off, in percent; positive where it is too large."""
    return 100 * (model - rtl) / rtl if rtl else 0.0


@dataclass(frozen=True)
class LayerError:
    """A layer's cycles on both, and ``reason``: the unit whose cycles of work differ most."""

    run: str
    layer: str
    rtl: int
    model: int
    reason: str

    @property
    def percent(self) -> float:
        """See :func:`error`."""
        return error(self.rtl, self.model)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "run": self.run, "layer": self.layer, "rtl": self.rtl, "model": self.model,
            "error": round(self.percent, 2), "reason": self.reason,
        }  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """One inference on both. ``layers``: those of at least :data:`LONG` cycles; ``units``: cycles in which they work on
    the RTL and by the model; ``equal``: whether the outputs are, None where the model did not compute any."""

    name: str
    rtl: int
    model: int
    layers: list[LayerError]
    units: dict[str, tuple[int, int]]
    equal: bool | None

    @property
    def percent(self) -> float:
        """See :func:`error`."""
        return error(self.rtl, self.model)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "run": self.name, "rtl": self.rtl, "model": self.model, "error": round(self.percent, 3),
            "units": {unit: round(error(*both), 2) for unit, both in self.units.items()},
        }  # fmt: skip


def compare(name: str, image: Image, feed: Arrays, *, data: bool = True) -> Comparison:
    """Return one inference of ``image`` on a SoC that was just powered on, on both. Without ``data`` the model only
    times."""
    outputs, rtl = _run(open_bus(image.params, DEFAULT_BACKEND), image, feed)
    computed, model = _run(ModelBus(image.params, data=data), image, feed)
    equal = all(np.array_equal(outputs[key], computed[key]) for key in outputs) if data else None
    layers = [
        LayerError(name, real.name, real.cycles, told.cycles, _reason(real.counters, told.counters))
        for real, told in zip(rtl.layers, model.layers, strict=True)
        if real.cycles >= LONG
    ]
    units = {unit: (_busy(unit, rtl), _busy(unit, model)) for unit in _UNITS}
    return Comparison(name, rtl.cycles, model.cycles, layers, units, equal)


def _run(bus: Bus, image: Image, feed: Arrays) -> tuple[Arrays, RunStats]:
    with caesura.Device(bus) as device:
        return device.load(image).run(feed)


def _busy(unit: str, stats: RunStats) -> int:
    return sum(layer.counters.get(f"{unit}_busy", 0) for layer in stats.layers)


def _reason(rtl: Mapping[str, int], model: Mapping[str, int]) -> str:
    changes = {unit: model.get(f"{unit}_busy", 0) - rtl.get(f"{unit}_busy", 0) for unit in _UNITS}
    unit = max(changes, key=lambda unit: abs(changes[unit]))
    return f"{unit.upper()} works {abs(changes[unit])} cycles {'longer' if changes[unit] > 0 else 'less'} by the model"
