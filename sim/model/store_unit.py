"""Models ST2, ``hw/dma/sink.py``, burst by burst."""

import ctypes

from hw.contract.params import SocParams
from sim.model.agenda import Agenda
from sim.model.dram import STORE_BUFFERED, MemoryModel
from sim.model.transfer import Struck, Transfer


class StoreUnit:
    """Stores in bursts that are announced as their first word comes and go one after the other. ``struck`` is told when
    one was answered with an error."""

    BUFFERED = STORE_BUFFERED  #: words on their way between the realigner and the memory

    def __init__(self, params: SocParams, memory: MemoryModel, agenda: Agenda, port: int, struck: Struck) -> None:
        self.struck, self.agenda = struck, agenda
        self._memory, self._call = memory, memory.core.call
        self._unit = self._call.store_unit(memory.core.address, port, memory.carried_by(self))

    @property
    def outstanding(self) -> int:
        """Return how many bursts were announced and not answered."""
        count: int = self._call.store_outstanding(self._unit)
        return count

    def offer(self, time: int, transfer: Transfer) -> None:
        """A command is valid from ``time`` on."""
        given = transfer.given(self._memory.command(self, transfer))
        if not self._call.store_offer(self._unit, time, ctypes.byref(given)):
            raise RuntimeError("ST2 was offered more commands than it holds")

    def given_up(self, time: int) -> None:
        """Do nothing, as commands of ST2 are never taken out."""
        raise NotImplementedError

    def stop(self) -> None:
        """Abort: announce nothing more."""
        self._call.store_stop(self._unit)

    def clear(self) -> None:
        """Reset with the engine: nothing is outstanding then."""
        self._call.store_clear(self._unit)
        self._memory.forget_commands(self)
