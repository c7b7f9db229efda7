"""Opens buses that tell when each unit ran each instruction: of the fast model, and of the RTL cycle by cycle."""

from typing import Protocol

from hw.contract.bus import Bus, Progress
from hw.contract.params import SocParams
from sim.backends import MODEL
from sim.instruction_runs import InstructionRun
from sim.simulators import open_simulator


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
