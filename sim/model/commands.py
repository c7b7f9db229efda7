"""Describes what is asked of the DRAM: bursts by their clients, and commands of the units that reach it."""

import ctypes
from collections.abc import Callable
from typing import Any, Protocol

from sim.cost.exact.copies import BusCopy
from sim.model.core import Given

Served = Callable[[int, Any], None]  #: told the cycle in which the last beat moved
Told = Callable[[int], None]
Struck = Callable[[int, "Command", int], None]  #: told when the fault is known, whose burst failed, and which
READ_PORTS = 3  #: of an engine: fetch of the body, fetch of loader and ring, LD2
HELD = -1  #: the answer to a request that waits
BODY, LOADER = 0, 1  #: who gives commands to LD2


class Client(Protocol):
    """Is whoever asks for bursts, one at a time: ``port`` is its number among those that read, or write."""

    port: int

    def accepted(self, time: int) -> None:
        """A request that had to wait was accepted: from cycle ``time`` on the next may be offered."""


class Command:
    """Is the command of LD2 or ST2 at ``pc``, which does ``work``.

    ``bases``: the address that the offsets of its bursts count from, and the byte of LV2 that a load's words count
    from; ``accepted`` and ``done`` are told the cycle.
    """

    __slots__ = ("_bases", "_work", "accepted", "done", "pc", "side")

    def __init__(
        self, work: BusCopy, bases: tuple[int, int], accepted: Told, done: Told, pc: int, side: int = BODY
    ) -> None:
        self._work, self._bases = work, bases
        self.accepted, self.done, self.pc, self.side = accepted, done, pc, side

    def given(self, number: int) -> ctypes.Structure:
        """Return the command as the core knows it."""
        steps, bursts, lead, trail = self._work
        return Given(
            number, self.side, *self._bases, lead, trail, steps.runs, steps.steps, len(bursts), bursts.part,
            bursts.address,
        )  # fmt: skip


class Carrier(Protocol):
    """Is a unit that carries commands out, as the memory sees it."""

    struck: Struck

    def given_up(self, time: int) -> None:
        """Commands were taken out."""
