"""Defines the SDR SDRAM that boards carry: geometry, commands, the mode it is set to, and its times.

The chip is that of a board with 32 MiB or more: four banks of 8,192 rows of 512 words of 16 bits. A larger one has more
columns, of which the first 512 are used. Its times are the slowest of those that MT48LC16M16, AS4C32M16, W9825G6KH-6
and their like are sold with, so that any of them will do.
"""

import enum
import math
from dataclasses import dataclass

from hw.contract.params import MIB

BANK_BITS, ROW_BITS, COLUMN_BITS = 2, 13, 9
DATA_BYTES = 2  #: that move in a cycle
BURST = 4  #: columns of an access: eight bytes
SIZE = 32 * MIB
CAS_LATENCY = 2  #: cycles of the chip's clock from a read to its first data
#: Burst length, by its logarithm, and CAS latency in their fields; bursts in order, of writes as well.
MODE = CAS_LATENCY << 4 | BURST.bit_length() - 1
ALL_BANKS = 10  #: the address bit with which a precharge closes the rows of all banks
FIRST_REFRESHES = 8  #: before the mode is set
FASTEST = 50.0  #: MHz: the chip works half a cycle behind, and data take up to 6 ns of the half that is left


class SdramCommand(enum.IntEnum):
    """Names what pins say in a cycle: not RAS, not CAS and not WE, the last one lowest."""

    MODE = 0b000
    REFRESH = 0b001
    PRECHARGE = 0b010
    ACTIVATE = 0b011
    WRITE = 0b100
    READ = 0b101
    NOP = 0b111


@dataclass(frozen=True)
class SdramTiming:
    """Holds what the chip asks for, in cycles of its clock."""

    start: int  #: from power-on to the first command
    refresh: int  #: from refresh to refresh
    after_refresh: int
    after_mode: int
    after_precharge: int
    to_column: int  #: from activating a row to reading or writing it
    row_open: int  #: from activating a row to closing it, at least
    after_write: int  #: from the last word written to closing its row

    @classmethod
    def at(cls, clock: float) -> "SdramTiming":
        """Return the times at a ``clock`` in MHz. Raises ValueError where it is faster than ``FASTEST``."""
        if not 0 < clock <= FASTEST:
            raise ValueError(f"SDRAM works at up to {FASTEST:g} MHz here, not at {clock:g}: choose a slower clock")

        def cycles(nanoseconds: float) -> int:
            return max(1, math.ceil(nanoseconds * clock / 1000))

        return cls(
            start=cycles(200_000),
            refresh=int(64e6 / (1 << ROW_BITS) * clock / 1000),
            after_refresh=cycles(70),
            after_mode=2,
            after_precharge=cycles(22),
            to_column=cycles(21),
            row_open=cycles(45),
            after_write=max(2, cycles(20)),
        )
