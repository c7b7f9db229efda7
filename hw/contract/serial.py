"""Defines the frames by which a host reaches the registers and the memory of a machine over a serial line.

The line carries bytes of 8 bits without parity. The host sends a request and waits for its response before the next; a
machine never sends unasked. Both begin with ``SYNC`` and end in a CRC. Between ``REQUEST`` or ``RESPONSE`` and the CRC
lie words: one, or as many as a block has that is written, or was read. The machine does nothing before the CRC has
come. What is damaged, and what does not begin with ``SYNC``, it drops, with all that follows until the line is silent;
a request that stops half-way it forgets. So a host that hears nothing sends the same once more: a machine that has done
it already sends the response again, and does it once.

``head`` is the operation in its low four bits and a number above it, which changes from request to request and comes
back in the response. LOOK is done each time: a host begins with one, so that no number is left from the host before. So
are reads of memory, which change nothing.
"""

import binascii
import enum
import struct

SYNC = 0xA5  #: the first byte of every frame
CRC_BYTES = 2  #: of CRC-16/IBM-3740 over all before it, high byte first
#: ``SYNC``, ``head``, byte address, and byte enables of WRITE_MEM, or how many words a block has behind its first:
#: fewer than ``BLOCK_WORDS``; higher bits say nothing.
REQUEST = struct.Struct("<BBIB")
#: ``SYNC``, ``head``, status.
RESPONSE = struct.Struct("<BBB")
WORD_BYTES = 8  #: memory moves in words, at addresses that are multiples of this
BLOCK_WORDS = 128  #: words of a block at most, a power of two
FAILED, INTERRUPT = 1, 2  #: bits of the status: the machine refused; the interrupt line is high
NUMBERS = 16  #: requests that can be told apart


class SerialOp(enum.IntEnum):
    """Names what a request asks for. Others are answered with ``FAILED``."""

    LOOK = 1  #: nothing but the status; the word is the cycles since power-on
    READ_REG = 2  #: 32 bits in the low half of the word
    WRITE_REG = 3
    READ_MEM = 4
    WRITE_MEM = 5
    READ_BLOCK = 6
    WRITE_BLOCK = 7


def request_frame(head: int, address: int, extra: int, words: bytes = bytes(WORD_BYTES)) -> bytes:
    """Return a request with its ``words``; ``extra`` is the last field of ``REQUEST``."""
    return _with_crc(REQUEST.pack(SYNC, head, address, extra) + words)


def response_size(words: int) -> int:
    """Return the bytes of a response with so many words."""
    return RESPONSE.size + words * WORD_BYTES + CRC_BYTES


def response_fields(frame: bytes) -> tuple[int, int, bytes] | None:
    """Return head, status and words of a response, or None if it is damaged."""
    if not frame or frame[0] != SYNC or binascii.crc_hqx(frame, 0xFFFF):
        return None
    _, head, status = RESPONSE.unpack_from(frame)
    return head, status, frame[RESPONSE.size : -CRC_BYTES]


def _with_crc(raw: bytes) -> bytes:
    return raw + binascii.crc_hqx(raw, 0xFFFF).to_bytes(CRC_BYTES, "big")
