"""Describes what clients of the DRAM ask for."""

from collections.abc import Callable
from typing import Any, Protocol

Served = Callable[[int, Any], None]  #: told the cycle in which the last beat moved
READ_PORTS = 3  #: of an engine: fetch of the body, fetch of loader and ring, LD2
HELD = -1  #: the answer to a request that waits


class Client(Protocol):
    """Is whoever asks for bursts, one at a time: ``port`` is its number among those that read, or write."""

    port: int

    def accepted(self, time: int) -> None:
        """A request that had to wait was accepted: from cycle ``time`` on the next may be offered."""
