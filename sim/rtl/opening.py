"""Opens an RTL backend by its name. A design that is known by a digest of its sources need not be elaborated again."""

import hashlib
import importlib.metadata
import json
from os import PathLike
from pathlib import Path

import hw
from hw.contract.bus import HostCosts, Progress
from hw.contract.params import SocParams
from sim.backends import DEFAULT_BACKEND, RTL_BACKENDS
from sim.rtl.base import RtlBus
from sim.rtl.pysim import PysimBus
from sim.rtl.top import SimTop
from sim.toolchain.compilers import BuildError

_SIM = Path(__file__).parents[1]
_HW = Path(hw.__file__).parent


def design_digest(params: SocParams) -> str:
    """Return a digest over all sources of ``hw`` and of the simulated DRAM and host, the parameters but their name, and
    Amaranth's version."""
    sources = [*sorted(_HW.rglob("*.py")), _SIM / "dram.py", _SIM / "rtl" / "top.py"]
    fields = params.with_nominal_dram().to_dict()
    del fields["name"]
    digest = hashlib.sha256(json.dumps([fields, importlib.metadata.version("amaranth")]).encode())
    for path in sources:
        digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def open_bus(
    params: SocParams,
    backend: str = DEFAULT_BACKEND,
    *,
    costs: HostCosts | None = None,
    vcd: str | PathLike | None = None,
    progress: Progress | None = None,
) -> RtlBus:
    """Return a simulated SoC at power-on. ``backend`` is ``native`` (compiled), ``cxxrtl`` (compiled by way of Yosys,
    for cross-checks and waveforms) or ``pysim`` (the reference).

    ValueError for an unknown backend, :class:`BuildError` if a compiled one cannot be built or cannot write waveforms.
    """
    from hw import Soc  # importing it loads all RTL

    if backend not in RTL_BACKENDS:
        raise ValueError(f"no backend named {backend!r}; known are {', '.join(RTL_BACKENDS)}")

    def make() -> SimTop:
        return SimTop(params, Soc(params))

    if backend == "pysim":
        return PysimBus(make(), costs=costs, vcd=vcd, progress=progress)
    if backend == "cxxrtl":
        from sim.rtl.cxxrtl import cxxrtl_bus

        return cxxrtl_bus(params, make, costs=costs, vcd=vcd, progress=progress, source=design_digest(params))
    if vcd is not None:
        raise BuildError(
            f"the backend native writes no waveforms ({vcd}): use --backend cxxrtl, which needs the dev extra "
            "(make setup, or pip install 'caesura-npu[dev]'), or --backend pysim, which is slow"
        )
    from sim.rtl.native.build import native_bus

    return native_bus(params, make, costs=costs, progress=progress, source=design_digest(params))


def is_built(params: SocParams) -> bool:
    """Return whether :func:`open_bus` finds a simulator of the default backend in the cache, so that it opens at
    once."""
    from sim.rtl.native.build import recipe
    from sim.toolchain.compiled_libraries import is_built as cached

    def never() -> SimTop:
        raise AssertionError("a design is not made to look for its simulator")

    return cached(recipe(never, params), design_digest(params))
