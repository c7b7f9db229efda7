"""The RTL backends: the same netlist in Amaranth's simulator and compiled to native code."""

from os import PathLike

from hw.params import SocParams
from sim.bus import HostCosts, Progress
from sim.rtl.base import RtlBus
from sim.rtl.cxxrtl import CxxrtlBus
from sim.rtl.digest import design_digest
from sim.rtl.pysim import PysimBus
from sim.rtl.top import SimTop

BACKENDS = ("cxxrtl", "pysim")

__all__ = ["BACKENDS", "CxxrtlBus", "PysimBus", "RtlBus", "SimTop", "open_bus"]


def open_bus(
    params: SocParams,
    backend: str = "cxxrtl",
    *,
    costs: HostCosts | None = None,
    vcd: str | PathLike | None = None,
    progress: Progress | None = None,
) -> RtlBus:
    """A simulated SoC at power-on. ``backend`` is ``cxxrtl`` (compiled) or ``pysim`` (the reference).

    ValueError for an unknown backend, BuildError if the compiled one cannot be built.
    """
    from hw.soc import Soc  # importing it loads all RTL

    if backend not in BACKENDS:
        raise ValueError(f"no backend named {backend!r}; known are {', '.join(BACKENDS)}")
    if backend == "pysim":
        return PysimBus(SimTop(params, Soc(params)), costs=costs, vcd=vcd, progress=progress)

    def make() -> SimTop:
        return SimTop(params, Soc(params))

    return CxxrtlBus(params, make, costs=costs, vcd=vcd, progress=progress, source=design_digest(params))
