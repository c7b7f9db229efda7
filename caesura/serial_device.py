"""Opens a device at the other end of a serial line: a board, as ``hw.board`` describes it."""

import importlib.util

from caesura.api import Device, UsageError
from hw.contract.bus import BusTimeout
from hw.contract.params import SocParams
from hw.contract.serial import BLOCK_WORDS, WORD_BYTES, request_frame
from sw.driver import DriverError
from sw.serial import SerialBus

BAUD = 3_000_000
_KIND = "serial:"
_SECONDS = 0.1  #: without a byte behind the longest request, after which one is sent again
_BITS = 10 * len(request_frame(0, 0, 0, bytes(BLOCK_WORDS * WORD_BYTES)))  #: that such a request takes on the line
_ATTEMPTS = 10  #: a busy host may be late itself


def serial_device(text: str, params: SocParams) -> Device:
    """Return the device of ``params`` that ``text`` names: ``serial:PORT`` or ``serial:PORT@BAUD``. Raises
    :class:`caesura.api.UsageError` for another text, a port that cannot be opened, and where nobody answers."""
    port, _, baud = text.removeprefix(_KIND).partition("@")
    if not text.startswith(_KIND) or not port or (baud and not (baud.isdecimal() and int(baud))):
        raise UsageError(f"--device {text}: write serial:PORT or serial:PORT@BAUD, such as serial:/dev/ttyUSB0@{BAUD}")
    if importlib.util.find_spec("serial") is None:
        raise UsageError("--device: pyserial is not installed: pip install 'caesura-npu[serial]'")
    import serial  # an extra

    rate = int(baud or BAUD)
    try:
        line = serial.Serial(port, rate, timeout=_SECONDS + _BITS / rate)
    except (serial.SerialException, ValueError, OSError) as error:
        raise UsageError(f"--device {text}: the port cannot be opened: {error}") from None
    try:
        return Device(SerialBus(line, params, attempts=_ATTEMPTS))
    except BusTimeout as error:
        line.close()
        raise UsageError(
            f"--device {text}: {error}. Is the board on, with a bitstream whose line has {rate} baud?"
        ) from None
    except DriverError:  # another machine is there than the one that was named
        line.close()
        raise
