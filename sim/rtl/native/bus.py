"""Simulates the netlist compiled by our own generator, which evaluates only what changed."""

from collections.abc import Callable

from hw.contract.bus import HostCosts, Progress
from hw.contract.params import SocParams
from sim.rtl.compiled import CompiledBus
from sim.rtl.native.build import recipe
from sim.rtl.top import SimTop
from sim.toolchain.library_cache import library


class NativeBus(CompiledBus):
    """Is a :class:`hw.contract.bus.Bus` over the native simulation of the netlist.

    Parameters
    ----------
    params, costs, progress
        As for :class:`sim.rtl.compiled.CompiledBus`.
    make : callable
        Makes the design; compiled at the first use of its netlist, and cached.
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
        progress: Progress | None = None,
        source: str | None = None,
    ) -> None:
        super().__init__(params, library(recipe(make, params), source=source), costs=costs, progress=progress)
