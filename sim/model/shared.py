"""Holds what the engines of a SoC share: time, memories, programs, and the event counters of ``hw/control/events.py``,
whose turns are a clock of their own."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from hw.contract.isa import UNIT_OF, Op
from hw.contract.job import Fault
from hw.contract.params import SocParams
from sim.cost.exact.copies import run_beyond
from sim.cost.exact.program import Programs, ProgramTable
from sim.functional.repeated import RepeatedUnits
from sim.functional.state import FunctionalFault, Segments
from sim.model.agenda import Agenda
from sim.model.completion import BodyCounters, Recorder
from sim.model.memory import MemoryModel

ENDLESS = 1 << 28  #: cycles of an instruction that nobody waits for


class EventModel:
    """Keeps counters that only engines' signals and the host change. Every engine has two turns in a round, for signals
    and for waits, and the host has one; a turn takes two cycles, and what is asked in its first is answered in its
    second."""

    def __init__(self, params: SocParams) -> None:
        self.counts = [0] * params.events
        self._round = 2 * (2 * params.engines + 1)

    def _turn(self, time: int, first: int) -> int:
        """Return when what is asked from ``time`` on is answered, in the turn that begins at ``first`` of a round."""
        return time + (first - time) % self._round + 1

    def signalled(self, time: int, engine: int) -> int:
        """Return when a signal that ``engine`` offers from ``time`` on is taken."""
        return self._turn(time, 4 * engine)

    def looked(self, time: int, engine: int) -> int:
        """Return when ``engine``, which waits from ``time`` on, sees a counter next."""
        return self._turn(time, 4 * engine + 2)

    def accessed(self, time: int) -> int:
        """Return when an access of the host that is offered from ``time`` on is answered."""
        return self._turn(time, self._round - 2)

    def reached(self, number: int, value: int) -> bool:
        """Return whether a counter is at or past ``value``."""
        return not (self.counts[number] - value) >> 31 & 1


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
            base = segments[insn["src_seg" if insn.op is Op.LD2 else "dst_seg"]][0]
            offset = run_beyond(insn.fields, base, self.params.dram_bytes, insn.op is Op.LD2)
            raise FunctionalFault(Fault.BUS, pc, offset, UNIT_OF[insn.op]) from None
