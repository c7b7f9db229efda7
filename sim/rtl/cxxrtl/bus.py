"""Simulates the netlist compiled by way of Yosys and CXXRTL."""

from collections.abc import Callable
from os import PathLike

from hw.contract.bus import HostCosts, Progress
from hw.contract.params import SocParams
from sim.rtl.compiled import CompiledBus
from sim.rtl.cxxrtl.build import recipe
from sim.rtl.top import SimTop
from sim.toolchain.library_cache import library


class CxxrtlBus(CompiledBus):
    """Is a :class:`hw.contract.bus.Bus` over CXXRTL's simulation of the netlist.

    Parameters
    ----------
    params, costs, progress
        As for :class:`sim.rtl.compiled.CompiledBus`.
    make : callable
        Makes the design; compiled at the first use of its netlist, which takes minutes, and cached.
    vcd : path, optional
        Write waveforms of all signals, but not of memories. Needs another, slower build.
    source : str, optional
        Identifies what the design is made from; where its library is cached, the design is not even made.

    Raises :class:`sim.toolchain.compilers.BuildError`.
    """

    def __init__(
        self,
        params: SocParams,
        make: Callable[[], SimTop],
        *,
        costs: HostCosts | None = None,
        vcd: str | PathLike | None = None,
        progress: Progress | None = None,
        source: str | None = None,
    ) -> None:
        built = library(recipe(make, params, vcd=vcd is not None), source=source)
        super().__init__(params, built, costs=costs, vcd=vcd, progress=progress)
