"""Bounds a layer or a network by the roofline: the fewest cycles that peak rates allow.

Three resources are counted, each at its peak rate and fully overlapped with the others; the bound is the largest:

* ``mac``: multiply-accumulates as the model states them, over those of all engines per cycle;
* ``dram``: compulsory traffic over the bytes per cycle of the bus. Compulsory means inputs, weights and outputs once
  each, and no more than was really moved: what lay in LV2 was no traffic, and data fetched twice do not raise the
  bound;
* ``vec``: one vector lane and cycle for each output byte, where the vector unit made the outputs.

Latency, refresh, filling and draining are not in it: they are losses, which a profile shows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hw.contract.params import SocParams
from hw.image import LayerInfo
from sim.cost import moved


@dataclass(frozen=True)
class Roofline:
    """Holds the cycles that each resource needs at least."""

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
