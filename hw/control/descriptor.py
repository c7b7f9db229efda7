"""Defines job descriptors as the sequencers see them: 64-bit words in a small local RAM of ``job_slots`` slots."""

from amaranth.hdl import Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.contract.isa import SEGMENTS
from hw.contract.job import JOB
from hw.contract.params import SocParams
from hw.interfaces import ADDR, PC

HEADER_WORDS = 16  #: 64-bit words of a descriptor before the segment table
HEADER_BITS = 4

SEGMENT = data.StructLayout({"base": ADDR, "limit": ADDR})

#: Why a job failed, as its completion tells it.
JOB_FAULT = data.StructLayout({"code": 8, "unit": 8, "pc": PC, "addr": ADDR})


class RamRead(wiring.Signature):
    """Carries reads of a local RAM, seen from the reader: ``data`` follows ``addr`` one cycle later."""

    def __init__(self, addr_width: int, shape) -> None:
        super().__init__({"addr": Out(addr_width), "data": In(shape)})


class HeaderRead(RamRead):
    """Reads 64-bit word ``addr[:HEADER_BITS]`` of the descriptor in slot ``addr[HEADER_BITS:]``."""

    def __init__(self, params: SocParams) -> None:
        super().__init__(params.job_slot_bits + HEADER_BITS, 64)


class SegmentRead(RamRead):
    """Reads segment ``addr[:3]`` of the descriptor in slot ``addr[3:]``."""

    def __init__(self, params: SocParams) -> None:
        super().__init__(params.job_slot_bits + (SEGMENTS - 1).bit_length(), SEGMENT)


def word_of(name: str) -> int:
    """Return the number of the 64-bit word of a descriptor that holds member ``name``."""
    return JOB[name].offset // 8


def member(word: Value, name: str) -> Value:
    """Return the bits of member ``name`` within its 64-bit word."""
    low = JOB[name].offset % 8 * 8
    return word[low : low + 8 * JOB[name].size]
