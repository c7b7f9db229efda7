"""Describes what clients of the DRAM ask for, and what is kept of it."""

from collections.abc import Callable
from typing import Any, Protocol

Served = Callable[[int, Any], None]  #: told the cycle in which the last beat moved
READ_PORTS = 3  #: of an engine: fetch of the body, fetch of loader and ring, LD2
HELD = -1  #: the answer to a request that waits


class PortUser(Protocol):
    """Is whoever has bursts: ``port`` is its number among those that read, or write."""

    port: int


class Client(PortUser, Protocol):
    """Is whoever asks for bursts, one at a time."""

    def accepted(self, time: int) -> None:
        """A request that had to wait was accepted: from cycle ``time`` on the next may be offered."""


BurstLog = list[tuple[PortUser, Any, int, int, int, int, int, bool, int]]
"""Of each burst, in the order in which they were accepted: client, what it is told (None: a unit), when it was
offered, when its address was taken, bank, row, beats, whether it writes, steps that it waits for."""
#: Of each burst, in order: the cycle of its last beat, whether it writes, and for how long LV2 has held its data up.
ServedLog = list[tuple[int, bool, int]]
