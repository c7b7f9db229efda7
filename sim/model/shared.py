"""What the engines of a SoC share: time, memories, events, programs."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from hw.contract.params import SocParams
from sim.functional.state import Segments
from sim.functional.units import Units
from sim.model.agenda import Agenda
from sim.model.dram import MemoryModel
from sim.model.events import EventModel
from sim.model.programs import Programs
from sim.model.recorder import Recorder
from sim.timing.program import ProgramTable


class Shared:
    """``dram``: its bytes. ``units``: what instructions do to the memories, None where they are only timed.
    ``awaiting_interrupt``: the host waits for the interrupt line, and what raises it stops the agenda.
    ``event_changed``: who wants to know that an event counter was changed."""

    def __init__(self, params: SocParams, *, data: bool) -> None:
        self.params = params
        self.agenda = Agenda()
        self.memory = MemoryModel(params, self.agenda)
        self.events = EventModel(params)
        self.recorder = Recorder()
        self.dram: npt.NDArray[np.uint8] = np.zeros(params.dram_bytes, np.uint8)
        self.programs = Programs(params, self.dram)
        self.units = Units(params, self.dram) if data else None
        self.awaiting_interrupt = False
        self.event_changed: list[Callable[[int], None]] = []

    def store(self, address: int, data: bytes) -> None:
        """Set bytes of the DRAM."""
        self.dram[address : address + len(data)] = np.frombuffer(data, np.uint8)
        self.programs.changed(address, len(data))

    def execute(self, program: ProgramTable, pc: int, segments: Segments, engine: int) -> None:
        """Carry out the instruction at ``pc``, if instructions are; raises ``FunctionalFault``."""
        if self.units is None:
            return
        self.units.execute(program.insn(pc), segments, engine, pc)
