"""Models LD2, ``hw/dma/source.py`` and ``hw/control/ld2_share.py``, burst by burst."""

import ctypes

from hw.contract.params import SocParams
from sim.model.agenda import Agenda
from sim.model.dram import MemoryModel
from sim.model.transfer import LOADER, Struck, Told, Transfer


class LoadUnit:
    """Loads for the body and the loader of one engine, which are told when a burst of theirs was ``struck``.

    It holds ``UNIT_IN_FLIGHT`` commands, all of one of the two. Bursts are asked for in order, as many as may be in
    flight; a command is done when its words have come, and the realigner has taken its steps.
    """

    def __init__(self, params: SocParams, memory: MemoryModel, agenda: Agenda, port: int, struck: Struck) -> None:
        self.struck, self.agenda = struck, agenda
        self._memory, self._call = memory, memory.core.call
        self._unit = self._call.load_unit(memory.core.address, port, memory.carried_by(self))
        self._recovered: Told | None = None

    @property
    def outstanding(self) -> int:
        """Return how many bursts were asked for and have not come."""
        count: int = self._call.load_outstanding(self._unit)
        return count

    @property
    def recovering(self) -> bool:
        """Return whether commands of the loader are being taken out."""
        return self._recovered is not None

    def offer(self, time: int, transfer: Transfer) -> None:
        """A command is valid from ``time`` on."""
        given = transfer.given(self._memory.command(self, transfer))
        if not self._call.load_offer(self._unit, time, ctypes.byref(given)):
            raise RuntimeError("LD2 was offered more commands than it holds")

    def abandon(self, time: int, recovered: Told) -> bool:
        """Take the loader's commands out; ``recovered`` is told when the unit was reset. Return False if there are
        none."""
        taken_out = bool(self._call.load_abandon(self._unit, time))
        self._memory.forget_commands(self, LOADER)
        if taken_out:
            self._recovered = recovered
        return taken_out

    def given_up(self, time: int) -> None:
        """The loader's commands were taken out."""
        recovered, self._recovered = self._recovered, None
        assert recovered is not None
        recovered(time)

    def clear(self) -> None:
        """Reset with the engine: nothing is outstanding then."""
        self._call.load_clear(self._unit)
        self._recovered = None
        self._memory.forget_commands(self)

    def stop(self) -> None:
        """Abort: ask for nothing more."""
        self._call.load_stop(self._unit)
