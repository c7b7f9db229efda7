"""Opens a simulated SoC by the name of its backend, if asked with a record of when each unit ran each instruction."""

from os import PathLike
from typing import Protocol

from hw.contract.bus import Bus, HostCosts, Progress
from hw.contract.params import SocParams
from sim.backends import BACKENDS, DEFAULT_BACKEND, MODEL
from sim.instruction_runs import InstructionRun


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


class NoRecording(ValueError):
    """Says that the backend cannot tell when its units run."""


class RecordedBus(Bus, Protocol):
    """Is a bus that keeps what ran."""

    @property
    def runs(self) -> list[InstructionRun]:
        """Return the instructions that have ended."""


def open_recorded(params: SocParams, backend: str, progress: Progress | None = None) -> RecordedBus:
    """Return a SoC at power-on that keeps when its units run. RTL is simulated cycle by cycle, some hundred times
    slower than otherwise. Raises :class:`NoRecording` for a backend whose registers cannot be read."""
    if backend == MODEL:
        from sim.model.bus import ModelBus

        model = ModelBus(params, progress=progress)
        model.record()
        return model
    from sim.rtl.compiled import CompiledBus
    from sim.rtl.recording import RecordingBus

    bus = open_simulator(params, backend, progress=progress)
    if not isinstance(bus, CompiledBus):
        bus.close()
        raise NoRecording(f"backend {backend!r} cannot tell when units run: use native, cxxrtl or model")
    return RecordingBus(bus)
