"""The host's end of a serial line whose other end is a netlist of a board."""

import ctypes

from sim.c_library import structure
from sim.gates.gate_simulator import GateSimulator

_Line = structure("_Line", "divisor send_left send_timer send_bits receive_left receive_timer receive_byte")
_ROOM = 1 << 16  #: bytes that may come while others are sent


class GateLine:
    """Reads and writes like a port of pyserial. The board's time passes only while bytes are sent or waited for.

    Parameters
    ----------
    board : GateSimulator
        With the ports ``rx`` and ``tx``.
    divisor : int
        Cycles per bit.
    timeout : int
        Cycles of silence after which a read ends.
    """

    def __init__(self, board: GateSimulator, divisor: int, timeout: int = 3000) -> None:
        self._board, self._timeout = board, timeout
        self._line = _Line(divisor=divisor)
        self._cycles = ctypes.c_int64(0)
        self._came = b""

    @property
    def cycles(self) -> int:
        """Return how many cycles have passed."""
        return self._cycles.value

    def write(self, data: bytes) -> int:
        """Send bytes."""
        self._came += self._run(data, 0, 0)
        return len(data)

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, fewer where nothing comes for the timeout."""
        if len(self._came) < size:
            self._came += self._run(b"", size - len(self._came), self._timeout)
        raw, self._came = self._came[:size], self._came[size:]
        return raw

    def reset_input_buffer(self) -> None:
        """Forget what has come."""
        self._came = b""

    def close(self) -> None:
        """Do nothing: a simulation has nothing to close."""

    def _run(self, data: bytes, wanted: int, patience: int) -> bytes:
        came = ctypes.create_string_buffer(_ROOM)
        (rx,), (tx,) = self._board.nets("rx"), self._board.nets("tx")
        numbers = [ctypes.c_int64(number) for number in (wanted, _ROOM, patience)]
        count = self._board.code.gates_line(
            self._board.handle, ctypes.byref(self._line), rx, tx, data, ctypes.c_int64(len(data)), came, *numbers,
            ctypes.byref(self._cycles),
        )  # fmt: skip
        return came.raw[:count]
