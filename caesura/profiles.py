"""Tells for ``caesura run --profile`` where the cycles of the MAC arrays went, layer by layer.

Every engine has as many cycles as the run took. They are shared out over the layers without a rest: a job owns its body
and the gap before it, since the job before it on the same engine ended. Shares are means over the engines, so the
layers add up to the run; the *cycles* of a layer are those of all other tables (``LayerStats.cycles``). The parts of a
layer's share:

============ ====================================================================================================
peak         the multiply-accumulates at the peak rate: not a loss
array        the arrays computed, but rows, columns or taps of them had nothing to do
overhead     a MAC instruction was in progress and took no operand: start, drain, memory ports
dram         MAC waited for activations or weights while LD2 fetched from DRAM and neither LD1 nor LD0 worked
activations  MAC waited for activations otherwise: they were on their way from LV2 to LV0
weights      MAC waited for weights likewise
accumulators MAC waited for a free accumulator buffer: VEC was behind
issue        the MAC unit was idle and its next instruction missed nothing: it was about to start
empty        the MAC unit was idle and had no instruction: at either end of a body, or when fetch is late
prologue     no body ran: the next job's prologue (its weights) was still loading
events       no body ran: the next job waited for jobs of other engines
turnaround   no body ran, for neither reason: retiring a job and starting another, or the end of the run elsewhere
============ ====================================================================================================

The hardware counts every cycle in which MAC waited under one cause (``job.COUNTERS``): under ``dram`` if that
applies, else under the missing semaphore of the lowest class. In cycles in which several were missing, activations thus
hide accumulators, and both hide weights; the last to come is alone in the end.

VEC's own waits are no loss of the arrays, but they tell why accumulators were not free.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compiler import WAITS
from hw.contract.isa import Unit
from hw.contract.job import COUNTERS
from hw.contract.params import SocParams
from hw.image import Image, LayerInfo
from sim.cost import moved
from sw.driver import JobResult

#: Parts in which MAC waited, and the counters of each.
WAITING = {"dram": "mac_starved", **{name: f"mac_missing{number}" for number, name in WAITS[Unit.MAC].items()}}
PARTS = ("peak", "array", "overhead", *WAITING, "issue", "empty", "prologue", "events", "turnaround")
UNITS = ("ld2", "st2", "ld1", "st1", "ld0", "vec")  #: units other than MAC, which MAC may wait for


@dataclass(frozen=True)
class Roofline:
    """Bounds a layer or a network: the fewest cycles that peak rates allow.

    Three resources are counted, each at its peak rate and fully overlapped with the others; the bound is the largest:

    * ``mac``: multiply-accumulates as the model states them, over those of all engines per cycle;
    * ``dram``: compulsory traffic over the bytes per cycle of the bus. Compulsory means inputs, weights and outputs
      once each, and no more than was really moved: what lay in LV2 was no traffic, and data fetched twice do not raise
      the bound;
    * ``vec``: one vector lane and cycle for each output byte, where the vector unit made the outputs.

    Latency, refresh, filling and draining are not in it: they are losses, which a profile shows.
    """

    mac: float = 0.0
    dram: float = 0.0
    vec: float = 0.0

    @property
    def cycles(self) -> float:
        """Return the bound in cycles."""
        return max(self.mac, self.dram, self.vec)

    @property
    def limit(self) -> str:
        """Return which resource sets the bound: ``MAC``, ``DRAM`` or ``VEC``; ``none`` when no resource is used."""
        cycles, name = max((self.mac, "MAC"), (self.dram, "DRAM"), (self.vec, "VEC"), key=lambda pair: pair[0])
        return name if cycles else "none"

    def to_dict(self) -> dict[str, float | str]:
        """Return the bound as data for JSON."""
        parts = {"mac": round(self.mac), "dram": round(self.dram), "vec": round(self.vec)}
        return {"cycles": round(self.cycles), "limit": self.limit, **parts}


@dataclass
class LayerProfile:
    """Describes one layer, or a run as a whole. ``cycles``: from the start of the first body to the end of the last; of
    a run, all. ``parts``: cycles of its share of the run by cause, means over the engines. ``bodies``: cycles in which
    bodies ran, likewise. ``counters``: sums over jobs; high-water marks (``*_occupancy``) are left out."""

    name: str
    kind: str
    macs: int = 0
    cycles: int = 0
    bound: Roofline = field(default_factory=Roofline)
    parts: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    bodies: float = 0.0
    counters: dict[str, int] = field(default_factory=dict)
    engines: int = 1  #: over which the means are

    @property
    def share(self) -> float:
        """Return the cycles of the run that are the layer's: its bodies and the gaps before them."""
        return sum(self.parts.values())

    @property
    def lost(self) -> float:
        """Return the cycles in which the MAC arrays could have done more."""
        return self.share - self.parts["peak"]

    @property
    def busiest(self) -> tuple[str, float]:
        """Return the unit other than MAC that was busy the longest, and for how much of the bodies' cycles, 0..1."""
        busy = {unit: self.counters.get(f"{unit}_busy", 0) for unit in UNITS}
        unit = max(busy, key=lambda name: busy[name])
        return unit.upper(), busy[unit] / (self.bodies * self.engines) if self.bodies else 0.0

    @property
    def vec_waits(self) -> dict[str, float]:
        """Return the cycles in which VEC was idle and waited, by what for; means over the engines."""
        missing = {name: self.counters.get(f"vec_missing{number}", 0) for number, name in WAITS[Unit.VEC].items()}
        return {name: cycles / self.engines for name, cycles in missing.items()}

    @property
    def fetch_stalled(self) -> float:
        """Return the cycles in which the executor waited for an instruction, mean over the engines."""
        return self.counters.get("fetch_stalled", 0) / self.engines

    def to_dict(self) -> dict[str, Any]:
        """Return the profile of the layer as data for JSON."""
        unit, share = self.busiest
        return {
            "name": self.name,
            "kind": self.kind,
            "macs": self.macs,
            "cycles": self.cycles,
            "share": round(self.share),
            "bound": self.bound.to_dict(),
            "of_bound": round(self.bound.cycles / self.cycles, 4) if self.cycles else None,
            "parts": {name: round(value) for name, value in self.parts.items()},
            "busiest": {"unit": unit, "share": round(share, 4)},
            "vec_waits": {name: round(value) for name, value in self.vec_waits.items()},
            "counters": self.counters,
        }


@dataclass
class Profile:
    """Describes a run. ``every``: all layers of the image, those without jobs too; their shares add up to ``total``'s
    cycles."""

    every: list[LayerProfile]
    total: LayerProfile

    def __repr__(self) -> str:
        """Return in a line what it is of; its fields have all of it."""
        return f"<Profile of {self.total.name!r}: {self.total.cycles:,} cycles, {len(self.layers)} layers>"

    @property
    def layers(self) -> list[LayerProfile]:
        """Return the layers with jobs, in the model's order."""
        return [layer for layer in self.every if layer.counters]

    def by_loss(self) -> list[LayerProfile]:
        """Return the layers, the longest loss first."""
        return sorted(self.layers, key=lambda layer: -layer.lost)

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as data for JSON, the longest loss first."""
        return {"total": self.total.to_dict(), "layers": [layer.to_dict() for layer in self.by_loss()]}


def profile(image: Image, jobs: Sequence[JobResult]) -> Profile:
    """Return where the cycles of one inference went. ``jobs``: all of its results (``RunStats.jobs``)."""
    params = image.params
    layers = [LayerProfile(info.name, info.kind, info.macs) for info in image.meta.layers]
    begin = min((job.prologue_start or job.start for job in jobs), default=0)
    end = max((job.end for job in jobs), default=0)
    queues = [sorted((j for j in jobs if j.engine == e), key=lambda j: j.start) for e in range(params.engines)]
    for queue in queues:
        free = begin
        for job in queue:
            layer = layers[image.meta.jobs[job.job].layer]
            _add_gap(layer, job, free, _events_reached(image, jobs, job))
            _add_body(layer, job)
            free = job.end
        if jobs:  # the engine's share of the run after its last body
            last = max(jobs, key=lambda j: j.end)
            layers[image.meta.jobs[last.job].layer].parts["turnaround"] += end - free
    used = [(layer, info) for layer, info in zip(layers, image.meta.layers, strict=True) if layer.counters]
    for layer, info in used:
        layer.bound = layer_roofline(params, info, layer.counters)
        _finish(layer, params)
    for number, layer in enumerate(layers):
        mine = [job for job in jobs if image.meta.jobs[job.job].layer == number]
        layer.cycles = max(job.end for job in mine) - min(job.start for job in mine) if mine else 0
    return Profile(layers, _total(image.meta.model, [layer for layer, _ in used], end - begin, params))


def _add_gap(layer: LayerProfile, job: JobResult, free: int, reached: int) -> None:
    """Add the cycles between ``free``, when the engine had nothing to do any more, and the start of the body. Where
    prologue and events were late at once, the one that came last is to blame for all that the other did not explain."""
    ready = sorted([("prologue", job.prologue_end), ("events", reached)], key=lambda pair: pair[1])
    for cause, time in ready:
        if time > free:
            layer.parts[cause] += min(time, job.start) - free
            free = min(time, job.start)
    layer.parts["turnaround"] += job.start - free


def _events_reached(image: Image, jobs: Sequence[JobResult], job: JobResult) -> int:
    """Return when the last job that ``job`` waits for by events had ended; 0 if it waits for none."""
    last = 0
    for event, times in image.meta.jobs[job.job].waits:
        ends = sorted(other.end for other in jobs if image.meta.jobs[other.job].signal == event)
        if 0 < times <= len(ends):
            last = max(last, ends[times - 1])
    return last


def _add_body(layer: LayerProfile, job: JobResult) -> None:
    body = job.end - job.start
    busy, active, empty = (job.counters[name] for name in ("mac_busy", "mac_active", "mac_empty"))
    idle = max(0, body - busy)
    layer.bodies += body
    layer.parts["array"] += active
    layer.parts["overhead"] += body - idle - active
    for part, cycles in [("empty", empty), *((part, job.counters[name]) for part, name in WAITING.items())]:
        spent = min(idle, cycles)
        layer.parts[part] += spent
        idle -= spent
    layer.parts["issue"] += idle
    for name, _ in COUNTERS:
        if not name.endswith("_occupancy"):
            layer.counters[name] = layer.counters.get(name, 0) + job.counters[name]


def _finish(layer: LayerProfile, params: SocParams) -> None:
    """Turn sums over the engines into means; what the arrays computed splits into peak and the rest."""
    layer.engines = params.engines
    layer.parts = {name: value / params.engines for name, value in layer.parts.items()}
    layer.bodies /= params.engines
    layer.parts["peak"] = layer.macs / params.macs
    layer.parts["array"] -= layer.parts["peak"]


def _total(name: str, layers: list[LayerProfile], cycles: int, params: SocParams) -> LayerProfile:
    total = LayerProfile(name, "network", cycles=cycles, engines=params.engines)
    for layer in layers:
        total.macs += layer.macs
        total.bodies += layer.bodies
        for part in PARTS:
            total.parts[part] += layer.parts[part]
        for counter, value in layer.counters.items():
            total.counters[counter] = total.counters.get(counter, 0) + value
    total.bound = network_roofline(layer.bound for layer in layers)
    return total


def layer_roofline(params: SocParams, layer: LayerInfo, counters: Mapping[str, int]) -> Roofline:
    """Return the bound of ``layer``, whose jobs counted ``counters`` in total (``hw.contract.job.COUNTERS``)."""
    loads = min(counters["prologue_bytes"] + counters["ld2_bytes"], layer.input_bytes + layer.weight_bytes)
    stores = min(counters["st2_bytes"], layer.output_bytes)
    lanes = params.engines * params.vec_lanes
    vectors = layer.output_bytes / lanes if counters["vec_active"] else 0.0
    return Roofline(layer.macs / params.macs, moved(loads + stores, params), vectors)


def network_roofline(layers: Iterable[Roofline]) -> Roofline:
    """Return the bound of layers together: each resource's sums, as any resource may work for one layer while another
    works for the next."""
    bounds = list(layers)
    return Roofline(sum(b.mac for b in bounds), sum(b.dram for b in bounds), sum(b.vec for b in bounds))
