"""Reaches a machine over a serial line, by the frames of ``hw.contract.serial``."""

from typing import Protocol

from hw.contract.bus import BusError, BusTimeout, HostCosts
from hw.contract.params import SocParams
from hw.contract.serial import (
    BLOCK_WORDS,
    FAILED,
    INTERRUPT,
    NUMBERS,
    SYNC,
    WORD_BYTES,
    SerialOp,
    request_frame,
    response_fields,
    response_size,
)

_ALL_BYTES = (1 << WORD_BYTES) - 1
_MOST_NOISE = 256  #: bytes that are skipped in wait of a response: a line that never falls silent would hold a host up


class SerialPort(Protocol):
    """Is what of a ``serial.Serial`` of pyserial is used: its ``timeout`` must be set."""

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, fewer where they have not come within the timeout."""

    def write(self, data: bytes) -> object:
        """Send bytes."""

    def reset_input_buffer(self) -> None:
        """Forget what has come."""

    def close(self) -> None:
        """Close the line."""


class SerialBus:
    """Is a :class:`hw.contract.bus.Bus` over a serial line to a :class:`hw.board.BoardTop` of ``params``.

    Nothing is charged: the machine's time passes by itself, and ``charge`` makes no difference. A request whose
    response does not come, or comes damaged, is sent up to ``attempts`` times; the machine does it once. A block of
    memory that does not get through is sent as shorter ones, down to single words.

    Parameters
    ----------
    port : SerialPort
        It waits longer than the machine forgets (ten bytes' time) and than a response takes.
    params : SocParams
    attempts : int

    :class:`hw.contract.bus.BusTimeout` where no machine answers.
    """

    def __init__(self, port: SerialPort, params: SocParams, *, attempts: int = 4) -> None:
        self.params = params
        self.costs = HostCosts.free()
        self._port, self._attempts = port, attempts
        self._number, self._most = 0, BLOCK_WORDS
        self._heard = 0  # bytes
        self._closed = False
        self._look()

    @property
    def cycle(self) -> int:
        """Return the machine's cycles since power-on."""
        return self._look()[1]

    def read_reg(self, address: int) -> int:
        """Read a 32-bit register. :class:`hw.contract.bus.BusError` for an address that has none."""
        return self._register(SerialOp.READ_REG, address, 0) & 0xFFFFFFFF

    def write_reg(self, address: int, value: int) -> None:
        """Write a 32-bit register; errors as for :meth:`read_reg`."""
        if not 0 <= value < 1 << 32:
            raise BusError(f"a register holds 0 to 0xffffffff, not {value:#x} (write to {address:#06x})")
        self._register(SerialOp.WRITE_REG, address, value)

    def read_mem(self, address: int, size: int, *, charge: bool = True) -> bytes:
        """Read DRAM, in blocks of words. :class:`hw.contract.bus.BusError` beyond its end."""
        first = self._first_word("read", address, size)
        raw, end = bytearray(), address + size
        while first + len(raw) < end:
            at = first + len(raw)
            words = min(self._most, -(-(end - at) // WORD_BYTES))
            raw += self._block(SerialOp.READ_BLOCK, at, words) or self._exchange(SerialOp.READ_MEM, at)[1]
        return bytes(raw[address - first :][:size])

    def write_mem(self, address: int, data: bytes, *, charge: bool = True) -> None:
        """Write DRAM, in blocks of words, and nothing beside ``data``; errors as for :meth:`read_mem`."""
        raw = bytes(data)
        at, end = self._first_word("write", address, len(raw)), address + len(raw)
        while at < end:
            begin, whole = max(at, address), (end - at) // WORD_BYTES
            words = min(self._most, whole) if begin == at else 0
            if words and self._block(SerialOp.WRITE_BLOCK, at, words, raw[at - address :][: words * WORD_BYTES]):
                at += words * WORD_BYTES
                continue
            stop = min(at + WORD_BYTES, end)
            enables = (_ALL_BYTES >> (WORD_BYTES - (stop - begin))) << (begin - at)
            word = bytes(begin - at) + raw[begin - address : stop - address] + bytes(at + WORD_BYTES - stop)
            self._exchange(SerialOp.WRITE_MEM, at, enables, word)
            at += WORD_BYTES

    def _block(self, op: SerialOp, address: int, words: int, data: bytes = bytes(WORD_BYTES)) -> bytes:
        """Return the words of the response to a request of a block, or nothing where that is no block, or was refused
        or not answered. Blocks are shorter then, and longer again with each that gets through."""
        if words < 2:
            self._most = min(self._most + 1, BLOCK_WORDS)
            return b""
        response = self._asked_once(op, address, words - 1, data, words if op == SerialOp.READ_BLOCK else 1)
        if response is None or response[0] & FAILED:
            self._most = words // 2
            return b""
        self._most = min(self._most + max(1, self._most // 8), BLOCK_WORDS)
        return response[1]

    def wait_irq(self, limit: int) -> bool:
        """Look until the interrupt line is high (True) or ``limit`` cycles have passed (False)."""
        status, cycle = self._look()
        end = cycle + limit
        while not status & INTERRUPT and cycle < end:
            status, cycle = self._look()
        return bool(status & INTERRUPT)

    def advance(self, cycles: int) -> None:
        """Look until ``cycles`` cycles have passed."""
        if cycles < 0:
            raise ValueError(f"cycles must not be negative, not {cycles}")
        end = self.cycle + cycles
        while self.cycle < end:
            pass

    def close(self) -> None:
        """Close the line; further calls raise RuntimeError."""
        if not self._closed:
            self._closed = True
            self._port.close()

    def _first_word(self, access: str, address: int, size: int) -> int:
        """Return the address of the first word of an access; raises :class:`BusError` if it leaves the DRAM."""
        if address < 0 or size < 0 or address + size > self.params.dram_bytes:
            limit = self.params.dram_bytes
            raise BusError(f"{access} of {size} bytes at {address:#x} leaves the DRAM of {limit:#x} bytes")
        return address - address % WORD_BYTES if size else address

    def _register(self, op: SerialOp, address: int, value: int) -> int:
        access = "write to" if op == SerialOp.WRITE_REG else "read of"
        if address % 4 or not 0 <= address < 1 << 16:
            raise BusError(f"{access} register {address:#06x}: the address must be a multiple of 4 below 0x10000")
        status, data = self._exchange(op, address, data=value.to_bytes(WORD_BYTES, "little"))
        if status & FAILED:
            raise BusError(
                f"{access} register {address:#06x}: the SoC answered with an error; is the address in the register map?"
            )
        return int.from_bytes(data, "little")

    def _look(self) -> tuple[int, int]:
        """Return the status, and the cycles since power-on."""
        status, cycles = self._exchange(SerialOp.LOOK)
        return status, int.from_bytes(cycles, "little")

    def _exchange(
        self, op: SerialOp, address: int = 0, extra: int = 0, data: bytes = bytes(WORD_BYTES)
    ) -> tuple[int, bytes]:
        """Return status and word of the response to a request of a word."""
        before = self._heard
        head = self._next_head(op)
        for _ in range(self._attempts):
            response = self._sent(head, address, extra, data, 1)
            if response is not None:
                return response
        heard = self._heard - before
        told = f"{heard} bytes came, but none of its responses: noise, another speed or another device" if heard else ""
        raise BusTimeout(
            f"{op.name} at {address:#x}: no answer to {self._attempts} requests over the serial line: "
            f"{told or 'nothing came'}"
        )

    def _asked_once(
        self, op: SerialOp, address: int, extra: int, data: bytes, words: int
    ) -> tuple[int, bytes] | None:  # fmt: skip
        return self._sent(self._next_head(op), address, extra, data, words)

    def _next_head(self, op: SerialOp) -> int:
        if self._closed:
            raise RuntimeError("the serial line behind this bus was closed")
        self._number = (self._number + 1) % NUMBERS
        return op | self._number << 4

    def _sent(self, head: int, address: int, extra: int, data: bytes, words: int) -> tuple[int, bytes] | None:
        """Send a request once; returns status and ``words`` of its response, or None if that does not come."""
        self._port.reset_input_buffer()
        self._port.write(request_frame(head, address, extra, data))
        return self._response(head, response_size(words))

    def _response(self, head: int, size: int) -> tuple[int, bytes] | None:
        """Return status and words of the response to ``head``, which has ``size`` bytes, or None if it does not come.
        What is damaged, and responses to other requests, are skipped."""
        raw, last = b"", self._heard + size + _MOST_NOISE
        while self._heard < last:
            raw = raw[raw.find(SYNC) :] if SYNC in raw else b""
            came = self._port.read(size - len(raw))
            self._heard += len(came)
            raw += came
            if len(raw) < size:
                if not came:
                    return None
                continue
            fields = response_fields(raw)
            if fields is None:
                raw = raw[1:]
            elif fields[0] == head:
                return fields[1:]
            else:
                raw = b""
        return None
