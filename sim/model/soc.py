"""All that is behind the bus: ``hw/soc.py`` with its memory."""

import numpy as np
import numpy.typing as npt

from hw.contract.isa import IsaError
from hw.contract.job import Fault, FaultUnit
from hw.contract.params import SocParams
from sim.functional.state import FunctionalFault, Segments
from sim.functional.units import Units
from sim.model.agenda import Agenda
from sim.model.dram import Memory
from sim.model.engine import Engine
from sim.model.events import EventCounters
from sim.model.programs import Programs
from sim.model.recorder import Recorder
from sim.timing.program import Program


class Soc:
    """Engines, events, DRAM, and with ``data`` what instructions do to the memories."""

    def __init__(self, params: SocParams, *, data: bool = True) -> None:
        self.params, self.data = params, data
        self.agenda = Agenda()
        self.memory = Memory(params, self.agenda)
        self.events = EventCounters(params)
        self.recorder = Recorder()
        self.dram: npt.NDArray[np.uint8] = np.zeros(params.dram_bytes, np.uint8)
        self.programs = Programs(params, self.dram)
        self.units = Units(params, self.dram) if data else None
        self.raised: int | None = None  #: when the interrupt line rose last
        self.engines = [Engine(self, number) for number in range(params.engines)]

    def store(self, address: int, data: bytes) -> None:
        """Set bytes of the DRAM."""
        self.dram[address : address + len(data)] = memoryview(data)
        self.programs.changed(address, len(data))

    def execute(self, program: Program, pc: int, segments: Segments, engine: int) -> None:
        """Carry out the instruction at ``pc``; raises ``FunctionalFault``."""
        try:
            insn = program.insn(pc)
        except IsaError as error:
            raise FunctionalFault(Fault.ILLEGAL, pc, 0, FaultUnit.EXECUTOR, str(error)) from None
        self.units.execute(insn, segments, engine, pc)

    def line(self) -> bool:
        """The interrupt line."""
        return any(engine.irq_pending & engine.regs["IRQ_ENABLE"] for engine in self.engines)

    def interrupt_raised(self, time: int) -> None:
        """An interrupt is pending."""
        self.raised = time


