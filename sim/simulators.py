"""Opens a simulated SoC by the name of its backend."""

from os import PathLike

from hw.contract.bus import Bus, HostCosts, Progress
from hw.contract.params import SocParams
from sim.backends import BACKENDS, DEFAULT_BACKEND, MODEL


class NoWaveforms(RuntimeError):
    """Says that waveforms were asked of a backend that has no signals."""


def open_simulator(
    params: SocParams,
    backend: str = DEFAULT_BACKEND,
    *,
    costs: HostCosts | None = None,
    vcd: str | PathLike | None = None,
    progress: Progress | None = None,
) -> Bus:
    """Return a SoC at power-on on any of ``sim.backends.BACKENDS``: the fast model, or RTL as by ``sim.rtl.open_bus``.

    ValueError for an unknown backend, :class:`NoWaveforms` for waveforms of the model, ``BuildError`` if a simulator of
    the RTL cannot be built or cannot write waveforms.
    """
    if backend not in BACKENDS:
        raise ValueError(f"no backend named {backend!r}; known are {', '.join(BACKENDS)}")
    if backend == MODEL:
        if vcd is not None:
            raise NoWaveforms(
                f"the fast model has no signals to write to {vcd}: use --backend cxxrtl (needs the dev extra) or pysim"
            )
        from sim.model.bus import ModelBus

        return ModelBus(params, costs=costs, progress=progress)
    from sim.rtl import open_bus  # Amaranth is only loaded where it is used

    return open_bus(params, backend, costs=costs, vcd=vcd, progress=progress)
