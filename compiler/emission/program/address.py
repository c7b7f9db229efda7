"""Addresses that are symbols until the linker has decided where a job's weights lie."""

import enum
from dataclasses import dataclass


class Anchor(enum.Enum):
    """Names what a symbolic address counts from."""

    WINDOW = "window"  #: the job's weight window, in segment 7
    WEIGHTS = "weights"  #: what the window shall hold, in the weight segment
    STREAM = "stream"  #: the weights that the job loads chunk by chunk, in the weight segment


@dataclass(frozen=True)
class Symbol:
    """An address ``offset`` bytes behind an anchor of the job."""

    anchor: Anchor
    offset: int

    def __add__(self, count: int) -> "Symbol":
        return Symbol(self.anchor, self.offset + count)

    def __str__(self) -> str:
        return f"{self.anchor.value} + {self.offset}"


Address = int | Symbol


def offset_of(address: Address) -> int:
    """Return the number of an address; a symbol's counts from its anchor."""
    return address.offset if isinstance(address, Symbol) else address


@dataclass(frozen=True)
class JobAddresses:
    """Where the anchors of one job lie in their segments. By default all lie at 0, which is good for estimates."""

    window: int = 0
    weights: int = 0
    stream: int = 0

    def resolve(self, address: Address) -> int:
        """Return the address in its segment."""
        return getattr(self, address.anchor.value) + address.offset if isinstance(address, Symbol) else address
