"""Models the units that reach DRAM, burst by burst: LD2 (``hw/dma/source.py``, ``hw/control/ld2_share.py``) and ST2
(``hw/dma/sink.py``)."""

import ctypes
from typing import Any

from sim.model.agenda import Agenda
from sim.model.commands import LOADER, Command, Struck, Told
from sim.model.memory import MemoryModel


class MemoryUnit:
    """Is LD2 or ST2. Commands are carried out in order, several at a time; ``struck`` is told when a burst of one was
    answered with an error."""

    NAME: str
    FUNCTIONS: str  #: how the names of its functions in the core begin

    def __init__(self, memory: MemoryModel, agenda: Agenda, port: int, struck: Struck) -> None:
        self.struck, self.agenda = struck, agenda
        self._memory, self._core = memory, memory.core
        self._unit = getattr(self._core.call, f"{self.FUNCTIONS}_unit")(
            self._core.address, port, memory.carried_by(self)
        )

    def _call(self, function: str, *arguments: Any) -> int:
        answer: int = getattr(self._core.call, f"{self.FUNCTIONS}_{function}")(self._unit, *arguments)
        return answer

    @property
    def outstanding(self) -> int:
        """Return how many bursts were asked for, or announced, and not answered."""
        return self._call("outstanding")

    def offer(self, time: int, command: Command) -> None:
        """A command is valid from ``time`` on."""
        given = command.given(self._memory.command(self, command))
        if not self._call("offer", time, ctypes.byref(given)):
            raise RuntimeError(f"{self.NAME} was offered more commands than it holds")

    def given_up(self, time: int) -> None:
        """Commands were taken out."""
        raise NotImplementedError

    def stop(self) -> None:
        """Abort: ask for nothing more, or announce nothing."""
        self._call("stop")

    def clear(self) -> None:
        """Reset with the engine: nothing is outstanding then."""
        self._call("clear")
        self._memory.forget_commands(self)


class StoreUnit(MemoryUnit):
    """Stores in bursts that are announced as their first word comes and go one after the other. No command is ever
    taken out."""

    NAME, FUNCTIONS = "ST2", "store"


class LoadUnit(MemoryUnit):
    """Loads for the body and the loader of one engine, which are told when a burst of theirs was ``struck``.

    It holds ``UNIT_IN_FLIGHT`` commands, all of one of the two. Bursts are asked for in order, as many as may be in
    flight; a command is done when its words have come, and the realigner has taken its steps.
    """

    NAME, FUNCTIONS = "LD2", "load"
    _recovered: Told | None = None

    @property
    def recovering(self) -> bool:
        """Return whether commands of the loader are being taken out."""
        return self._recovered is not None

    def abandon(self, time: int, recovered: Told) -> bool:
        """Take the loader's commands out; ``recovered`` is told when the unit was reset. Return False if there are
        none."""
        taken_out = bool(self._call("abandon", time))
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
        self._recovered = None
        super().clear()
