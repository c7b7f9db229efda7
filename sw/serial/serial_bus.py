"""Reaches a machine over a serial line, by the frames of ``hw.contract.serial``."""

from typing import Protocol

from hw.contract.bus import BusError, BusTimeout, HostCosts
from hw.contract.params import SocParams
from hw.contract.serial import (
    CRC_BYTES,
    FAILED,
    INTERRUPT,
    NUMBERS,
    REQUEST,
    RESPONSE,
    SYNC,
    WORD_BYTES,
    SerialOp,
    framed,
    unframed,
)

_ALL_BYTES = (1 << WORD_BYTES) - 1
_RESPONSE_BYTES = RESPONSE.size + CRC_BYTES
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
    response does not come, or comes damaged, is sent up to ``attempts`` times; the machine does it once.

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
        self._number = 0
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
        """Read DRAM, a word with each request. :class:`hw.contract.bus.BusError` beyond its end."""
        first = self._first_word("read", address, size)
        words = (self._exchange(SerialOp.READ_MEM, at)[1] for at in range(first, address + size, WORD_BYTES))
        raw = b"".join(word.to_bytes(WORD_BYTES, "little") for word in words)
        return raw[address - first :][:size]

    def write_mem(self, address: int, data: bytes, *, charge: bool = True) -> None:
        """Write DRAM, a word with each request, and nothing beside ``data``; errors as for :meth:`read_mem`."""
        raw = bytes(data)
        first, end = self._first_word("write", address, len(raw)), address + len(raw)
        for at in range(first, end, WORD_BYTES):
            begin, stop = max(at, address), min(at + WORD_BYTES, end)
            enables = (_ALL_BYTES >> (WORD_BYTES - (stop - begin))) << (begin - at)
            word = int.from_bytes(raw[begin - address : stop - address], "little") << 8 * (begin - at)
            self._exchange(SerialOp.WRITE_MEM, at, enables, word)

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
        status, data = self._exchange(op, address, data=value)
        if status & FAILED:
            raise BusError(
                f"{access} register {address:#06x}: the SoC answered with an error; is the address in the register map?"
            )
        return data

    def _look(self) -> tuple[int, int]:
        """Return the status, and the cycles since power-on."""
        return self._exchange(SerialOp.LOOK)

    def _exchange(self, op: SerialOp, address: int = 0, enables: int = 0, data: int = 0) -> tuple[int, int]:
        """Return status and data of the response to a request."""
        if self._closed:
            raise RuntimeError("the serial line behind this bus was closed")
        self._number = (self._number + 1) % NUMBERS
        head = op | self._number << 4
        request = framed(REQUEST, head, address, enables, data)
        before = self._heard
        for _ in range(self._attempts):
            self._port.reset_input_buffer()
            self._port.write(request)
            response = self._response(head)
            if response is not None:
                return response
        heard = self._heard - before
        told = f"{heard} bytes came, but none of its responses: noise, another speed or another device" if heard else ""
        raise BusTimeout(
            f"{op.name} at {address:#x}: no answer to {self._attempts} requests over the serial line: "
            f"{told or 'nothing came'}"
        )

    def _response(self, head: int) -> tuple[int, int] | None:
        """Return status and data of the response to ``head``, or None if it does not come. What is damaged, and
        responses to other requests, are skipped."""
        raw, last = b"", self._heard + _MOST_NOISE
        while self._heard < last:
            raw = raw[raw.find(SYNC) :] if SYNC in raw else b""
            came = self._port.read(_RESPONSE_BYTES - len(raw))
            self._heard += len(came)
            raw += came
            if len(raw) < _RESPONSE_BYTES:
                return None
            fields = unframed(RESPONSE, raw)
            if fields is None:
                raw = raw[1:]
            elif fields[0] == head:
                return fields[1], fields[2]
            else:
                raw = b""
        return None
