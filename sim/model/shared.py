"""Holds what the engines of a SoC share: time, memories, events and programs."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from hw.contract.isa import UNIT_OF, Insn, Op
from hw.contract.job import Fault
from hw.contract.params import SocParams
from sim.cost.exact.copies import RUN_LOOPS, runs_of
from sim.cost.exact.excerpt import MOST, excerpt
from sim.cost.exact.program import ProgramTable
from sim.functional.repeated import RepeatedUnits
from sim.functional.state import FunctionalFault, Segments
from sim.model.agenda import Agenda
from sim.model.completion import BodyCounters
from sim.model.dram import MemoryModel
from sim.model.events import EventModel
from sim.model.programs import Programs
from sim.model.recorder import Recorder

ENDLESS = 1 << 28  #: cycles of an instruction that nobody waits for


class Shared:
    """Holds what engines share. ``dram`` is its bytes; ``units`` is what instructions do to the memories, None where
    they are only timed. While ``awaiting_interrupt`` the host waits for the interrupt line, and what raises it stops
    the agenda. ``event_changed`` is told that an event counter was changed."""

    def __init__(self, params: SocParams, *, data: bool) -> None:
        self.params = params
        self.agenda = Agenda()
        self.memory = MemoryModel(params, self.agenda)
        self.events = EventModel(params)
        self.recorder = Recorder()
        self.counters = BodyCounters()
        self.dram: npt.NDArray[np.uint8] = np.zeros(params.dram_bytes, np.uint8)
        self.programs = Programs(params, self.dram)
        self.units = RepeatedUnits(params, self.dram) if data else None
        self.awaiting_interrupt = False
        self.event_changed: list[Callable[[int], None]] = []

    def store(self, address: int, data: bytes) -> None:
        """Set bytes of the DRAM."""
        self.dram[address : address + len(data)] = np.frombuffer(data, np.uint8)
        self.programs.changed(address, len(data))

    def execute(self, program: ProgramTable, pc: int, segments: Segments, engine: int, patience: int) -> None:
        """Carry out the instruction at ``pc``, if instructions are; raises ``FunctionalFault``. Of one that goes on for
        more than ``patience`` cycles (0: no limit), whose job will not end, nothing is carried out."""
        if self.units is None:
            return
        insn = program.insn(pc)
        endless = program.cycles(pc) > (patience or ENDLESS)
        try:
            self.units.execute(insn, segments, engine, pc, only_checks=endless)
        except IndexError:  # within its segment, which reaches beyond the memory
            raise FunctionalFault(Fault.BUS, pc, self._unanswered(insn, segments), UNIT_OF[insn.op]) from None

    def _unanswered(self, insn: Insn, segments: Segments) -> int:
        """Return the offset of byte 0 of the first run that the DRAM answers with an error."""
        side = "src" if insn.op is Op.LD2 else "dst"
        runs = runs_of(excerpt(insn.fields, RUN_LOOPS, MOST)[0])
        first = runs.src if insn.op is Op.LD2 else runs.dst
        beyond = first + segments[insn[f"{side}_seg"]][0] + insn["len"] > self.params.dram_bytes
        return int(first[beyond][0]) if beyond.any() else int(first[0])
