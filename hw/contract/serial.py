"""Defines the frames by which a host reaches the registers and the memory of a machine over a serial line.

The line carries bytes of 8 bits without parity. The host sends a request and waits for its response before the next; a
machine never sends unasked. Both have a fixed length and end in a CRC. The machine drops what is damaged and what does
not begin with ``SYNC``, and forgets a request that stops half-way, so a host that hears nothing sends the same once
more: a machine that has done it already sends the response again, and does it once.

``head`` is the operation in its low four bits and a number above it, which changes from request to request and comes
back in the response. LOOK is done each time: a host begins with one, so that no number is left from the host before.
"""

import binascii
import enum
import struct

SYNC = 0xA5  #: the first byte of every frame
CRC_BYTES = 2  #: of CRC-16/IBM-3740 over all before it, high byte first
#: ``SYNC``, ``head``, byte address, byte enables (of writes to memory), data (32 bits of a register).
REQUEST = struct.Struct("<BBIBQ")
#: ``SYNC``, ``head``, status, data.
RESPONSE = struct.Struct("<BBBQ")
WORD_BYTES = 8  #: memory moves in words, at addresses that are multiples of this
FAILED, INTERRUPT = 1, 2  #: bits of the status: the machine refused; the interrupt line is high
NUMBERS = 16  #: requests that can be told apart


class SerialOp(enum.IntEnum):
    """Names what a request asks for. Others are answered with ``FAILED``."""

    LOOK = 1  #: nothing but the status; data are the cycles since power-on
    READ_REG = 2
    WRITE_REG = 3
    READ_MEM = 4
    WRITE_MEM = 5


def framed(layout: struct.Struct, *fields: int) -> bytes:
    """Return the frame that holds ``fields``, those of ``layout`` behind ``SYNC``."""
    raw = layout.pack(SYNC, *fields)
    return raw + binascii.crc_hqx(raw, 0xFFFF).to_bytes(CRC_BYTES, "big")


def unframed(layout: struct.Struct, frame: bytes) -> tuple[int, ...] | None:
    """Return the fields of a frame behind ``SYNC``, or None if it is damaged or too short."""
    if len(frame) != layout.size + CRC_BYTES or frame[0] != SYNC or binascii.crc_hqx(frame, 0xFFFF):
        return None
    return layout.unpack(frame[: layout.size])[1:]
